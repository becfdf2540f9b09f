// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/tiles_in_bfloat16.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/parallel.hpp>
#include <heed/masks/predicates.hpp>
#include <support/bfloat16.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::bounded, support::random;

// Contexts and gradients against the definition, one number at a time, which also computes how far rounding may take
// each result (support::bounded).

namespace {

using kernels::tiles::unmasked;
using kernels::tiles::unmodified;

struct size {
    std::size_t S, T, heads, groups, d, D;
};
struct inputs {
    array<float, 3> q, k, v, d_contexts;
    ops::heads_of how;
};
inputs numbers(const size& z, double spread = 1)
{
    return {random<float>({1, z.S, z.heads * z.d}, 1, spread),
            random<float>({1, z.T, z.groups * z.d}, 2, spread),
            random<float>({1, z.T, z.groups * z.D}, 3),
            random<float>({1, z.S, z.heads * z.D}, 4),
            {z.heads, z.groups, 0.7}};
}

/// Contexts and gradients.
template <class Number>
struct results {
    std::vector<Number> contexts, q, k, v;
};

template <class Operation>
results<float> results_of(const Operation& attend, const inputs& x)
{
    ad::tape<float> on;
    const auto Q = on.parameter(x.q), K = on.parameter(x.k), V = on.parameter(x.v);
    const auto contexts = attend(Q, K, V, lengths::full(1, x.k.shape()[1]), x.how);
    on.backward(ops::dot(contexts, x.d_contexts));
    const auto listed = [](const auto& of) { return std::vector<float>(of.data, of.data + of.size()); };
    return {listed(contexts.value()), listed(on.gradient(Q)), listed(on.gradient(K)), listed(on.gradient(V))};
}

/// Which numbers multiply in the definition: those of float, which rounding may move, or the rounded ones.
enum class operands { of_float, of_bfloat16 };

/// The definition. `sees(s, t)` and the number added to a score; a key that no query sees is not read.
results<bounded> by_definition(
    const size& z, const inputs& x, operands which, const std::function<bool(std::size_t, std::size_t)>& sees,
    const std::function<double(std::size_t, std::size_t)>& added = [](std::size_t, std::size_t) { return 0; })
{
    const auto operand = [&](float number) {
        return which == operands::of_float ? support::in_bfloat16(bounded(number))
                                           : bounded(support::rounded_to_bfloat16(number));
    };
    results<bounded> all{std::vector<bounded>(z.S * z.heads * z.D), std::vector<bounded>(z.S * z.heads * z.d),
                         std::vector<bounded>(z.T * z.groups * z.d), std::vector<bounded>(z.T * z.groups * z.D)};
    const float scale = static_cast<float>(x.how.scale);
    for (std::size_t h = 0; h < z.heads; ++h) {
        const std::size_t g = h * z.groups / z.heads;
        for (std::size_t s = 0; s < z.S; ++s) {
            const float *const q = &x.q(0, s, h * z.d), *const d_context = &x.d_contexts(0, s, h * z.D);
            const auto key = [&](std::size_t t, std::size_t i) { return operand(x.k(0, t, g * z.d + i)); };
            const auto value = [&](std::size_t t, std::size_t i) { return operand(x.v(0, t, g * z.D + i)); };
            std::vector<std::size_t> seen;
            std::vector<bounded> weights;
            double top = -std::numeric_limits<double>::infinity();
            for (std::size_t t = 0; t < z.T; ++t) {
                if (!sees(s, t)) continue;
                bounded e;
                for (std::size_t i = 0; i < z.d; ++i) e += operand(scale * q[i]) * key(t, i);
                e += added(s, t);
                seen.push_back(t);
                weights.push_back(e);
                top = std::max(top, e.value);
            }
            if (seen.empty()) continue;
            bounded total;
            for (bounded& w : weights) total += w = exp(w - bounded(top));
            bounded mean;
            for (std::size_t i = 0; i < z.D; ++i) {
                bounded sum;
                for (std::size_t n = 0; n < seen.size(); ++n)
                    sum += support::in_bfloat16(weights[n]) * value(seen[n], i);
                const bounded context = sum / total;
                all.contexts[(s * z.heads + h) * z.D + i] = context;
                mean += context * bounded(d_context[i]);
            }
            for (std::size_t n = 0; n < seen.size(); ++n) {
                const std::size_t t = seen[n];
                const bounded w = weights[n] / total;
                bounded d_weight;
                for (std::size_t i = 0; i < z.D; ++i) {
                    d_weight += operand(d_context[i]) * value(t, i);
                    all.v[(t * z.groups + g) * z.D + i] += support::in_bfloat16(w) * operand(d_context[i]);
                }
                const bounded d_score = support::in_bfloat16(w * (d_weight - mean) * bounded(scale));
                for (std::size_t i = 0; i < z.d; ++i) {
                    all.q[(s * z.heads + h) * z.d + i] += d_score * key(t, i);
                    all.k[(t * z.groups + g) * z.d + i] += d_score * operand(q[i]);
                }
            }
        }
    }
    return all;
}

/// The largest distance, in units of the rounding bound; infinite where a number is NaN. `widest`: the largest
/// bound.
double distance(const std::vector<float>& is, const std::vector<bounded>& must, double& widest)
{
    if (is.size() != must.size()) return std::numeric_limits<double>::infinity();
    double worst = 0;
    for (std::size_t i = 0; i < is.size(); ++i) {
        const double off = std::fabs(static_cast<double>(is[i]) - must[i].value);
        widest = std::max(widest, must[i].error / (1 + std::fabs(must[i].value)));
        if (!(off <= must[i].error)) worst = std::max(worst, must[i].error > 0 ? off / must[i].error : 1e9);
        if (std::isnan(off)) return std::numeric_limits<double>::infinity();
    }
    return worst;
}
void check_near(const results<float>& is, const results<bounded>& must, double widest_bound)
{
    double widest = 0, any = 0;
    CHECK(distance(is.contexts, must.contexts, widest) <= 1);
    CHECK(distance(is.v, must.v, widest) <= 1);
    CHECK(distance(is.q, must.q, any) <= 1);  // where much cancels
    CHECK(distance(is.k, must.k, any) <= 1);
    CHECK(widest <= widest_bound);  // or the test would test nothing
}

template <class Mask = unmasked>
ops::attend_tiled_in_bfloat16_op<unmodified, Mask> in_bfloat16(const Mask& mask = {})
{
    return {unmodified{}, mask};
}

const size sizes[] = {{1, 1, 1, 1, 1, 1},     {3, 5, 2, 1, 4, 3},    {70, 200, 2, 1, 5, 17}, {33, 97, 1, 1, 16, 33},
                      {5, 400, 1, 1, 64, 64}, {130, 99, 4, 2, 3, 9}, {40, 31, 1, 1, 7, 1},   {150, 301, 1, 1, 3, 4}};

}  // namespace

