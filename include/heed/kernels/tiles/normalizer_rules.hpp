// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>

/// Normalizers in tiles: each weight of a row is a function of its score and of a few numbers z of the row.
///
///     w_j = weight(e_j, z)            de_j = slope(w_j) (dw_j − m)
///
/// m: see `center`. A hidden score, -inf, has weight 0 for any z; if a row contains NaN or +inf, z may be NaN. A rule's
/// constants define how z is found:
///
///     online       in the same pass as the contexts: softmax
///     two_passes   in a first pass over all scores: sparsemax, entmax, top-k (kernels/tiles/selection.hpp)
///     neither      z is known: sigmoid
///     sequential   weights depend on those of later keys: tiles run from the last key to the first (stick-breaking)
///     divides      z ends with 1 / Σ_j weight_j, which the pass over the values sums
///     sparse       weights may be 0: tiles without weights are skipped
namespace heed::inline HEED_TARGET::kernels::tiles {

/// The mean that is subtracted from the gradient of a weight.
enum class center {
    none,     // 0
    weights,  // Σ_k w_k dw_k
    slopes    // Σ_k slope_k dw_k / Σ_k slope_k
};

/// Is this score hidden?
template <class V>
HEED_SIMD_INLINE auto hidden(V e)
{
    return e == -std::numeric_limits<std::remove_cvref_t<decltype(e[0])>>::infinity();
}

/// For normalizers that have no rule.
struct no_rule {};

/// A rule with a number for each head, an argument of ops::attend_tiled_op.
template <class Rule, class Numbers>
struct with_numbers_of_heads : Rule {
    using alone = Rule;
    const Numbers& of_heads;
};

/// Does the rule depend on that number? `of_head(number)` is then the rule of that head.
template <class Rule>
concept learned_rule = requires(const Rule& rule)
{
    rule.of_head(1.0);
};

/// A rule for scores that are multiplied by a number, after all other modifications.
template <class Rule>
struct of_scaled_scores {
    Rule rule;
    double factor;

    bool fits() const requires requires(const Rule& alone) { alone.fits(); }
    {
        return rule.fits();
    }
};
/// A normalizer's rule for scores that are multiplied by `factor`; no_rule stays no_rule.
template <class Rule>
auto scaled_before(Rule rule, double factor)
{
    if constexpr (std::is_same_v<Rule, no_rule>) {
        return rule;
    } else if constexpr (requires { rule.rule; }) {
        return of_scaled_scores<decltype(rule.rule)>{rule.rule, rule.factor * factor};
    } else {
        return of_scaled_scores<Rule>{rule, factor};
    }
}

/// w_j = e^{e_j} / (e^sink + Σ_k e^{e_k}), with the head's sink. z: top, the maximum score, and 1 / divisor, for
/// e^{e_j − top}; the logarithm of the divisor would lose digits.
struct softmax {
    static constexpr std::size_t numbers = 2;
    static constexpr bool online = true, two_passes = false, sparse = false, divides = false, sequential = false;
    static constexpr center mean = center::weights;

    template <class V>
    HEED_SIMD_INLINE V weight(V e, const std::array<V, 2>& z) const
    {
        return simd::select(hidden(e), V{}, simd::exp(e - z[0]) * z[1]);
    }
    HEED_SIMD_INLINE static auto slope(auto weight) { return weight; }
};

/// w_j = σ(e_j + bias)
template <class Bias>
struct sigmoid_by {
    static constexpr std::size_t numbers = 0;
    static constexpr bool online = false, two_passes = false, sparse = false, divides = false, sequential = false;
    static constexpr center mean = center::none;
    Bias bias{};

