// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/conv_s2s.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include <support/scores.hpp>

using namespace heed;
using support::check_equation;
using support::check_promises;
using support::random;
using support::says;
using support::soft;
using support::temporal;
namespace scalar = support::scalar;
using scalar::numbers;

TEST_CASE("conv_s2s: its equation, gradient and contracts")
{
    const auto P = [](std::size_t Q, std::size_t D) { return random({Q, D}, 42); };
    const auto b = [](std::size_t D) { return random({D}, 45); };
    check_equation(
        [&](std::size_t Q, std::size_t D) {
            return score::conv_s2s{P(Q, D), b(D)};
        },
        [&](std::size_t Q, std::size_t D) {
            return [P = scalar::matrix_of(P(Q, D)), b = scalar::vector_of(b(D))](const auto& q, const auto& h) {
                const numbers d = scalar::plus(scalar::plus(scalar::times(q[0], P), b), q[1]);
                return numbers{scalar::inner(d, h)};
            };
        },
        [](std::size_t Q, std::size_t D) {
            return support::query_with_word{Q, D};
        });
    check_promises(score::conv_s2s{P(3, 5), b(5)}, support::query_with_word{3, 5});
}

TEST_CASE("conv_s2s: keys z, values z + x")
{
    const std::size_t Q = 3, D = 5;
    const auto W = random({Q, D}, 1), h = random({2, Q}, 2), g = random({2, D}, 3);
    const auto b = random({D}, 4);
    const auto z = random({2, 6, D}, 5), x = random({2, 6, D}, 6);
    const lengths real{6, 2};
    const auto attend = soft(score::conv_s2s{W, b});
    const auto memory = attend.on(z, ops::add(z, x), real);
    const auto now = attend.step(memory, state_and_word{h, g}, attend.start(memory));
    for (std::size_t row = 0; row < 2; ++row) {
        numbers d(D), a(real[row]), c(D);
        for (std::size_t k = 0; k < D; ++k) {
            d[k] = b(k) + g(row, k);
            for (std::size_t i = 0; i < Q; ++i) d[k] += h(row, i) * W(i, k);
        }
        for (std::size_t j = 0; j < real[row]; ++j) {
            for (std::size_t k = 0; k < D; ++k) a[j] += d[k] * z(row, j, k);
            a[j] = std::exp(a[j]);
        }
        const double sum = std::accumulate(a.begin(), a.end(), 0.0);
        for (std::size_t j = 0; j < real[row]; ++j) {
            CHECK(now.weights(row, j) == doctest::Approx(a[j] / sum).epsilon(1e-13));
            for (std::size_t k = 0; k < D; ++k) c[k] += a[j] / sum * (z(row, j, k) + x(row, j, k));
        }
        for (std::size_t k = 0; k < D; ++k) CHECK(now.context(row, k) == doctest::Approx(c[k]).epsilon(1e-13));
    }

    // Gradients with respect to all tensors: keys and values differ.
    support::inputs<array<double, 2>, array<double, 1>, array<double, 3>, array<double, 3>, array<double, 2>,
                    array<double, 2>>
        all{{W, b, z, x, h, g}};
    const auto found = ad::grad_check(all, [&](auto&, const auto& lifted) {
        const auto& [W_, b_, z_, x_, h_, g_] = lifted.at;
        const auto taped = temporal(score::conv_s2s{W_, b_});
        const auto there = taped.on(z_, ops::add(z_, x_), real);
        const auto first = taped.step(there, state_and_word{h_, g_}, taped.start(there));
        const auto second = taped.step(there, state_and_word{ops::tanh(h_), g_}, first.state);
        return ops::dot(second.context, support::uneven(second.context.shape()));
    });
    CHECK_MESSAGE(bool(found), found.text());

    says([&] { attend.step(memory, state_and_word{h, random({2, D + 1}, 7)}, attend.start(memory)); }, "add");
    says(
        [&] {
            attend.step(memory, state_and_word{random({2, Q + 1}, 7), g}, attend.start(memory));
        },
        "linear: x is [2,4] and the matrix is [3,5]");
}
