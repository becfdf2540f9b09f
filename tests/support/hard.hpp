// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/scalar_attention.hpp>
#include <support/tensors.hpp>

/// Hard attention: its draws, their frequencies, and costs with known gradients.
namespace support::hard {

using namespace heed;
using support::random;
namespace scalar = support::scalar;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The same scores in every row.
inline array<double, 2> repeated(const std::vector<double>& e, std::size_t rows)
{
    array<double, 2> scores(shape_of_rank<2>{rows, e.size()});
    for (std::size_t b = 0; b < rows; ++b) std::copy(e.begin(), e.end(), scores.data() + b * e.size());
    return scores;
}

inline std::vector<double> softmax_of(const std::vector<double>& e)
{
    double sum = 0;
    for (const double x : e) sum += std::exp(x);
    std::vector<double> p;
    for (const double x : e) p.push_back(std::exp(x) / sum);
    return p;
}

/// The index of the 1 in a one-hot row; throws if the row is not one-hot.
inline std::size_t diagonal_of(const double* row, std::size_t n, std::size_t stride = 1)
{
    std::size_t place = n;
    for (std::size_t j = 0; j < n; ++j) {
        const double w = row[j * stride];
        if (w == 1 && place == n) {
            place = j;
        } else if (w != 0) {
            throw error("not one-hot");
        }
    }
    if (place == n) throw error("nothing drawn");
    return place;
}

/// Pearson's Σ (observed − expected)² / expected; infinite if an impossible outcome was observed.
inline double chi_square(const std::vector<std::size_t>& seen, const std::vector<double>& p)
{
    std::size_t all = 0;
    for (const std::size_t n : seen) all += n;
    double sum = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
        const double expected = static_cast<double>(all) * p[j], off = static_cast<double>(seen[j]) - expected;
        if (expected > 0) {
            sum += off * off / expected;
        } else if (seen[j] > 0) {
            return infinity;
        }
    }
    return sum;
}

/// The weights of a policy for one step, from its initial state.
template <class Normalize, class Scores>
auto weights_of(const Normalize& policy, const Scores& scores, const lengths& real, std::size_t step = 0)
{
    const plain_step_context at{real, step};
    const auto state = start_of(policy, [&](double x) { return constant_like(scores, shape_of(scores), x); });
    return weigh(policy, scores, state, at);
}

/// The number of rows in which each position is drawn.
template <class Normalize>
std::vector<std::size_t> counts(const Normalize& policy, const std::vector<double>& e, std::size_t rows,
                                std::size_t step = 0)
{
    const auto weights = weights_of(policy, repeated(e, rows), lengths::full(rows, e.size()), step);
    std::vector<std::size_t> seen(e.size(), 0);
    for (std::size_t b = 0; b < rows; ++b) ++seen[diagonal_of(weights.data() + b * e.size(), e.size())];
    return seen;
}

inline void check_contracts(const auto& attend, const verification_sizes& sizes)
{
    const verification report = verify(attend, sizes);
    CHECK_MESSAGE(bool(report), report.text());
}

inline void check_contracts_of(const auto& normalizer)
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12), V = random({4, 5}, 13);
    const auto v = random({4}, 14, 2.0);
    check_contracts(attention{score::additive{W, U, v}, normalizer, combine::weighted_sum{}}, {.query = 3, .width = 5});
    check_contracts(attention{score::additive_per_dimension{W, U, V}, normalizer, combine::elementwise_sum{}},
                    {.query = 3, .width = 5});
}

/// One sentence, its queries, and a mechanism: the variables of the expected cost.
template <class Attention, class Tensor>
struct small_problem {
    Attention attend;
    Tensor annotations;  // [1,T,D]
    Tensor queries;      // [1,S,Q]

    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attention", self.attend);
        auto annotations = visit("annotations", self.annotations);
        auto queries = visit("queries", self.queries);
        return small_problem<decltype(attend), decltype(annotations)>{attend, annotations, queries};
    }
};

/// A cost that is not linear in the context: (Σ_s Σ_d k_sd c_sd)².
inline double factor_of(std::size_t s, std::size_t d)
{
    return 0.7 + 0.9 * static_cast<double>(s) - 0.4 * static_cast<double>(d);
}
inline double cost_of(const std::vector<scalar::numbers>& contexts)
{
    double sum = 0;
    for (std::size_t s = 0; s < contexts.size(); ++s) {
        for (std::size_t d = 0; d < contexts[s].size(); ++d) sum += factor_of(s, d) * contexts[s][d];
    }
    return sum * sum;
}