    template <class V>
    HEED_SIMD_INLINE V weight(V e, const std::array<V, 0>&) const
    {
        using T = std::remove_cvref_t<decltype(e[0])>;
        return simd::select(hidden(e), V{}, simd::sigmoid(e + (V{} + static_cast<T>(bias))));
    }
    HEED_SIMD_INLINE static auto slope(auto weight) { return weight * (1 - weight); }
};
using sigmoid = sigmoid_by<double>;

/// σ(e_j + bias) with a learned bias, of one head.
template <class T>
struct sigmoid_of_head : sigmoid_by<T> {
    /// ∂w/∂bias, and the gradient of the head's number from that of the bias.
    HEED_SIMD_INLINE static auto bend(auto weight) { return sigmoid_by<T>::slope(weight); }
    static T of_number(T d_bias) { return d_bias; }
};
/// The rule of each head.
struct learned_sigmoid : sigmoid {
    template <class T>
    sigmoid_of_head<T> of_head(T by) const
    {
        return {{by}};
    }
};

/// w_j = σ(e_j) Π_{k>j} (1 − σ(e_k)); the product, `stick`, runs from the last key to the first.
///
///     de_j = (1 − σ(e_j)) w_j dw_j − σ(e_j) Σ_{i<j} w_i dw_i
struct stick_breaking {
    static constexpr std::size_t numbers = 0;
    static constexpr bool online = false, two_passes = false, sparse = false, divides = false, sequential = true;
    static constexpr center mean = center::weights;

    /// The rest of the stick, and its rounding error: thousands of parts may each be too small to change `left`.
    template <class V>
    struct stick {
        V left = V{} + 1, lost{};
    };

    /// Sets `part` to σ(e).
    template <class V>
    HEED_SIMD_INLINE static V next_weight(V e, stick<V>& rest, V& part)
    {
        const auto none = hidden(e);
        const V power = simd::exp(simd::min(e, -e)), greater = 1 / (power + 1), smaller = power * greater;
        const auto most = e > 0;  // if most is taken, 1 − σ(e) is exact to rounding, but 1 − part is not
        part = simd::select(most, greater, smaller);
        const V weight = simd::select(none, V{}, part * rest.left), taken = weight - rest.lost;  // left may be NaN
        const V left = simd::as_written(rest.left - taken), lost = simd::as_written(rest.left - left) - taken;
        rest.left = simd::select(most, rest.left * smaller, left);
        rest.lost = simd::select(most, rest.lost * smaller, lost);
        return weight;
    }
    /// w_j dw_j; of a weight of 0, dw may be NaN.
    template <class V>
    HEED_SIMD_INLINE static V pulled(V weight, V d_weight)
    {
        return simd::select(weight == V{}, V{}, weight * d_weight);
    }
    /// `later`: Σ w_i dw_i from this key on; `all`: over all keys. After a part of 1 nothing is left: `all − later`
    /// must be exactly 0, since the score's slope may be infinite.
    template <class V>
    HEED_SIMD_INLINE static V later_than(V part, V later, V all)
    {
        return simd::select(part == V{} + 1, all, later);
    }
    /// `before`: Σ_{i<j} w_i dw_i.
    template <class V>
    HEED_SIMD_INLINE static V gradient(V part, V pulled, V before)
    {
        return simd::select(part == V{}, V{}, (1 - part) * pulled - part * before);
    }
};

/// w_j = max((e_j − top) / power − τ, 0)^power: sparsemax (1) and 1.5-entmax (2). z: top, the maximum score, and τ,
/// both 0 for a row without scores.
template <int power>
struct sparse_weights {
    static constexpr std::size_t numbers = 2;
    static constexpr bool online = false, two_passes = true, sparse = true, divides = false, sequential = false;
    static constexpr center mean = center::slopes;

    template <class V>
    HEED_SIMD_INLINE V weight(V e, const std::array<V, 2>& z) const
    {
        const V x = power == 1 ? e - z[0] - z[1] : (e - z[0]) / 2 - z[1];
        const V over = simd::select((x <= 0) | hidden(e), V{}, x);
        return power == 1 ? over : over * over;
    }
    template <class V>
    HEED_SIMD_INLINE static V slope(V weight)
    {
        if constexpr (power == 1) {
            return simd::select(weight > 0, V{} + 1, V{});
        } else {
            return simd::sqrt(weight);
        }
    }

