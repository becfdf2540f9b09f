// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <heed/core/dual_number.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/simd.hpp>
#include <heed/kernels/tile_rules.hpp>

/// α-entmax with a learned α in tiles: a rule of kernels/tile_rules.hpp. With δ = α − 1 = σ(a), of the head:
///
///     w_j = b_j^{1/δ},  b_j = [1 + δ (e_j − top − u)]₊,  u such that Σ_j w_j = 1       Peters et al. 2019, eq. 4
///     de_j = s_j (dw_j − m),  s_j = w_j / b_j = w_j^{1−δ}                              Correia et al. 2019
///     dδ = Σ_j w_j g_j (dw_j − m),  g_j = −(e^l − 1 − l) / δ²,  l = −ln b_j
///
/// as ops/entmax.hpp has them.
namespace heed::kernels::tiles {

/// σ(a); not 0, where a is so small that it would be.
template <class T>
T entmax_delta(T a)
{
    using std::exp;
    const T delta = 1 / (1 + exp(-a));
    return delta < T(1e-6) ? T(1e-6) : delta;
}

/// ln f (1 − e^{−x}) / x with x = share ln f, at least 0: of the norm f^share, how far it is above 1. A Padé
/// approximation from below, whose derivative at f = 1 is exact.
template <class V, class S>
HEED_SIMD_INLINE V above_one(V f, S share)
{
    const V log = simd::log(f), x = log * share;
    return log / (x * (x / 12 + V{} + 0.5F) + 1);
}

/// b^p for a normal b > 0, where that is at most 1: 2^{p log₂ b}. `x` is b − 1: near b = 1 the logarithm takes it, so
/// that nothing is lost where p is great. The polynomials, interpolated at the Chebyshev nodes, are 3e-8 off. Below
/// 2^−125 it stays there. NaN for x NaN.
HEED_SIMD_INLINE simd::vec<float> power_of(simd::vec<float> b, simd::vec<float> x, float p)
{
    using namespace simd;
    const vec<float> round = splat(12582912.0F);
    const mask<float> n = (bits_of(b) - bits_of(splat(0.70710678F))) >> 23;  // b = 2^n m with m in [√½, √2)
    const vec<float> m = bits_as(b, bits_of(b) - (n << 23)), f = select(n == 0, x, m - 1);
    const vec<float> logarithm =
        f * simd::detail::polynomial<float>(f, {1.4426950035679822, -0.7213474682495641, 0.4809107534594121,
                                                -0.3606932681352622, 0.28790326092449453, -0.2391698814021903,
                                                0.2160782255236259, -0.20586188050697654, 0.12310968466188424}) +
        __builtin_convertvector(n, vec<float>);
    const vec<float> y = max(splat(-125.0F), logarithm * p);
    const vec<float> shifted = as_written(y + round), r = y - as_written(shifted - round);
    const vec<float> power =
        simd::detail::polynomial<float>(r, {1.0, 0.6931472067028321, 0.24022650922288827, 0.05550327226670944,
                                            0.00961805667852609, 0.0013400428177419153, 0.0001546144646969172});
    return select(x == x, bits_as(power, bits_of(power) + ((bits_of(shifted) - bits_of(round)) << 23)), x);
}

template <class T>
class entmax_of_head;

/// Has the rule a number of each head? `of_head(number)` is then the rule of that head.
template <class Rule>
concept learned_rule = requires(const Rule& rule)
{
    rule.of_head(1.0);
};

/// z: top, the greatest score, and u, both 0 for a row without scores.
struct entmax {
    static constexpr std::size_t numbers = 2;
    static constexpr bool online = false, selects = true, sparse = true, divides = false, runs = false;
    static constexpr centre mean = centre::slopes;

    /// The rule of the head with this a.
    template <class T>
    entmax_of_head<T> of_head(T a) const
    {
        return entmax_of_head<T>(entmax_delta(a));
    }
};

template <class T>
class entmax_of_head : public entmax {
public:
    explicit entmax_of_head(T delta) : delta_(delta), inverse_(T(1) / delta) {}

