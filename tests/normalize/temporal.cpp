// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/verify/problem.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <limits>
#include <vector>

// Properties of temporal modulation, on given or random scores.

using namespace heed;
using support::random;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T, std::size_t R>
using all_steps = std::vector<array<T, R>>;  // scores or weights [B,T] or [B,T,D] of each step

template <class T, std::size_t R>
all_steps<T, R> random_scores(const std::size_t (&shape)[R], std::size_t steps, double scale)
{
    all_steps<T, R> e;
    for (std::size_t s = 0; s < steps; ++s) e.push_back(random<T>(shape, 100 + s, scale));
    return e;
}

/// The weights of normalize::temporal at every step.
template <class Scores>
std::vector<Scores> temporal_weights(const std::vector<Scores>& e, const lengths& real)
{
    const normalize::temporal policy;
    auto state = policy.start([&](double value) { return constant_like(e[0], shape_of(e[0]), value); });
    std::vector<Scores> weights;
    for (std::size_t s = 0; s < e.size(); ++s) {
        const plain_step_context at{real, s};
        weights.push_back(policy(e[s], state, at));
        state = policy.advance(e[s], weights.back(), state, at);
    }
    return weights;
}

/// Sankaran et al. 2016, eq. 6-8, as printed, in T.
template <class T, std::size_t R>
all_steps<T, R> printed_weights(const all_steps<T, R>& e, std::size_t positions)
{
    all_steps<T, R> weights;
    array<T, R> state(e[0].shape(), T(0));
    const std::size_t rows = e[0].shape()[0], width = e[0].size() / (rows * positions);
    for (std::size_t t = 0; t < e.size(); ++t) {
        array<T, R> b(e[t].shape());
        for (std::size_t i = 0; i < b.size(); ++i) {
            b.data()[i] = t == 0 ? std::exp(e[t].data()[i]) : std::exp(e[t].data()[i]) / state.data()[i];
            state.data()[i] += std::exp(e[t].data()[i]);
        }
        weights.push_back(b);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t d = 0; d < width; ++d) {
                T sum = 0;
                for (std::size_t j = 0; j < positions; ++j) sum += b.data()[(row * positions + j) * width + d];
                for (std::size_t j = 0; j < positions; ++j) weights[t].data()[(row * positions + j) * width + d] /= sum;
            }
        }
    }
    return weights;
}

/// The maximum relative difference of two lists of weights.
template <class A, class B>
double relative_difference(const A& a, const B& b)
{
    double worst = 0;
    for (std::size_t t = 0; t < a.size(); ++t) {
        for (std::size_t i = 0; i < a[t].size(); ++i) {
            const double x = static_cast<double>(a[t].data()[i]), y = static_cast<double>(b[t].data()[i]);
            const double off = std::abs(x - y) / std::abs(y);
            worst = off >= 0 ? std::max(worst, off) : infinity;
        }
    }
    return worst;
}

}  // namespace

TEST_CASE("the logarithmic form equals the printed form, up to the last bits")
{
    const auto e = random_scores<double>({3, 7}, 12, 1.5);
    CHECK(relative_difference(temporal_weights(e, lengths::full(3, 7)), printed_weights(e, 7)) < 1e-14);
    const auto each = random_scores<double>({2, 7, 5}, 12, 1.5);
    CHECK(relative_difference(temporal_weights(each, lengths::full(2, 7)), printed_weights(each, 7)) < 1e-14);
}

TEST_CASE("trap: scores minus their maximum must not enter the history")
{
    // Subtracting a constant from a step's scores does not change its softmax, but it changes the history, which
    // compares positions across steps: storing e - max e gives other weights.
    auto e = random_scores<double>({1, 6}, 4, 3);
    auto shifted = e;
    for (auto& step : shifted) {
        const double top = *std::max_element(step.begin(), step.end());
        for (double& x : step) x -= top;
    }
    const auto right = temporal_weights(e, lengths{6}), wrong = temporal_weights(shifted, lengths{6});
    CHECK(support::distance(right[0], wrong[0]) < 1e-15);
    double most = 0;
    for (std::size_t t = 1; t < 4; ++t) {
        for (std::size_t j = 0; j < 6; ++j) most = std::max(most, std::abs(right[t](0, j) - wrong[t](0, j)));
    }
    CHECK(most > 0.1);
    CHECK(relative_difference(right, printed_weights(e, 6)) < 1e-14);
}