TEST_CASE("contexts and gradients are those of the definition with rounded operands")
{
    for (const size& z : sizes) {
        CAPTURE(z.S);
        CAPTURE(z.T);
        const inputs x = numbers(z);
        const auto all = [](std::size_t, std::size_t) { return true; };
        // With S > T the first queries see nothing: 0.
        const auto not_behind_here = [&](std::size_t s, std::size_t t) { return t + z.S <= z.T + s; };
        check_near(results_of(in_bfloat16(), x), by_definition(z, x, operands::of_bfloat16, all), 0.1);
        check_near(results_of(in_bfloat16(not_behind{}), x),
                   by_definition(z, x, operands::of_bfloat16, not_behind_here), 0.1);
        const auto in_window = [&](std::size_t s, std::size_t t) {
            return t + z.S < z.T + s + 38 && z.T + s < t + z.S + 38;
        };
        check_near(results_of(in_bfloat16(sliding_window{38}), x),
                   by_definition(z, x, operands::of_bfloat16, in_window), 0.1);
    }
}

TEST_CASE("contexts and gradients equal those of float except for rounding operands to 8 bits")
{
    for (const size& z : sizes) {
        CAPTURE(z.S);
        CAPTURE(z.T);
        const inputs x = numbers(z, 0.3);
        const auto not_behind_here = [&](std::size_t s, std::size_t t) { return t + z.S <= z.T + s; };
        const auto is = results_of(in_bfloat16(not_behind{}), x);
        const auto in_float = results_of(ops::attend_tiled_op{unmodified{}, not_behind{}}, x);
        auto must = by_definition(z, x, operands::of_float, not_behind_here);
        const auto around = [](std::vector<bounded>& bounds, const std::vector<float>& values) {
            REQUIRE(bounds.size() == values.size());
            for (std::size_t i = 0; i < values.size(); ++i) bounds[i].value = static_cast<double>(values[i]);
        };
        around(must.contexts, in_float.contexts);
        around(must.q, in_float.q);
        around(must.k, in_float.k);
        around(must.v, in_float.v);
        check_near(is, must, 0.25);
        CHECK(is.contexts != in_float.contexts);
    }
}