    /// τ of the scores in each lane of a column, by Newton's method from a start that is too small. With a score of
    /// +inf no τ exists, as in kernels/sparse.hpp.
    template <class T>
    simd::vec<T> solve(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> top, simd::vec<T> tau) const
    {
        using namespace simd;
        const T enough = 8 * std::numeric_limits<T>::epsilon();
        for (int round = 0; round < 60; ++round) {
            vec<T> weights{}, slopes{};
            for (std::size_t j = 0; j < count; ++j) {
                // A NaN score is ignored here, as in kernels/sparse.hpp: only its weight is NaN.
                const vec<T> e = load(scores + j * stride), x = power == 1 ? e - top - tau : (e - top) / 2 - tau;
                const vec<T> over = select(x > 0, x, vec<T>{});
                weights += power == 1 ? over : over * over;
                slopes += power == 1 ? select(over > 0, vec<T>{} + 1, vec<T>{}) : over;
            }
            const vec<T> next = better(tau, weights, slopes), step = next - tau;
            tau = select(slopes == 0, tau, next);
            if (!any(simd::max(step, -step) > enough * simd::max(tau, -tau))) break;
        }
        const T infinite = std::numeric_limits<T>::infinity();
        return select(top == infinite, splat(std::numeric_limits<T>::quiet_NaN()), tau);
    }
    /// Scores up to this bound have no weight.
    static auto bound(auto top, auto tau) { return top + tau * power; }
    /// τ after the maximum score changes.
    static auto moved(auto tau, auto by) { return tau - by / power; }
    /// The minimum number of scores with a weight.
    static constexpr std::size_t kept() { return 0; }
    /// τ of a single score.
    static constexpr double first = -1;
    /// The scale for errors of τ.
    static auto scale(auto tau) { return -tau; }

    /// A step of Newton's method for τ: from Σ_j w_j and Σ_j slope_j of the weights for this τ, which are too large.
    static auto better(auto tau, auto weights, auto slopes) { return tau + (weights - 1) / (slopes * power); }
};

/// The maximum number of scores of a row in a selection.
inline constexpr std::size_t scores_kept = 160;

/// softmax over the k largest scores (and those equal to the k-th). z: the maximum score, the smallest score with a
/// weight, and 1 / divisor, as in softmax.
struct top_k {
    static constexpr std::size_t numbers = 3;
    static constexpr bool online = false, two_passes = true, sparse = true, divides = true, sequential = false;
    static constexpr center mean = center::weights;
    std::size_t k = 1;

    template <class V>
    HEED_SIMD_INLINE V weight(V e, const std::array<V, 3>& z) const
    {
        const auto known = z[2] == z[2];  // in a row with a NaN, no score is selected
        return simd::select(((e < z[1]) & known) | hidden(e), V{}, simd::exp(e - z[0]) * z[2]);
    }
    HEED_SIMD_INLINE static auto slope(auto weight) { return weight; }

    /// The k-th largest score in each lane of a column, by bisection; −inf if there are fewer than k.
    template <class T>
    simd::vec<T> solve(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> top, simd::vec<T>) const
    {
        using namespace simd;
        const vec<T> nothing = splat(-std::numeric_limits<T>::infinity()), many = splat(static_cast<T>(k));
        const auto reaches = [&](auto least) {
            vec<T> those{};
            for (std::size_t j = 0; j < count; ++j)
                those += select(load(scores + j * stride) >= least, vec<T>{} + 1, vec<T>{});
            return those >= many;
        };
        vec<T> low = top;  // reached by k scores, unless there are fewer
        for (std::size_t j = 0; j < count; ++j) {
            const vec<T> e = load(scores + j * stride);
            low = select(e == nothing, low, simd::min(low, e));
        }
        vec<T> above = top;  // not reached, unless many scores equal the maximum
        for (;;) {
            const vec<T> middle = low + (above - low) / 2;
            const auto between = (middle > low) & (middle < above);
            if (!any(between)) break;
            const auto reached = reaches(middle);
            low = select(between & reached, middle, low);
            above = select(between & ~reached, middle, above);
        }
        low = select(reaches(above), above, low);
        return select(reaches(low), low, nothing);
    }
    static auto bound(auto, auto least) { return least; }
    static auto moved(auto least, auto) { return least; }
    /// The number of scores with a weight.
    std::size_t kept() const { return k; }
    bool fits() const { return k <= scores_kept; }  // k scores of each row are kept while keys are processed
    static constexpr double first = -std::numeric_limits<double>::infinity();
};

}  // namespace heed::inline HEED_TARGET::kernels::tiles
