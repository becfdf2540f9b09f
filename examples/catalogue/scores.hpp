// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/papers/positions.hpp>

/// Functions of scores as a user writes them: they take a score and its index, and run on SIMD registers.
namespace catalogue {

using namespace heed;

/// Any function of a score. (One kernel is compiled for all entries; a function with its own type is inlined.)
template <class T>
struct any_function {
    std::function<pack<T>(const pack<T>&, const score_index&)> value;
    std::function<dual<T>(const dual<T>&, const score_index&)> with_slope;

    any_function(const auto& f)
        : value([f](const pack<T>& e, const score_index& p) { return pack<T>(f(e, p)); }),
          with_slope([f](const dual<T>& e, const score_index& p) { return dual<T>(f(e, p)); })
    {}
    pack<T> operator()(const pack<T>& e, const score_index& p) const { return value(e, p); }
    dual<T> operator()(const dual<T>& e, const score_index& p) const { return with_slope(e, p); }
};

template <class T>
struct named_function {
    std::string name;
    any_function<T> f;
};

/// Tables of the functions.
template <class T>
struct tables {
    array<T, 1> factor{T(0.3), T(-0.2)};                                    // one per head
    array<T, 3> q_rope{shape_of_rank<3>{2, 96, 4}, T(0)}, k_rope = q_rope;  // rotary parts of queries and keys
};

/// add(name, f) for each function.
template <class T>
void each_function(const tables<T>& at, const auto& add)
{
    constexpr double none = -std::numeric_limits<double>::infinity();
    const auto factor = looked_up(at.factor);
    const auto q_rope = looked_up(at.q_rope), k_rope = looked_up(at.k_rope);

    add("nothing", [](auto e, score_index) { return e; });
    add("times two", [](auto e, score_index) { return 2 * e; });
    add("squared", [](auto e, score_index) { return e * e; });
    add("causal", [=](auto e, score_index p) { return select(p.key <= p.query, e, none); });
    add("inverse causal", [=](auto e, score_index p) { return select(p.key >= p.query, e, none); });
    add("distance", [](auto e, score_index p) { return e + 0.01 * (p.query - p.key); });
    add("distance, causal",
        [=](auto e, score_index p) { return select(p.key <= p.query, e + 0.01 * (p.query - p.key), none); });
    add("ALiBi", [](auto e, score_index p) { return e - papers::press2022::slope(p.head, 8) * abs(p.query - p.key); });
    add("soft-cap", [](auto e, score_index) { return 3 * tanh(e / 3); });
    add("soft-cap, approximate", [](auto e, score_index) {  // tanh by its continued fraction
        const auto x = e / 3, x2 = x * x;
        return 3 * x * (27 + x2) / (27 + 9 * x2);
    });
    add("a factor per head", [=](auto e, score_index p) { return e * factor(p.head); });
    add("sine", [](auto e, score_index p) { return e + sin(e) * cos(0.1 * p.key); });
    add("sine of the distance", [](auto e, score_index p) { return e + sin(0.2 * (p.query - p.key)); });
    add("sandwich", [](auto e, score_index p) {
        auto bias = cos(0.0 * p.key) - 1;
        for (const double omega : {1.0, 0.1, 0.01}) bias = bias + cos(omega * (p.query - p.key)) / (p.head + 1);
        return e + bias;
    });
    add("weights by another function", [](auto e, score_index) { return log(select(e > 0, e, 0.0 * e) + 0.1); });
    add("latent attention's rotary part", [=](auto e, score_index p) {
        auto turned = e;
        for (int i = 0; i < 4; ++i) turned = turned + 0.5 * q_rope(p.batch, p.query, i) * k_rope(p.batch, p.key, i);
        return turned;
    });
    add("checkerboard", [](auto e, score_index p) { return select((p.query + p.key) % 2 == 0, e * 0.5, e * 2); });
}

template <class T>
std::vector<named_function<T>> functions(const tables<T>& at)
{
    std::vector<named_function<T>> all;
    each_function(at, [&](const char* name, const auto& f) { all.push_back({name, f}); });
    return all;
}

// Functions with a learned lookup table: score::modified{score, table, f}.

/// T5: a number for each distance, constant beyond 16.
inline constexpr auto relative = [](auto e, score_index p, const auto& b) { return e + b(p.key - p.query + 16); };
/// Graphormer's spatial bias: a number for each distance in the graph, here between nodes i and i / 2.
inline constexpr auto spatial = [](auto e, score_index p, const auto& b) {
    return e + b(abs(p.query / 2 - p.key / 2));
};
/// Graphormer's edges: the mean of the numbers of the edges on a path, here three, with a number for each position on
/// the path.
inline constexpr auto edges = [](auto e, score_index p, const auto& b) {
    return e + (b(p.query % 7) + b((p.query + p.key) % 7 + 7) + b(p.key % 7 + 14)) / 3;
};

// Weights that are a function f of the score alone, f(e) ≥ 0, and are not normalized: softmax of log f(e) with a sink
// of weight 1, inverted. If f(e) is 0, the score is −inf and the key hidden, so log requires no offset.

/// log f(e) with f = max(0, ·), for normalize::softmax_with_sink{array<float, 1>{0}}
inline constexpr auto log_of_function = [](auto e, score_index) { return log(select(e > 0, e, 0.0 * e)); };
/// Σ_j f(e_j) v_j from contexts [B,S,D+1] of values with an appended 1: Z / (1 + Z) with Z = Σ_j f(e_j).
inline constexpr auto undone = [](const tensor auto& contexts) {
    const std::size_t D = shape_of(contexts)[2] - 1;
    const auto seen = ops::slice_columns(contexts, D, D + 1), all = constant_like(seen, shape_of(seen), 1);
    return ops::divide(ops::slice_columns(contexts, 0, D), ops::subtract(all, seen));
};

}  // namespace catalogue
