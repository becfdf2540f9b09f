// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/units.hpp>

#include <heed/ad/ad.hpp>
#include <heed/nn/gated_convolution.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

using namespace heed;
using support::random;

namespace {

void check(const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); }

}  // namespace

TEST_CASE("maxout")
{
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({3, 6}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({2, 1, 2}, 1));
    CHECK(support::contains(support::message_of<shape_error>([] { ops::maxout(random({2, 3}, 1)); }), "must be even"));
}

TEST_CASE("gated linear units: the first half times the sigmoid of the second")
{
    const auto glu = [](const auto& x) { return ops::glu(x); };
    for (const std::size_t N : {std::size_t{1}, std::size_t{3}, std::size_t{19}}) {
        const auto x = random({2, 2 * N}, 1);
        const auto y = glu(x);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t i = 0; i < N; ++i)
                CHECK(y(b, i) == doctest::Approx(x(b, i) / (1 + std::exp(-x(b, N + i)))).epsilon(1e-14));
        }
        CHECK_GRADIENT(glu, x);
    }
    CHECK_GRADIENT(glu, random({2, 3, 4}, 2));
    CHECK(shape_of(glu(array<double, 2>({0, 4}))) == shape_of_rank<2>{0, 2});
    CHECK(support::contains(support::message_of<shape_error>([] { ops::glu(random({2, 3}, 1)); }), "must be even"));
}

TEST_CASE("a gated residual: half the sum of x and its unit before the end, zeros behind it, and its gradient")
{
    const lengths real{3, 0, 2};
    const auto f = [&](const auto& x, const auto& v) { return ops::gated_residual(x, v, real); };
    for (const std::size_t N : {std::size_t{1}, std::size_t{3}, std::size_t{19}}) {
        const auto x = random({3, 3, N}, 1), v = random({3, 3, 2 * N}, 2);
        const auto y = f(x, v);
        for (std::size_t t = 0; t < 3; ++t) {
            for (std::size_t b = 0; b < 3; ++b) {
                for (std::size_t i = 0; i < N; ++i) {
                    const double must =
                        t < real[b] ? std::sqrt(0.5) * (x(t, b, i) + v(t, b, i) / (1 + std::exp(-v(t, b, N + i)))) : 0;
                    CHECK(y(t, b, i) == doctest::Approx(must).epsilon(1e-14));
                }
            }
        }
        check(support::gradient_of<0b11>(f, x, v));
        check(support::gradient_of<0b01>(f, x, v));
        check(support::gradient_of<0b10>(f, x, v));
    }
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                f(random({3, 3, 2}, 1), random({3, 3, 2}, 2));
                            }),
                            "gated_residual: v is [3,3,2] but must be [3,3,4]"));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                f(random({2, 3, 2}, 1), random({2, 3, 4}, 2));
                            }),
                            "gated_residual"));
}

TEST_CASE("maxout: the greater of each pair of neighbours")
{
    const auto check = [](const auto& x) {
        ad::tape<double> on;
        const auto plain = ops::maxout(x), taped = copy_of(ops::maxout(on.parameter(x)).value());
        const std::size_t n = shape_of(x).back(), rows = x.size() / n;
        REQUIRE(plain.size() == rows * n / 2);
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t i = 0; i < n / 2; ++i) {
                const double* const pair = x.data() + r * n + 2 * i;
                CHECK(plain.data()[r * n / 2 + i] == std::max(pair[0], pair[1]));
                CHECK(taped.data()[r * n / 2 + i] == std::max(pair[0], pair[1]));
            }
        }
    };
    check(random({3, 6}, 1));
    check(random({2, 3, 8}, 2));
    check(random({1, 2}, 3));
}