TEST_CASE("every product rounds its operands: exactly, where weights and gradients of scores are not rounded")
{
    // All scores are 0, so that the weights are 1/64. Values `one`, which is rounded to 1 + 2^-7, and 0, and ∂c = 1,
    // make ∂e = ±(1 + 2^-7) / 128.
    constexpr float one = 1 + 1.0F / 256 + 1.0F / 4096;
    constexpr std::size_t S = 40, T = 64;
    const size z{S, T, 1, 1, 5, 1};
    const auto rounded = [](float x) { return static_cast<double>(support::rounded_to_bfloat16(x)); };
    const auto is_near = [](float is, double must) { return std::fabs(static_cast<double>(is) - must) <= 1e-6; };
    const auto check = [&](bool zero_queries, bool whole) {
        inputs x = numbers(z);
        x.how.scale = 1;
        (zero_queries ? x.q : x.k).fill(0);
        for (std::size_t t = 0; whole && t < T; ++t) x.v(0, t, 0) = t % 2 == 0 ? one : 0;
        if (whole) x.d_contexts.fill(1);
        const auto is = results_of(in_bfloat16(), x);
        double context = 0, d_value = 0;
        for (std::size_t t = 0; t < T; ++t) context += rounded(x.v(0, t, 0)) / T;
        for (std::size_t s = 0; s < S; ++s) d_value += rounded(x.d_contexts(0, s, 0)) / T;
        CHECK(std::all_of(is.contexts.begin(), is.contexts.end(), [&](float c) { return is_near(c, context); }));
        CHECK(std::all_of(is.v.begin(), is.v.end(), [&](float d) { return is_near(d, d_value); }));
        if (!whole) return;
        std::size_t wrong = 0;
        const auto d_score = [&](std::size_t t) { return (t % 2 == 0 ? 1 : -1) * rounded(one) / 2 / T; };
        for (std::size_t i = 0; i < z.d; ++i) {
            double to_query = 0, to_key = 0;  // of any query; of any key, without ∂e
            for (std::size_t t = 0; t < T; ++t) to_query += d_score(t) * rounded(x.k(0, t, i));
            for (std::size_t s = 0; s < S; ++s) to_key += rounded(x.q(0, s, i));
            for (std::size_t s = 0; s < S; ++s) wrong += !is_near(is.q[s * z.d + i], to_query);
            for (std::size_t t = 0; t < T; ++t) wrong += !is_near(is.k[t * z.d + i], d_score(t) * to_key);
        }
        CHECK(wrong == 0);
    };
    for (const bool zero_queries : {false, true}) {
        check(zero_queries, false);
        check(zero_queries, true);
    }
}

