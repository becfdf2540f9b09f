// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/gated_convolution.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>

// The building blocks of convolutional models.

using namespace heed;
using support::random;

namespace {

void check(const ad::grad_check_result& found) { CHECK_MESSAGE(bool(found), found.text()); }

/// The equation, by a scalar loop.
array<double, 3> scalar_convolution(const array<double, 3>& x, const array<double, 2>& W, const array<double, 1>& b,
                                    std::size_t before)
{
    const auto [steps, B, D] = x.shape();
    const std::size_t N = W.shape()[1], k = W.shape()[0] / D;
    array<double, 3> y(shape_of_rank<3>{steps, B, N});
    for (std::size_t t = 0; t < steps; ++t) {
        for (std::size_t s = 0; s < B; ++s) {
            for (std::size_t n = 0; n < N; ++n) {
                double sum = b(n);
                for (std::size_t i = 0; i < k; ++i) {
                    if (t + i < before || t + i - before >= steps) continue;
                    for (std::size_t d = 0; d < D; ++d) sum += x(t + i - before, s, d) * W(i * D + d, n);
                }
                y(t, s, n) = sum;
            }
        }
    }
    return y;
}

}  // namespace

TEST_CASE("a convolution over steps equals scalar loops and has the correct gradient")
{
    constexpr std::size_t B = 2, D = 3, N = 4;
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5}}) {
        const auto W = random({k * D, N}, 2);
        const auto b = random({N}, 3);
        for (std::size_t before = 0; before < k; ++before) {
            const auto f = [before](const auto& x, const auto& filters, const auto& bias) {
                return ops::convolve_steps(x, filters, bias, before);
            };
            for (const std::size_t steps : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
                const auto x = random({steps, B, D}, 1);
                CHECK(support::distance(f(x, W, b), scalar_convolution(x, W, b, before)) < 1e-13);
                check(support::gradient_of<0b111>(f, x, W, b));
            }
            const auto x = random({4, B, D}, 1);
            check(support::gradient_of<0b001>(f, x, W, b));
            check(support::gradient_of<0b010>(f, x, W, b));
            check(support::gradient_of<0b100>(f, x, W, b));
        }
    }
    support::check_empty(
        [](const auto& x) {
            return ops::convolve_steps(x, random({6, 2}, 1), random({2}, 2), 1);
        },
        array<double, 3>(shape_of_rank<3>{0, 2, 3}));
}

TEST_CASE("a convolution with mismatched shapes is rejected")
{
    const auto refused = [](std::size_t rows, std::size_t bias, std::size_t before) {
        return support::message_of<shape_error>([&] {
            ops::convolve_steps(random({4, 2, 3}, 1), random({rows, 4}, 2), random({bias}, 3), before);
        });
    };
    CHECK(support::contains(refused(7, 4, 1), "x is [4,2,3] and W is [7,4], but W must have 3 rows for each step"));
    CHECK(support::contains(refused(0, 4, 0), "at least one step"));
    CHECK(support::contains(refused(6, 4, 2), "2 steps before the step itself, but W [6,4] is 2 steps wide"));
    CHECK(support::contains(refused(6, 5, 1), "the bias is [5] but must be [4]"));
}

TEST_CASE("a sliding window drops its first columns and appends the new ones")
{
    const auto f = [](const auto& past, const auto& x) { return ops::slide(past, x); };
    const array<double, 2> past{{1, 2, 3, 4}, {5, 6, 7, 8}}, x{{10, 11}, {12, 13}};
    CHECK(f(past, x) == array<double, 2>{{3, 4, 10, 11}, {7, 8, 12, 13}});
    CHECK(f(past, past) == past);
    CHECK(shape_of(f(array<double, 2>(shape_of_rank<2>{2, 0}), x)) == shape_of_rank<2>{2, 0});
    check(support::gradient_of<0b11>(f, past, x));
    check(support::gradient_of<0b01>(f, past, x));
    check(support::gradient_of<0b10>(f, past, x));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                f(past, random({2, 3}, 1));
                            }),
                            "the window's width must be a multiple of x's, and x must have a column"));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                f(past, random({3, 2}, 1));
                            }),
                            "slide: the window is [2,4] but must be [3,4]"));
}

TEST_CASE("parts of convolutional models are equal in the workspace and on a tape")
{
    const auto same = [](const auto& f, const auto&... x) {
        const auto must = f(x...);
        const scratch here;
        CHECK(support::same_bits(f(workspace_tensor(view_of(x))...), must));
        ad::tape<double> on;
        CHECK(support::same_bits(f(on.parameter(x)...), must));
    };
    const auto x = random({3, 2, 4}, 1);
    same([](const auto& a, const auto& W, const auto& b) { return ops::convolve_steps(a, W, b, std::size_t{1}); }, x,
         random({8, 3}, 2), random({3}, 3));
    same(
        [](const auto& a, const auto& v) {
            return ops::gated_residual(a, v, lengths{3, 1});
        },
        x, random({3, 2, 8}, 2));
    same([](const auto& past, const auto& a) { return ops::slide(past, a); }, random({2, 4}, 1), random({2, 2}, 2));
    same([](const auto& a, const auto& b) { return ops::scaled_sum(a, b, 2, 3); }, x, x);
}

TEST_CASE("gated linear units multiply the first half by the sigmoid of the second")
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

TEST_CASE("a gated residual is half the sum of x and its unit, zero in the padding, and has the correct gradient")
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
