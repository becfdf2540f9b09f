// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/heads/multi_head.hpp>
#include <heed/heads/multi_hop.hpp>
#include <support/contracts.hpp>
#include <support/mechanism_tests.hpp>

/// Several attentions in parallel (heads, SPEC C5) and in sequence (hops, C6), as loops.
namespace support::heads {

using namespace heed;
using running_form = support::running::form;

constexpr std::size_t Q = 3, D = 5, K = 4, V = 2, O = 3, A = 3;

inline scalar::matrix rows(const array<double, 2>& m) { return scalar::matrix_of(m); }

/// The columns [first, first + count) of a matrix: one head's slice.
inline scalar::matrix columns(const array<double, 2>& m, std::size_t first, std::size_t count)
{
    scalar::matrix part;
    for (const auto& row : rows(m)) {
        part.push_back({row.begin() + static_cast<long>(first), row.begin() + static_cast<long>(first + count)});
    }
    return part;
}

/// One head or hop as loops: its equation, and whether it is temporal.
struct loop {
    scalar::score score;
    bool temporal;
};

/// The contexts and weights [T] of each step for one sentence, with separate keys and values.
struct told {
    scalar::numbers context, weights;
};
inline std::vector<told> tell(const loop& how, const scalar::matrix& keys, const scalar::matrix& values,
                              std::size_t width, const std::vector<std::vector<scalar::numbers>>& queries)
{
    std::vector<told> all;
    const std::size_t key_width = keys.empty() ? 0 : keys[0].size();
    for (const auto& answer : scalar::attend(how.score, how.temporal, keys, queries, key_width)) {
        told now{scalar::numbers(width, 0.0), {}};
        for (std::size_t j = 0; j < values.size(); ++j) {
            now.weights.push_back(answer.weights[j][0]);
            for (std::size_t d = 0; d < width; ++d) now.context[d] += answer.weights[j][0] * values[j][d];
        }
        all.push_back(now);
    }
    return all;
}

/// The real annotations of sentence b, and the parts of its queries.
scalar::matrix sentence_of(const auto& p, const auto& at, std::size_t b)
{
    scalar::matrix sentence(at.real[b]);
    for (std::size_t j = 0; j < at.real[b]; ++j) {
        for (std::size_t d = 0; d < p.annotations.shape()[2]; ++d) sentence[j].push_back(p.annotations(b, j, d));
    }
    return sentence;
}
std::vector<std::vector<scalar::numbers>> queries_of(const auto& p, const auto& at, std::size_t b)
{
    std::vector<std::vector<scalar::numbers>> queries(at.steps);
    for (std::size_t s = 0; s < at.steps; ++s) {
        for (const auto& part : p.parts) {
            queries[s].emplace_back();
            for (std::size_t k = 0; k < part.shape()[2]; ++k) queries[s].back().push_back(part(b, s, k));
        }
    }
    return queries;
}

/// Everything in the order of running::results<form::step>, with rows of weights for each of n heads or hops.
running::outcome<double> in_order(const auto& p, const auto& at, std::size_t n, auto&& contexts_and_weights)
{
    running::outcome<double> all;
    for (std::size_t s = 0; s < at.steps; ++s) {
        all.push_back({running::named("context", s), {}});
        all.push_back({running::named("weights", s), {}});
    }
    for (std::size_t b = 0; b < at.real.batch(); ++b) {
        const auto [contexts, weights] = contexts_and_weights(b);  // [S][.], [n][S][T_b]
        for (std::size_t s = 0; s < at.steps; ++s) {
            auto& c = all[2 * s].values;
            auto& w = all[2 * s + 1].values;
            c.insert(c.end(), contexts[s].begin(), contexts[s].end());
            for (std::size_t i = 0; i < n; ++i) {
                w.insert(w.end(), weights[i][s].begin(), weights[i][s].end());
                w.insert(w.end(), p.annotations.shape()[1] - at.real[b], 0.0);
            }
        }
    }
    return all;
}

running::outcome<double> expected_heads(const std::vector<loop>& heads, const auto& p, const auto& at)
{
    const std::size_t n = heads.size(), k = p.attend.W_K.shape()[1] / n, v = p.attend.W_V.shape()[1] / n,
                      q = p.attend.W_Q.shape()[1] / n;
    return in_order(p, at, n, [&](std::size_t b) {
        scalar::matrix joined(at.steps);
        std::vector<scalar::matrix> weights(n);
        for (std::size_t i = 0; i < n; ++i) {
            scalar::matrix keys, values;
            for (const auto& h : sentence_of(p, at, b)) {
                keys.push_back(scalar::times(h, columns(p.attend.W_K, i * k, k)));
                values.push_back(scalar::times(h, columns(p.attend.W_V, i * v, v)));
            }
            auto queries = queries_of(p, at, b);
            for (auto& query : queries) query[0] = scalar::times(query[0], columns(p.attend.W_Q, i * q, q));
            const auto answers = tell(heads[i], keys, values, v, queries);
            for (std::size_t s = 0; s < at.steps; ++s) {
                joined[s].insert(joined[s].end(), answers[s].context.begin(), answers[s].context.end());
                weights[i].push_back(answers[s].weights);
            }
        }
        for (auto& c : joined) c = scalar::times(c, rows(p.attend.W_O));
        return std::pair{joined, weights};
    });
}

/// q_{k+1} = next(q_k, c_k); the context is the last hop's.
running::outcome<double> expected_hops(const std::vector<loop>& hops, const auto& next, const auto& p, const auto& at)
{
    return in_order(p, at, hops.size(), [&](std::size_t b) {
        const auto sentence = sentence_of(p, at, b);
        auto queries = queries_of(p, at, b);
        scalar::matrix contexts(at.steps);
        std::vector<scalar::matrix> weights(hops.size());
        for (std::size_t k = 0; k < hops.size(); ++k) {
            const auto answers = tell(hops[k], sentence, sentence, D, queries);
            for (std::size_t s = 0; s < at.steps; ++s) {
                contexts[s] = answers[s].context;
                weights[k].push_back(answers[s].weights);
                queries[s][0] = next(queries[s][0], answers[s].context, k);
            }
        }
        return std::pair{contexts, weights};
    });
}

/// Compares every form in both families, on several shapes, with the expected results of the loops.
void check_values(const auto& attend, const auto& expected, auto describe)
{
    const auto check = [&](const lengths& real, std::size_t positions, std::size_t steps) {
        const auto [p, at] = support::made_up(attend, describe, real, positions, steps, D);
        const auto must = expected(p, at);
        const auto compare = [&must](const auto& problem, const auto& setting) {
            check_close(running::results<running_form::step, double>(problem, setting), must, 1e-13);
            check_close(running::results<running_form::compose, double>(problem, setting), must, 1e-13);
            check_close(running::results<running_form::read, double>(problem, setting), support::contexts_of(must),
                        1e-13);
            check_close(running::results<running_form::many_queries, double>(problem, setting),
                        support::contexts_of(must), 1e-13);
        };
        compare(p, at);
        check_close(running::results<running_form::step_into, double>(p, at), must, 1e-13);
        ad::tape<double> on;
        compare(ad::lift(on, p), at);
    };
    check({5, 2, 0, 1}, 5, 3);
    check({1}, 1, 1);
    check({0}, 0, 2);
}

void check_contracts(const auto& attend, auto describe)
{
    const verification report = verify(attend, {.width = D}, describe);
    CHECK_MESSAGE(bool(report), report.text());
    CHECK(report.contracts.size() > 10);
}

template <class Heads>
auto with_projections(Heads heads, std::size_t n)
{
    return multi_head{std::move(heads), random({Q, n * K}, 1), random({D, n * K}, 2), random({D, n * V}, 3),
                      random({n * V, O}, 4)};
}

auto additive_heads(std::size_t n, const auto& normalize)
{
    std::vector<decltype(attention{score::additive{random({K, A}, 1), random({K, A}, 1), random({A}, 1)}, normalize,
                                   combine::weighted_sum{}})>
        heads;
    for (std::size_t i = 0; i < n; ++i) {
        heads.push_back({{random({K, A}, 10 + i), random({K, A}, 20 + i), random({A}, 30 + i)}, normalize, {}});
    }
    return heads;
}
std::vector<loop> additive_loops(const auto& heads, bool temporal)
{
    std::vector<loop> loops;
    for (const auto& head : heads) {
        loops.push_back(
            {scalar::additive(rows(head.score.W), rows(head.score.U), scalar::vector_of(head.score.v)), temporal});
    }
    return loops;
}

/// eᵀ h / √d
inline const loop scaled_dot_loop{[](const std::vector<scalar::numbers>& q, const scalar::numbers& h) {
                                      return scalar::numbers{scalar::inner(q[0], h) /
                                                             std::sqrt(static_cast<double>(h.size()))};
                                  },
                                  false};

array<double, 2> identity(std::size_t n)
{
    auto I = filled<double, 2>({n, n}, 0.0);
    for (std::size_t i = 0; i < n; ++i) I(i, i) = 1;
    return I;
}

inline const support::plain_query plainly{Q};

}  // namespace support::heads
