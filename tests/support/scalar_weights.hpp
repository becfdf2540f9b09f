// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include <support/mechanism_tests.hpp>
#include <support/scalar_attention.hpp>

/// Normalizers from their equations, as plain loops. Exponentials are summed in long double, in which exp(1e4) is
/// finite, so the sums need no guard against overflow.
namespace support::scalar {

using tall = long double;
using table = std::vector<std::vector<tall>>;  // [T][1] or [T][D]: one step
using tables = std::vector<table>;             // for every step

/// All weights of a sentence, from its scores and queries.
using weigher = std::function<tables(const tables& e, const std::vector<std::vector<numbers>>& queries)>;

/// Whether step t sees position j.
using visible = std::function<bool(std::size_t t, std::size_t j)>;
inline bool all_of_them(std::size_t, std::size_t) { return true; }

/// α_j = exp(u_j) / Σ_i exp(u_i) for each column; zeros if all scores are -inf.
inline table divided(table u)
{
    for (std::size_t d = 0; !u.empty() && d < u[0].size(); ++d) {
        tall top = -std::numeric_limits<tall>::infinity(), sum = 0;
        for (const auto& row : u) top = std::max(top, row[d]);
        for (auto& row : u) sum += row[d] = std::isinf(top) ? 0 : std::exp(row[d] - top);
        for (auto& row : u) row[d] = sum == 0 ? 0 : row[d] / sum;
    }
    return u;
}

/// u_j = e_j + f(j, d), and -inf if masked.
template <class F>
table modulated(const table& e, std::size_t t, const visible& sees, F&& f)
{
    table u = e;
    for (std::size_t j = 0; j < e.size(); ++j) {
        for (std::size_t d = 0; d < e[j].size(); ++d) {
            u[j][d] = sees(t, j) ? e[j][d] + f(j, d) : -std::numeric_limits<tall>::infinity();
        }
    }
    return u;
}

/// exp(e_t) / (Σ_{t-n<=k<t} exp(e_k) exp(-δ (t-1-k)))^β: over the history that `remembers` selects.
inline weigher temporal(double strength, double decay, std::size_t n, visible sees = all_of_them,
                        visible remembers = all_of_them)
{
    return [=](const tables& e, const auto&) {
        tables all;
        for (std::size_t t = 0; t < e.size(); ++t) {
            all.push_back(divided(modulated(e[t], t, sees, [&](std::size_t j, std::size_t d) {
                tall state = 0;
                for (std::size_t k = t > n ? t - n : 0; k < t; ++k) {
                    const tall lost = t - 1 == k ? 0 : tall(decay) * static_cast<tall>(t - 1 - k);
                    if (remembers(k, j)) state += std::exp(e[k][j][d] - lost);
                }
                return state == 0 ? tall(0) : -strength * std::log(state);
            })));
        }
        return all;
    };
}

/// exp(e_t + w Σ_{k<t} α_k)
inline weigher learned_temporal(double w)
{
    return [=](const tables& e, const auto&) {
        tables all;
        for (std::size_t t = 0; t < e.size(); ++t) {
            all.push_back(divided(modulated(e[t], t, all_of_them, [&](std::size_t j, std::size_t d) {
                tall state = 0;
                for (std::size_t k = 0; k < t; ++k) state += all[k][j][d];
                return w * state;
            })));
        }
        return all;
    };
}

/// All results of a mechanism in the order of running::results<form::step>, from its equations.
inline running::outcome<double> expected(const score& equation, const weigher& weigh, const batch& of)
{
    const auto [B, T, D] = heed::shape_of(of.annotations);
    running::outcome<double> all = of.nothing_yet();
    for (std::size_t b = 0; b < B; ++b) {
        tables e(of.steps);
        const auto queries = of.queries(b);
        const matrix sentence = of.sentence(b);
        for (std::size_t s = 0; s < of.steps; ++s) {
            for (const numbers& h : sentence) {
                const numbers scores = equation(queries[s], h);
                e[s].emplace_back(scores.begin(), scores.end());
            }
        }
        const tables weights = weigh(e, queries);
        for (std::size_t s = 0; s < of.steps; ++s) {
            for (std::size_t d = 0; d < D; ++d) {
                tall sum = 0;
                for (std::size_t j = 0; j < of.real[b]; ++j) {
                    sum += weights[s][j][of.kind == 1 ? 0 : d] * tall(sentence[j][d]);
                }
                all[2 * s].values.push_back(static_cast<double>(sum));
            }
            auto& out = all[2 * s + 1].values;
            for (std::size_t j = 0; j < of.real[b]; ++j) {
                for (const tall w : weights[s][j]) out.push_back(static_cast<double>(w));
            }
            out.insert(out.end(), (T - of.real[b]) * of.kind, 0.0);
        }
    }
    return all;
}

/// Compares values with the scalar loops: step by step, and all at once on a tape. heed::verify checks that the other
/// forms agree.
inline void check_values(const auto& attend, const score& equation, const weigher& weigh, const auto& describe,
                         std::size_t width, double tolerance = 1e-13)
{
    using running::form;
    const auto check = [&](const heed::lengths& real, std::size_t positions, std::size_t steps) {
        const auto [p, at] = made_up(attend, describe, real, positions, steps, width);
        const auto must = expected(equation, weigh, batch(p, at));
        check_close(running::results<form::step, double>(p, at), must, tolerance);
        heed::ad::tape<double> on;
        check_close(running::results<form::many_queries, double>(heed::ad::lift(on, p), at), contexts_of(must),
                    tolerance);
    };
    check({5, 2, 0, 1}, 5, 4);
    check({1}, 1, 1);
    check({0}, 0, 2);
    check({0, 3}, 3, 1);
    check({7, 6}, 7, 12);
}

/// A mechanism's weights at each step for given scores [B,T] or [B,T,N], one tensor per step.
template <class Normalize, class Scores>
std::vector<Scores> weights_of(const Normalize& normalize, const std::vector<Scores>& e, const heed::lengths& real)
{
    using namespace heed;
    auto state = start_of(normalize, [&](double value) { return constant_like(e[0], shape_of(e[0]), value); });
    std::vector<Scores> weights;
    for (std::size_t s = 0; s < e.size(); ++s) {
        const plain_step_context at{real, s};
        weights.push_back(weigh(normalize, e[s], state, at));
        state = next_of(normalize, e[s], weights.back(), state, at);
    }
    return weights;
}

/// The same by the scalar loops.
inline std::vector<heed::array<double, 2>>
weights_of(const weigher& weigh, const std::vector<heed::array<double, 2>>& e, const heed::lengths& real)
{
    std::vector<heed::array<double, 2>> all(e.size(), heed::array<double, 2>(e[0].shape(), 0.0));
    for (std::size_t b = 0; b < real.batch(); ++b) {
        tables scores(e.size());
        for (std::size_t t = 0; t < e.size(); ++t) {
            for (std::size_t j = 0; j < real[b]; ++j) scores[t].push_back({tall(e[t](b, j))});
        }
        const tables weights = weigh(scores, {});
        for (std::size_t t = 0; t < e.size(); ++t) {
            for (std::size_t j = 0; j < real[b]; ++j) all[t](b, j) = static_cast<double>(weights[t][j][0]);
        }
    }
    return all;
}

}  // namespace support::scalar