TEST_CASE("float: scores up to 144, where the printed form overflows")
{
    auto e = random_scores<float>({1, 7}, 5, 1);
    for (std::size_t t = 0; t < 5; ++t) {
        for (std::size_t j = 0; j < 7; ++j) e[t](0, j) = 144.0f * static_cast<float>((t * 3 + j * 5) % 7) / 6.0f;
    }
    all_steps<double, 2> exact;
    for (const auto& step : e) exact.push_back(support::converted<double>(step));
    const auto naive = printed_weights(e, 7);
    bool overflowed = false;
    for (const auto& step : naive) overflowed = overflowed || !support::all_finite(step);
    CHECK(overflowed);
    const auto weights = temporal_weights(e, lengths{7});
    const auto must = printed_weights(exact, 7);  // exp(144) fits in double
    for (std::size_t t = 0; t < 5; ++t) CHECK(support::distance(weights[t], must[t]) < 5e-5);
}

TEST_CASE("float: scores of 1e4 of both signs")
{
    auto e = random_scores<float>({2, 5}, 6, 1);
    for (std::size_t t = 0; t < 6; ++t) {
        for (std::size_t i = 0; i < 10; ++i) e[t].data()[i] = (t + i) % 3 == 0 ? -1e4f : 1e4f;
    }
    all_steps<double, 2> exact;
    for (const auto& step : e) exact.push_back(support::converted<double>(step));
    const auto weights = temporal_weights(e, lengths{5, 3}), in_double = [&] {
        std::vector<array<float, 2>> rounded;
        for (const auto& step : temporal_weights(exact, lengths{5, 3}))
            rounded.push_back(support::converted<float>(step));
        return rounded;
    }();
    for (std::size_t t = 0; t < 6; ++t) {
        CHECK(support::all_finite(weights[t]));
        CHECK(support::distance(weights[t], in_double[t]) < 2e-3);  // floats near 1e4 are 1e-3 apart
    }
    CHECK(support::distance(weights[0], in_double[0]) < 1e-7);
}

TEST_CASE("a term added to a position's score at every step cancels from the second step on; a moving term does not")
{
    const auto e = random_scores<double>({2, 6}, 5, 1);
    const auto offset = random({2, 6}, 7, 3);
    auto constant = e, moving = e;
    for (std::size_t t = 0; t < 5; ++t) {
        for (std::size_t i = 0; i < offset.size(); ++i) {
            constant[t].data()[i] += offset.data()[i];
            moving[t].data()[i] += offset.data()[(i + t) % offset.size()];
        }
    }
    const lengths real{6, 4};
    const auto plain = temporal_weights(e, real), with_constant = temporal_weights(constant, real),
               with_moving = temporal_weights(moving, real);
    CHECK(support::distance(plain[0], with_constant[0]) > 0.05);
    for (std::size_t t = 1; t < 5; ++t) {
        CHECK(support::distance(plain[t], with_constant[t]) < 1e-14);
        CHECK(support::distance(plain[t], with_moving[t]) > 0.05);
    }
}

TEST_CASE("positions that were attended to before get less weight")
{
    // The same scores at every step: from the second step on each position has had its share, and all weights are
    // equal.
    const all_steps<double, 2> e(4, array<double, 2>{{3.0, 0.0, -1.0}});
    const auto weights = temporal_weights(e, lengths{3});
    CHECK(weights[0](0, 0) > 0.9);
    for (std::size_t t = 1; t < 4; ++t) {
        for (std::size_t j = 0; j < 3; ++j) CHECK(weights[t](0, j) == doctest::Approx(1.0 / 3).epsilon(1e-14));
    }
}