TEST_CASE("a function of the score and a mask; other rules")
{
    const size z{37, 110, 2, 1, 5, 6};
    const inputs x = numbers(z);
    const auto alibi = [](auto e, score_index p) { return e - 0.1 * abs(p.query - p.key); };
    const auto must = by_definition(
        z, x, operands::of_bfloat16, [&](std::size_t s, std::size_t t) { return t + z.S <= z.T + s; },
        [](std::size_t s, std::size_t t) { return -0.1 * std::fabs(static_cast<double>(s) - static_cast<double>(t)); });
    check_near(results_of(ops::attend_tiled_in_bfloat16_op<decltype(alibi), not_behind>{alibi, not_behind{}}, x), must,
               0.1);
    // Sparsemax takes two passes. Its weights differ at most as the scores do: by 2 · 2^-8 of 0.7 Σ |q k| < 5 here.
    using sparse = kernels::tiles::sparse_weights<1>;
    const inputs small = numbers(z, 0.5);
    const auto is = results_of(ops::attend_tiled_in_bfloat16_op<unmodified, unmasked, sparse>{{}, {}}, small);
    const auto in_float = results_of(ops::attend_tiled_op<unmodified, unmasked, sparse>{{}, {}}, small);
    CHECK(is.contexts != in_float.contexts);
    double worst = 0;
    for (std::size_t i = 0; i < is.contexts.size(); ++i)
        worst =
            std::max(worst, std::fabs(static_cast<double>(is.contexts[i]) - static_cast<double>(in_float.contexts[i])));
    CHECK(worst <= 0.1);
}

TEST_CASE("a key that no query sees, and its value, may be NaN or infinite")
{
    const size z{70, 130, 2, 1, 5, 6};
    const mask_mod others{[](const score_index& p) { return (p.key != 3) & (p.key != 101); }};
    const auto sees = [](std::size_t, std::size_t t) { return t != 3 && t != 101; };
    for (const float special : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        inputs x = numbers(z, 0.5);
        for (const std::size_t t : {std::size_t{3}, std::size_t{101}}) {
            x.k(0, t, 2) = special;
            x.v(0, t, 1) = special;
        }
        const auto is = results_of(in_bfloat16(others), x);
        // Blocks with such a number are computed again in float: nearer to float, and not nearer to rounded operands.
        check_near(is, by_definition(z, x, operands::of_float, sees), 0.25);
        for (std::size_t i = 0; i < z.D; ++i) CHECK(is.v[3 * z.D + i] == 0);
        for (std::size_t i = 0; i < z.d; ++i) CHECK(is.k[3 * z.d + i] == 0);
    }
}

TEST_CASE("a query that sees nothing gets 0, and so do its gradients")
{
    const size z{40, 9, 1, 1, 5, 6};  // of causal queries, the last 9 see a key
    const auto is = results_of(in_bfloat16(not_behind{}), numbers(z));
    CHECK(std::all_of(is.contexts.begin(), is.contexts.begin() + 31 * z.D, [](float c) { return c == 0; }));
    CHECK(std::all_of(is.q.begin(), is.q.begin() + 31 * z.d, [](float d) { return d == 0; }));
    CHECK(std::any_of(is.contexts.begin() + 31 * z.D, is.contexts.end(), [](float c) { return c != 0; }));
}

TEST_CASE("scores of ±10,000")
{
    const size z{33, 120, 1, 1, 5, 6};
    const inputs x = numbers(z, 80);
    float most = 0;
    for (std::size_t s = 0; s < z.S; ++s) {
        for (std::size_t t = 0; t < z.T; ++t) {
            float e = 0;
            for (std::size_t i = 0; i < z.d; ++i) e += 0.7F * x.q(0, s, i) * x.k(0, t, i);
            most = std::max(most, std::fabs(e));
        }
    }
    REQUIRE(most > 1e4F);
    // Scores themselves are rounded by up to 0.001 in float.
    const auto all = [](std::size_t, std::size_t) { return true; };
    check_near(results_of(in_bfloat16(), x), by_definition(z, x, operands::of_bfloat16, all), 0.5);
}

TEST_CASE("the same bits each time, at any number of threads")
{
    const inputs x = numbers({70, 130, 2, 1, 5, 6});
    results<float> first;
    for (const std::size_t threads : {1u, 2u, 3u}) {
        set_threads(threads);
        const auto once = results_of(in_bfloat16(not_behind{}), x), again = results_of(in_bfloat16(not_behind{}), x);
        if (threads == 1) first = once;
        CHECK(once.contexts == first.contexts);
        CHECK((once.q == again.q && once.k == again.k && once.v == again.v));
    }
    set_threads(1);
}