    template <class V>
    HEED_SIMD_INLINE V weight(V e, const std::array<V, 2>& z) const
    {
        const V over = (e - z[0] - z[1]) * simd::splat(delta_);
        const auto none = (over <= -1) | hidden(e);
        return simd::select(none, V{}, power(simd::select(none, V{}, over)));
    }
    template <class V>
    HEED_SIMD_INLINE V slope(V weight) const
    {
        const auto none = weight <= 0;
        if constexpr (std::is_same_v<V, simd::vec<float>>) {
            const V least = simd::max(simd::splat(std::numeric_limits<float>::min()), weight);
            return simd::select(none, V{}, power_of(least, weight - 1, 1 - delta_));
        } else {
            const V log = simd::log(simd::select(none, V{} + 1, weight));
            return simd::select(none, V{}, simd::exp(log * simd::splat(1 - delta_)));
        }
    }
    /// How a weight changes with δ, but for the mean: w_j g_j. Near l = 0, where its parts cancel, by its series.
    template <class V>
    HEED_SIMD_INLINE V bend(V weight) const
    {
        const auto none = weight <= 0;
        const V log = simd::log(simd::select(none, V{} + 1, weight)), l = -log * simd::splat(delta_);
        V series = V{} + 1;
        constexpr int terms = std::numeric_limits<plain_number<T>>::digits > 24 ? 14 : 9;
        for (int k = terms; k >= 3; --k) series = 1 + l * series * simd::splat(T(1) / T(k));
        const V near = weight * log * log * series / 2;
        const V far = (simd::exp(log + l) - weight * (l + 1)) * simd::splat(inverse_ * inverse_);
        return simd::select(none, V{}, -simd::select(l < 0.5F, near, far));
    }

    /// u of the scores in each lane of a column, by Newton's method for the norm of b, from one that is too small.
    simd::vec<T> settle(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> top, simd::vec<T> u) const
    {
        using namespace simd;
        if (count == 0) return u;
        u = max(u, of_mean(count, scores, stride, top));
        scratch here;
        u = by_squares(count, scores, stride, top, u);
        if (const vec<T> least = bound(top, u); 4 * most_above(count, scores, stride, least) <= 3 * count) {
            T* const list = here.take<T>(count * simd::lanes<T>);
            count = above_bound(count, scores, stride, least, list);
            scores = list;
            stride = simd::lanes<T>;
        }
        const T enough = tolerance();
        bool last = false;
        for (int round = 0; round < 100; ++round) {
            vec<T> weights{}, slopes{}, bends{};
            for (std::size_t j = 0; j < count; ++j) {
                const vec<T> over = (load(scores + j * stride) - top - u) * splat(delta_);
                const auto none = over <= -1;
                const vec<T> x = select(none, vec<T>{}, over), w = select(none, vec<T>{}, power(x));
                const vec<T> inverse = 1 / (x + 1), s = w * inverse;
                weights += w;
                slopes += s;
                bends += s * inverse;
            }
            const vec<T> to = delta_ > T(0.5) ? better(u, weights, slopes) : best(u, weights, slopes, bends);
            const vec<T> step = select(slopes <= 0, vec<T>{}, to - u);
            u += step;
            if (last) break;
            last = !any(simd::max(step, -step) > splat(enough) * simd::max(u, vec<T>{} + 1));
            if (last && !dual_element<T>) break;  // a dual number's last step is what has the derivative
        }
        return u;
    }
    /// What is not above this has no weight.
    simd::vec<T> bound(simd::vec<T> top, simd::vec<T> u) const { return top + u - simd::splat(inverse_); }
    /// u when the greatest score becomes another one.
    static simd::vec<T> moved(simd::vec<T> u, simd::vec<T> by) { return simd::max(u - by, simd::vec<T>{}); }
    /// So many scores have a weight, at least.
    static constexpr std::size_t kept() { return 0; }
    /// u of one score alone.
    static constexpr double first = 0;

    /// A step of Newton's method for u: from Σ_j w_j and Σ_j s_j of the weights that this u gives, too large ones.
    simd::vec<T> better(simd::vec<T> u, simd::vec<T> weights, simd::vec<T> slopes) const
    {
        return u + weights * above_one(weights, simd::splat(delta_)) / slopes;
    }
    /// What comes back to a from what comes back to δ.
    T of_number(T d_delta) const { return delta_ * (1 - delta_) * d_delta; }
    /// What errors of u are small against.
    static T scale(T u) { return u < T(1) ? T(1) : u; }

private:
    /// A step of Halley's method for the norm of b, which is nearly straight: from Σ_j b_j^{1/δ−2}, too, which has to
    /// be finite near b = 0. Never so far that the greatest score loses its weight.
    HEED_SIMD_INLINE simd::vec<T> best(simd::vec<T> u, simd::vec<T> weights, simd::vec<T> slopes,
                                       simd::vec<T> bends) const
    {
        using namespace simd;
        const vec<T> above = above_one(weights, splat(delta_));
        const vec<T> bent = above * splat((1 - delta_) / 2) * (weights * bends / (slopes * slopes) - 1);
        const vec<T> step = above * weights / slopes / (1 - simd::min(vec<T>{} + 0.5F, bent));
        return simd::min(splat(inverse_ * T(1 - 1e-6)), u + step);
    }