TEST_CASE("the gradient equals that of the reverse scan")
{
    // With G_t = ∂loss/∂u_t:  R_S = 0,  R_k = G_{k+1} + exp(L_{k+1} - L_{k+2}) R_{k+1},
    // ∂loss/∂e_k = G_k - exp(e_k - L_{k+1}) R_k. Steps count from 1, L_1 = -inf. Elementwise, without heed.
    const auto check = [](auto e, const lengths& real, std::size_t positions) {
        using Scores = typename decltype(e)::value_type;
        constexpr std::size_t R = rank_of<Scores>;
        const std::size_t S = e.size(), size = e[0].size(), batch = real.batch(), width = size / (batch * positions);
        all_steps<double, R> c;
        for (std::size_t t = 0; t < S; ++t) c.push_back(random(shape_of(e[0]), 200 + t));

        ad::tape<double> on;
        std::vector<ad::var<double, R>> scores;
        for (const auto& step : e) scores.push_back(on.parameter(step));
        const auto weights = temporal_weights(scores, real);
        ad::var<double, 0> loss = ops::dot(weights[0], c[0]);
        for (std::size_t t = 1; t < S; ++t) loss = ops::add(loss, ops::dot(weights[t], c[t]));
        on.backward(loss);

        // G_tj = α_tj (c_tj - Σ_i α_ti c_ti), over the real positions.
        all_steps<double, R> G(S, Scores(e[0].shape(), 0.0));
        const auto alpha = temporal_weights(e, real);
        for (std::size_t t = 0; t < S; ++t) {
            for (std::size_t b = 0; b < batch; ++b) {
                for (std::size_t d = 0; d < width; ++d) {
                    double mean = 0;
                    const auto at = [&](std::size_t j) { return (b * positions + j) * width + d; };
                    for (std::size_t j = 0; j < real[b]; ++j) mean += alpha[t].data()[at(j)] * c[t].data()[at(j)];
                    for (std::size_t j = 0; j < real[b]; ++j) {
                        G[t].data()[at(j)] = alpha[t].data()[at(j)] * (c[t].data()[at(j)] - mean);
                    }
                }
            }
        }
        double worst = 0;
        for (std::size_t i = 0; i < size; ++i) {
            std::vector<double> L(S + 2, -infinity), history(S + 1, 0.0);  // L[t], t from 1
            for (std::size_t t = 1; t <= S; ++t) {
                const double x = e[t - 1].data()[i], high = std::max(L[t], x), low = std::min(L[t], x);
                L[t + 1] = high + std::log1p(std::exp(low - high));
            }
            std::vector<double> Rest(S + 1, 0.0);
            for (std::size_t k = S - 1; k >= 1; --k) {
                Rest[k] = G[k].data()[i] + std::exp(L[k + 1] - L[k + 2]) * Rest[k + 1];
            }
            for (std::size_t k = 1; k <= S; ++k) {
                const double must = G[k - 1].data()[i] - std::exp(e[k - 1].data()[i] - L[k + 1]) * Rest[k];
                worst = std::max(worst, std::abs(on.gradient(scores[k - 1]).data[i] - must));
            }
        }
        CHECK(worst < 1e-14);
    };
    check(random_scores<double>({3, 5}, 8, 2), lengths{5, 0, 3}, 5);
    check(random_scores<double>({2, 5, 3}, 6, 2), lengths{5, 2}, 5);
    check(random_scores<double>({1, 4}, 1, 2), lengths{4}, 4);
}

TEST_CASE("the state is one number per position, and is reset for every batch")
{
    const attention attend{score::dot{}, normalize::temporal{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 6, 3}, 1), lengths{6, 2});
    auto state = attend.start(memory);
    CHECK(shape_of(state.normalize.history) == shape_of_rank<2>{2, 6});
    for (const double x : state.normalize.history) CHECK(x == -infinity);
    const auto q = random({2, 3}, 2);
    const auto first = attend.step(memory, q, state);
    CHECK(first.state.step == 1);
    CHECK(attend.step(memory, q, first.state).state.step == 2);
    // Starting again gives the first result again.
    CHECK(support::same_bits(attend.step(memory, q, attend.start(memory)).context, first.context));
    // Beam search duplicates a hypothesis by mapping the state's tensors.
    const auto doubled = state.normalize.map([](const auto& x) { return ops::scale(x, 1.0); });
    CHECK(support::same_bits(doubled.history, state.normalize.history));

    const attention each{score::additive_per_dimension{random({3, 4}, 1), random({3, 4}, 2), random({4, 3}, 3)},
                         normalize::temporal{}, combine::elementwise_sum{}};
    CHECK(shape_of(each.start(each.on(random({2, 6, 3}, 1))).normalize.history) == shape_of_rank<3>{2, 6, 3});
}