/// E[cost]: every outcome's cost times its probability, with plain loops. `columns` = 1, or D for a draw per dimension.
inline double expected_cost(const scalar::score& equation, const array<double, 3>& annotations,
                            const array<double, 3>& queries, std::size_t columns)
{
    const std::size_t T = annotations.shape()[1], D = annotations.shape()[2], S = queries.shape()[1];
    std::vector<std::vector<double>> p;  // for each of the S · columns draws
    for (std::size_t s = 0; s < S; ++s) {
        std::vector<scalar::numbers> e;
        for (std::size_t j = 0; j < T; ++j) {
            scalar::numbers h, q;
            for (std::size_t d = 0; d < D; ++d) h.push_back(annotations(0, j, d));
            for (std::size_t k = 0; k < queries.shape()[2]; ++k) q.push_back(queries(0, s, k));
            e.push_back(equation({q}, h));
        }
        for (std::size_t c = 0; c < columns; ++c) {
            std::vector<double> of_column;
            for (std::size_t j = 0; j < T; ++j) of_column.push_back(e[j][c]);
            p.push_back(softmax_of(of_column));
        }
    }
    std::size_t outcomes = 1;
    for (std::size_t i = 0; i < p.size(); ++i) outcomes *= T;
    double sum = 0;
    for (std::size_t outcome = 0; outcome < outcomes; ++outcome) {
        double probability = 1;
        std::vector<std::size_t> drawn;
        for (std::size_t i = 0, rest = outcome; i < p.size(); ++i, rest /= T) {
            drawn.push_back(rest % T);
            probability *= p[i][rest % T];
        }
        std::vector<scalar::numbers> contexts(S, scalar::numbers(D));
        for (std::size_t s = 0; s < S; ++s) {
            for (std::size_t d = 0; d < D; ++d) {
                contexts[s][d] = annotations(0, drawn[s * columns + (columns == 1 ? 0 : d)], d);
            }
        }
        sum += probability * cost_of(contexts);
    }
    return sum;
}

/// Compares every outcome's estimate of the gradient, weighted by the outcome's probability, with the gradient of
/// E[cost]. Outcomes are found by trying seeds; all must occur.
template <class Attention>
void check_unbiased(Attention attend, const auto& equation_of, std::size_t T, std::size_t S, std::size_t columns,
                    double baseline)
{
    small_problem<Attention, array<double, 3>> p{attend, random({1, T, 2}, 41), random({1, S, 3}, 42)};
    std::vector<double> exact;
    for_each_parameter(p, [&](const std::string&, auto& x) {
        for (double& entry : x) {
            const double before = entry, h = 1e-5;
            entry = before + h;
            const double above = expected_cost(equation_of(p.attend.score), p.annotations, p.queries, columns);
            entry = before - h;
            const double below = expected_cost(equation_of(p.attend.score), p.annotations, p.queries, columns);
            entry = before;
            exact.push_back((above - below) / (2 * h));
        }
    });
    const double expectation = expected_cost(equation_of(p.attend.score), p.annotations, p.queries, columns);

    std::size_t outcomes = 1;
    for (std::size_t i = 0; i < S * columns; ++i) outcomes *= T;
    std::map<std::string, double> met;  // outcomes and their probabilities
    std::vector<double> estimated(exact.size(), 0.0);
    double estimated_cost = 0;
    ad::tape<double> on;
    for (std::uint64_t seed = 1; met.size() < outcomes && seed < 100000; ++seed) {
        p.attend.normalize.seed = seed;
        on.clear();
        const auto lifted = ad::lift(on, p);
        const auto memory = lifted.attend.on(lifted.annotations);
        auto state = lifted.attend.start(memory);
        std::string outcome;
        ad::var<double, 0> total;
        for (std::size_t s = 0; s < S; ++s) {
            const auto now = lifted.attend.step(memory, ops::step_of(lifted.queries, s), state);
            for (std::size_t c = 0; c < columns; ++c) {
                outcome += static_cast<char>('0' + diagonal_of(now.weights.data() + c, T, columns));
            }
            array<double, 2> factors(shape_of_rank<2>{1, 2});
            for (std::size_t d = 0; d < 2; ++d) factors(0, d) = factor_of(s, d);
            const auto part = ops::dot(now.context, factors);
            total = s == 0 ? part : ops::add(total, part);
            state = now.state;
        }
        const auto log_probability = state.normalize.of_row();
        if (!met.emplace(outcome, std::exp(log_probability.data()[0])).second) continue;
        const double probability = met[outcome];
        const auto cost = ops::square(total);
        const array<double, 1> excess{cost.data()[0] - baseline};
        on.backward(ops::add(cost, normalize::score_function_term(state.normalize, excess)));
        estimated_cost += probability * cost.data()[0];
        std::size_t i = 0;
        for_each_parameter(lifted, [&](const std::string&, const auto& x) {
            const auto gradient = on.gradient(x);
            for (std::size_t k = 0; k < gradient.size(); ++k) estimated[i++] += probability * gradient.data[k];
        });
    }
    REQUIRE(met.size() == outcomes);
    double all = 0;
    for (const auto& [outcome, probability] : met) all += probability;
    CHECK(all == doctest::Approx(1).epsilon(1e-12));
    CHECK(estimated_cost == doctest::Approx(expectation).epsilon(1e-12));
    double worst = 0, greatest = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        worst = std::max(worst, std::abs(estimated[i] - exact[i]) / (1 + std::abs(exact[i])));
        greatest = std::max(greatest, std::abs(exact[i]));
    }
    CHECK(worst < 1e-8);
    CHECK(greatest > 0.1);
}

}  // namespace support::hard
