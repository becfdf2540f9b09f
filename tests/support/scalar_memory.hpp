// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <support/mechanism_tests.hpp>

/// Additive scores with a state, from the papers' equations as plain loops, to compare with heed's.
namespace support::scalar {

/// The state of one sentence. Its contribution to a step is added to U h_j inside the tanh.
struct remembering {
    std::function<void(const matrix& sentence)> start;
    std::function<void(std::size_t step, const std::vector<numbers>& query)> recall;
    std::function<numbers(std::size_t j)> joins;
    std::function<void(const numbers& weights)> advance;
};

/// e_tj = vᵀ tanh(W s_t + U h_j + joins_j), softmax or Sankaran's quotients, c_t = Σ_j α_tj h_j
inline std::vector<answer> attend(const matrix& W, const matrix& U, const numbers& v, const remembering& memory,
                                  bool temporal, const matrix& sentence,
                                  const std::vector<std::vector<numbers>>& queries, std::size_t width)
{
    std::vector<answer> answers;
    numbers state(sentence.size(), 0.0);
    memory.start(sentence);
    for (std::size_t t = 0; t < queries.size(); ++t) {
        memory.recall(t, queries[t]);
        numbers alpha;
        double sum = 0;
        for (std::size_t j = 0; j < sentence.size(); ++j) {
            const double b =
                std::exp(inner(v, hidden({times(queries[t][0], W), times(sentence[j], U), memory.joins(j)})));
            alpha.push_back(temporal && t > 0 ? b / state[j] : b);
            state[j] += b;
            sum += alpha.back();
        }
        answer a{numbers(width, 0.0), {}};
        for (std::size_t j = 0; j < sentence.size(); ++j) {
            alpha[j] /= sum;
            a.weights.push_back({alpha[j]});
            for (std::size_t d = 0; d < width; ++d) a.context[d] += alpha[j] * sentence[j][d];
        }
        memory.advance(alpha);
        answers.push_back(a);
    }
    return answers;
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline numbers sum_of(numbers a, const numbers& b)
{
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}

}  // namespace support::scalar

namespace support {

inline heed::array<double, 2> row_of(const heed::array<double, 2>& x, std::size_t b)
{
    heed::array<double, 2> row(shape_of_rank<2>{1, x.shape()[1]});
    std::copy_n(x.data() + b * x.shape()[1], x.shape()[1], row.data());
    return row;
}

/// The parameters of the additive score below.
struct additive_parameters {
    array<double, 2> W, U;
    array<double, 1> v;

    explicit additive_parameters(const mechanism_sizes& n)
        : W(random({n.query, n.alignment}, 41)), U(random({n.width, n.alignment}, 42)), v(random({n.alignment}, 43))
    {}
    auto score() const { return heed::score::additive{W, U, v}; }
};

inline running::outcome<double> expected(const additive_parameters& base, const scalar::remembering& memory,
                                         bool temporal, const batch& of)
{
    const auto [B, T, D] = heed::shape_of(of.annotations);
    running::outcome<double> must = of.nothing_yet();
    for (std::size_t b = 0; b < B; ++b) {
        const auto answers =
            scalar::attend(scalar::matrix_of(base.W), scalar::matrix_of(base.U), scalar::vector_of(base.v), memory,
                           temporal, of.sentence(b), of.queries(b), D);
        for (std::size_t s = 0; s < of.steps; ++s) {
            auto &contexts = must[2 * s].values, &weights = must[2 * s + 1].values;
            contexts.insert(contexts.end(), answers[s].context.begin(), answers[s].context.end());
            for (const auto& row : answers[s].weights) weights.push_back(row[0]);
            weights.insert(weights.end(), T - of.real[b], 0.0);
        }
    }
    return must;
}

inline void check_memory(const auto& attend, const additive_parameters& base, const scalar::remembering& memory,
                         bool temporal, const auto& describe, std::size_t width)
{
    using running::form;
    const auto check = [&](const heed::lengths& real, std::size_t positions, std::size_t steps) {
        const auto [p, at] = made_up(attend, describe, real, positions, steps, width);
        const auto must = expected(base, memory, temporal, batch(p, at));
        check_close(running::results<form::step, double>(p, at), must, 1e-13);
        check_close(running::results<form::read, double>(p, at), contexts_of(must), 1e-13);
        check_close(running::results<form::many_queries, double>(p, at), contexts_of(must), 1e-13);
        heed::ad::tape<double> on;
        check_close(running::results<form::step, double>(heed::ad::lift(on, p), at), must, 1e-13);
    };
    check({5, 2, 0, 1}, 5, 4);
    check({1}, 1, 1);
    check({1}, 1, 3);
    check({0}, 0, 2);
    check({0, 3}, 3, 2);
    check({9, 6}, 9, 6);
}

/// Checks heed::verify, and prints its report on failure.
inline void check_verified(const auto& attend, const heed::verification_sizes& sizes, const auto& describe)
{
    const auto report = heed::verify(attend, sizes, describe);
    CHECK_MESSAGE(bool(report), report.text());
}

/// Checks a beam's selection: if all rows are permuted after two steps, the later results are permuted in the same way.
inline void check_selection(const auto& attend, const auto& describe, std::size_t width)
{
    using heed::shape_of;
    const std::size_t B = 3, T = 5;
    const std::size_t from[] = {2, 0, 1};
    const auto pick = [&](const auto& x, const auto&...) {
        std::remove_cvref_t<decltype(x)> y(x.shape());
        const std::size_t row = x.size() / B;
        for (std::size_t b = 0; b < B; ++b) std::copy_n(x.data() + from[b] * row, row, y.data() + b * row);
        return y;
    };
    const auto [p, at] = made_up(attend, describe, {5, 2, 4}, T, 4, width);
    auto q = p;
    q.annotations = pick(p.annotations);
    for (auto& part : q.parts) part = pick(part);
    const auto memory = p.attend.on(p.annotations, at.real);
    const auto permuted = q.attend.on(q.annotations, heed::lengths{4, 5, 2});
    auto now = p.attend.start(memory);
    for (std::size_t s = 0; s < 2; ++s) now = p.attend.step(memory, at.query(p.parts, s), now).state;
    auto then = now.map(pick);
    CHECK(then.step == 2);
    for (std::size_t s = 2; s < 4; ++s) {
        auto straight = p.attend.step(memory, at.query(p.parts, s), now);
        auto selected = p.attend.step(permuted, at.query(q.parts, s), then);
        CHECK(same_bits(selected.weights, pick(straight.weights)));
        CHECK(distance(selected.context, pick(straight.context)) < 1e-15);
        now = straight.state;
        then = selected.state;
    }
}

inline void check_all_finite(const running::outcome<double>& all)
{
    for (const auto& some : all) {
        for (const double x : some.values) CHECK(std::isfinite(x));
    }
}

/// Queries of ±1e4: finite results, and weights that sum to 1.
inline void check_extremes(const auto& attend, const auto& describe, std::size_t width)
{
    auto [p, at] = made_up(attend, describe, {5, 2, 0, 1}, 5, 4, width);
    for (auto& part : p.parts) part *= 1e4;
    p.annotations *= 1e4;
    check_all_finite(running::results<running::form::step, double>(p, at));
    check_all_finite(running::gradients<running::form::step, true, double>(p, at));
}

}  // namespace support
