// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/kernel.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>

#include <support/approx.hpp>
#include <support/gradients.hpp>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t D = 4;

}  // namespace

TEST_CASE("the score is the inner product of the features of query and key")
{
    const auto q = random({2, D}, 1), Omega = random({D, 3}, 2);
    const auto h = random({2, 5, D}, 3);
    const auto check = [&](const auto& features) {
        const score::kernel kernel{features};
        const auto e = kernel(q, kernel.prepare(h));
        const auto of_queries = features(q);
        const auto of_keys = features(h);
        const std::size_t F = shape_of(of_queries)[1];
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t j = 0; j < 5; ++j) {
                double sum = 0;
                for (std::size_t f = 0; f < F; ++f) sum += of_queries(b, f) * of_keys(b, j, f);
                CHECK(e(b, j) == support::approx(sum));
                CHECK(e(b, j) > 0);
            }
        }
    };
    check(score::elu_plus_one{});
    check(score::positive_random{Omega});
    CHECK(parameter_count(score::kernel{score::elu_plus_one{}}) == 0);
    CHECK(parameter_count(score::kernel{score::positive_random{Omega}}) == 3 * D);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                score::positive_random{random({3, 3}, 2)}(q);
                            }),
                            "x is [2,4]"));
}

TEST_CASE("random features approximate softmax on average")
{
    const auto h = random({1, 5, D}, 1), q = random({1, 3, D}, 2);
    const attention exact{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto must = exact(exact.on(h), q);
    random_source seed{3};
    const attention drawn{score::kernel{score::positive_random{nn::gaussian<double>(seed, D, 60000, 1)}},
                          normalize::ratio{}, combine::weighted_sum{}};
    const auto is = drawn(drawn.on(h), q);
    for (std::size_t i = 0; i < is.size(); ++i) CHECK(is.data()[i] == doctest::Approx(must.data()[i]).epsilon(0.05));
}

TEST_CASE("features")
{
    const auto elu = [](const auto& x) { return ops::elu_plus_one(x); };
    CHECK_GRADIENT(elu, random({3, 5}, 1, 2));
    const array<double, 2> x{{-1, 0, 2}};
    const auto y = ops::elu_plus_one(x);
    CHECK(y(0, 0) == support::approx(std::exp(-1.0)));
    CHECK(y(0, 1) == 1);
    CHECK(y(0, 2) == 3);
    const auto drawn = [](const auto& at, const auto& Omega) { return score::positive_random{Omega}(at); };
    CHECK_GRADIENT(drawn, random({2, 3, D}, 1), random({D, 5}, 2));
    CHECK_GRADIENT(drawn, random({2, D}, 1), random({D, 5}, 2));
    // φ(x)_i = exp(ω_i · x / √2 − ‖x‖² / 4) / √m for D = 4
    const auto phi = drawn(array<double, 2>{{1, -1, 0.5, 0}}, array<double, 2>{{1, 2}, {0.5, 1}, {0, 1}, {3, 4}});
    CHECK(phi(0, 0) == support::approx(std::exp(0.5 / std::sqrt(2.0) - 2.25 / 4) / std::sqrt(2.0)));
    CHECK(phi(0, 1) == support::approx(std::exp(1.5 / std::sqrt(2.0) - 2.25 / 4) / std::sqrt(2.0)));
}