    template <class V>
    HEED_SIMD_INLINE V power(V over) const
    {
        if constexpr (std::is_same_v<V, simd::vec<float>>) {
            return power_of(over + 1, over, inverse_);
        } else {
            return simd::exp(simd::log1p(over) * simd::splat(inverse_));
        }
    }

    /// A step after which u is right. What is left of a step is its cube; where 1/δ < 3, and a score that gets a weight
    /// changes a derivative at once, its power 1/δ. Where 1/δ < 2 the steps are Newton's.
    T tolerance() const
    {
        using std::pow;
        const double delta = static_cast<double>(value_of(delta_));
        const double epsilon = static_cast<double>(value_of(std::numeric_limits<T>::epsilon()));
        return static_cast<T>(pow(epsilon, std::max(delta > 0.5 ? 0.5 : 1.0 / 3, delta)) / 4);
    }

    /// u if all scores were their mean: with the same sum, no norm is less.
    simd::vec<T> of_mean(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> top) const
    {
        using namespace simd;
        const vec<T> none = splat(-std::numeric_limits<T>::infinity());
        vec<T> sum{}, seen{};
        for (std::size_t j = 0; j < count; ++j) {
            const vec<T> e = load(scores + j * stride);
            const auto hidden = e == none;
            sum += select(hidden, vec<T>{}, e - top);
            seen += select(hidden, vec<T>{}, vec<T>{} + 1);
        }
        seen = simd::max(seen, vec<T>{} + 1);
        return sum / seen + above_one(seen, splat(delta_));
    }

    /// u of a norm that needs no logarithm and is at most this one: of the power 2^k next above 1/δ.
    simd::vec<T> by_squares(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> top,
                            simd::vec<T> u) const
    {
        const auto inverse = value_of(inverse_);
        if (inverse <= 1) return by_power<0>(count, scores, stride, top, u);
        if (inverse <= 2) return by_power<1>(count, scores, stride, top, u);
        if (inverse <= 4) return by_power<2>(count, scores, stride, top, u);
        if (inverse <= 8) return by_power<3>(count, scores, stride, top, u);
        return u;
    }
    template <std::size_t k>
    simd::vec<T> by_power(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> top,
                          simd::vec<T> u) const
    {
        using namespace simd;
        constexpr int exponent = 1 << k;
        for (int round = 0; round < 20; ++round) {
            vec<T> weights{}, slopes{};
            for (std::size_t j = 0; j < count; ++j) {
                const vec<T> over = (load(scores + j * stride) - top - u) * splat(delta_) + 1;
                vec<T> w = select(over <= 0, vec<T>{}, over), s = select(over <= 0, vec<T>{}, vec<T>{} + 1);
                unrolled<k>([&](auto) {
                    s *= w;
                    w *= w;
                });
                weights += w;
                slopes += s;
            }
            const vec<T> norm = weights * above_one(weights, T(1) / exponent) * splat(inverse_) / slopes / exponent;
            const vec<T> step = select(slopes <= 0, vec<T>{}, norm);
            u += step;
            if (!any(step > 0.02F)) break;
        }
        return u;
    }

    /// How many scores are above the bound, in the lane with the most.
    static std::size_t most_above(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> bound)
    {
        using namespace simd;
        vec<T> above{};
        for (std::size_t j = 0; j < count; ++j)
            above += select(load(scores + j * stride) <= bound, vec<T>{}, vec<T>{} + 1);
        return static_cast<std::size_t>(value_of(simd::max(above)));
    }

    /// The scores above the bound of each lane, [slot][lane] with -inf behind them. Returns how many slots there are.
    static std::size_t above_bound(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> bound, T* list)
    {
        using namespace simd;
        T bounds[simd::lanes<T>];
        store(bounds, bound);
        std::size_t kept[simd::lanes<T>] = {};
        for (std::size_t j = 0; j < count; ++j) {
            const T* const at = scores + j * stride;
            for (std::size_t i = 0; i < simd::lanes<T>; ++i) {
                list[kept[i] * simd::lanes<T> + i] = at[i];
                kept[i] += at[i] <= bounds[i] ? 0 : 1;
            }
        }
        const std::size_t slots = *std::max_element(kept, kept + simd::lanes<T>);
        for (std::size_t i = 0; i < simd::lanes<T>; ++i)
            for (std::size_t j = kept[i]; j < slots; ++j)
                list[j * simd::lanes<T> + i] = -std::numeric_limits<T>::infinity();
        return slots;
    }

    T delta_, inverse_;
};

/// The same, with the a of the heads: ops::attend_tiled_with_op takes them.
template <class Vector>
struct entmax_with_shapes : entmax {
    using alone = entmax;
    const Vector& of_heads;
};

}  // namespace heed::kernels::tiles
