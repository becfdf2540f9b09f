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
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/simd/simd.hpp>

/// α-entmax with a learned α in tiles: a rule of kernels/tiles/normalizer_rules.hpp. δ = α − 1 = σ(a), where each head
/// has a number a:
///
///     w_j = b_j^{1/δ},  b_j = [1 + δ (e_j − top − u)]₊,  u such that Σ_j w_j = 1       Peters et al. 2019, eq. 4
///     de_j = s_j (dw_j − m),  s_j = w_j / b_j = w_j^{1−δ}                              Correia et al. 2019
///     dδ = Σ_j w_j g_j (dw_j − m),  g_j = −(e^l − 1 − l) / δ²,  l = −ln b_j
///
/// as in normalize/entmax.hpp.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// σ(a); not 0, even if σ(a) underflows.
template <class T>
T entmax_delta(T a)
{
    using std::exp;
    const T delta = 1 / (1 + exp(-a));
    return delta < T(1e-6) ? T(1e-6) : delta;
}

/// ln f (1 − e^{−x}) / x with x = share ln f: the excess of the norm f^share over 1. A Padé approximation that never
/// exceeds the exact value in magnitude, with the exact derivative at f = 1.
template <class V, class S>
HEED_SIMD_INLINE V above_one(V f, S share)
{
    const V log = simd::log(f), x = log * share;
    return log / (x * (x / 12 + V{} + 0.5F) + 1);
}

namespace detail {

/// y = Σ_i c[i] x^i for n registers in parallel.
template <std::size_t n, std::size_t N>
HEED_SIMD_INLINE void polynomials(const simd::vec<float> (&x)[n], const double (&c)[N], simd::vec<float> (&y)[n])
{
    using namespace simd;
    unrolled<n>([&](auto i) { y[i] = splat(static_cast<float>(c[N - 1])); });
    unrolled<N - 1>([&](auto k) {
        unrolled<n>([&](auto i) { y[i] = simd::fma(y[i], x[i], splat(static_cast<float>(c[N - 2 - k]))); });
    });
}

/// power_of for n registers in parallel, since its steps depend on each other.
template <bool rough, std::size_t n>
HEED_SIMD_INLINE void powers_of(const simd::vec<float> (&b)[n], const simd::vec<float> (&x)[n], float p,
                                simd::vec<float> (&power)[n])
{
    using namespace simd;
    using V = vec<float>;
    const V round = splat(12582912.0F);
    mask<float> exponent[n];  // b = 2^exponent m with m in [√½, √2)
    V f[n], logarithm[n], r[n];
    unrolled<n>([&](auto i) { exponent[i] = (bits_of(b[i]) - bits_of(splat(0.70710678F))) >> 23; });
    unrolled<n>([&](auto i) {
        const V m = bits_as(b[i], bits_of(b[i]) - (exponent[i] << 23));
        f[i] = rough ? m - 1 : select(exponent[i] == 0, x[i], m - 1);
    });
    if constexpr (rough) {
        polynomials(
            f, {1.4426404642832156, -0.7206292158599134, 0.4857378424426228, -0.3896752237917966, 0.25028784696100403},
            logarithm);
    } else {
        polynomials(f,
                    {1.4426950035679822, -0.7213474682495641, 0.4809107534594121, -0.3606932681352622,
                     0.28790326092449453, -0.2391698814021903, 0.2160782255236259, -0.20586188050697654,
                     0.12310968466188424},
                    logarithm);
    }
    unrolled<n>([&](auto i) {
        logarithm[i] = simd::fma(f[i], logarithm[i], __builtin_convertvector(exponent[i], V));
        const V y = max(splat(-125.0F), logarithm[i] * p);
        const V shifted = as_written(y + round);
        exponent[i] = (bits_of(shifted) - bits_of(round)) << 23;
        r[i] = y - as_written(shifted - round);
    });
    if constexpr (rough) {
        polynomials(r, {0.9999245569508709, 0.6931367338836214, 0.24263947854625845, 0.055838282946220126}, power);
    } else {
        polynomials(r,
                    {1.0, 0.6931472067028321, 0.24022650922288827, 0.05550327226670944, 0.00961805667852609,
                     0.0013400428177419153, 0.0001546144646969172},
                    power);
    }
    unrolled<n>([&](auto i) {
        power[i] = bits_as(power[i], bits_of(power[i]) + exponent[i]);
        if constexpr (!rough) power[i] = select(x[i] == x[i], power[i], x[i]);
    });
}

}  // namespace detail

/// b^p for a normal b > 0 if the result is at most 1: 2^{p log₂ b}. `x` is b − 1, which the logarithm uses near b = 1,
/// so that a large p loses no precision. Polynomials at Chebyshev nodes, error 3e-8. At least 2^−125. NaN if x is NaN.
/// `rough`: error 2e-4 at p log₂ b = −2 and 1e-3 at −20; x is not read.
template <bool rough = false>
HEED_SIMD_INLINE simd::vec<float> power_of(simd::vec<float> b, simd::vec<float> x, float p)
{
    const simd::vec<float> bases[1] = {b}, over[1] = {x};
    simd::vec<float> power[1];
    detail::powers_of<rough>(bases, over, p, power);
    return power[0];
}

template <class T>
class entmax_of_head;

/// The numbers z of a row are top, the maximum score, and u; both are 0 for a row without scores.
struct entmax {
    static constexpr std::size_t numbers = 2;
    static constexpr bool online = false, two_passes = true, sparse = true, divides = false, sequential = false;
    static constexpr center mean = center::slopes;

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

    /// Converts a row of scores to weights.
    template <std::size_t n>
    HEED_SIMD_INLINE void weights(const std::array<row<T, n>, 2>& z, row<T, n>& e) const
    {
        using namespace simd;
        vec<T> over[n], b[n], power[n];
        unrolled<n>([&](auto i) { over[i] = e.at[i] - z[0].at[i] - z[1].at[i]; });
        pow<false>(over, inverse_, b, power);
        unrolled<n>([&](auto i) { e.at[i] = select(hidden(e.at[i]), vec<T>{}, power[i]); });
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
    /// The derivative of a weight with respect to δ, without the mean: w_j g_j. Near l = 0, where its terms cancel, its
    /// series is used.
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

    /// u of the scores in each lane of a column, by Newton's or Halley's method for the norm of b. The first steps use
    /// a sample of the scores, and approximate powers with an error of 2e-4.
#if defined(__GNUC__) && !defined(__clang__)
    [[gnu::optimize("no-tree-slp-vectorize")]]  // g++ 12 crashes in this pass at -O3 where T is a dual number
#endif
    simd::vec<T>
    solve(std::size_t count, const T* scores, std::size_t stride, simd::vec<T> top, simd::vec<T> u) const
    {
        using namespace simd;
        if (count == 0) return u;
        const std::size_t apart = std::max(std::size_t{1}, count / sample);
        const column some{count / apart, scores, stride * apart, top};
        const bool rough = delta_ > T(1e-3);
        u = max(u, of_mean(some, static_cast<T>(apart)));
        if (apart > 1) u = near(rough, some, u, static_cast<T>(apart));
        scratch here;
        column all{count, scores, stride, top};
        if (apart > 1 && rough && 4 * most_above(some, bound(top, u)) <= some.count) {
            T* const list = here.take<T>(count * simd::lanes<T>);
            all = {above_bound(all, bound(top, too_small(sums_of<true>(all, u), u)), list), list, simd::lanes<T>, top};
        }
        u = near(rough, all, u, T(1));
        const T enough = tolerance();
        bool last = false;
        for (int round = 0; round < 100; ++round) {
            const vec<T> step = step_of(sums_of<false>(all, u), u, T(1));
            u += step;
            if (last) break;
            last = !any(simd::max(step, -step) > splat(enough) * simd::max(u, vec<T>{} + 1));
            if (last && !dual_element<T>) break;  // a dual number gets its derivative in the last step
        }
        return u;
    }
    /// Scores up to this bound have no weight.
    simd::vec<T> bound(simd::vec<T> top, simd::vec<T> u) const { return top + u - simd::splat(inverse_); }
    /// u after the maximum score changes.
    static simd::vec<T> moved(simd::vec<T> u, simd::vec<T> by) { return simd::max(u - by, simd::vec<T>{}); }
    /// The minimum number of scores with a weight.
    static constexpr std::size_t kept() { return 0; }
    /// u of a single score.
    static constexpr double first = 0;

    /// u after a step of Newton's method, from Σ_j w_j and Σ_j s_j at this u, where Σ_j w_j is above 1.
    simd::vec<T> better(simd::vec<T> u, simd::vec<T> weights, simd::vec<T> slopes) const
    {
        return u + weights * above_one(weights, simd::splat(delta_)) / slopes;
    }
    /// The gradient of a from the gradient of δ.
    T of_number(T d_delta) const { return delta_ * (1 - delta_) * d_delta; }
    /// The scale for errors of u.
    static T scale(T u) { return u < T(1) ? T(1) : u; }

private:
    /// u after a step of Halley's method for the norm of b, which is nearly linear. It also needs Σ_j b_j^{1/δ−2},
    /// which must be finite near b = 0. The step is limited so that the maximum score keeps a weight.
    HEED_SIMD_INLINE simd::vec<T> best(simd::vec<T> u, simd::vec<T> weights, simd::vec<T> slopes,
                                       simd::vec<T> bends) const
    {
        using namespace simd;
        const vec<T> above = above_one(weights, splat(delta_));
        const vec<T> ratio = weights / slopes;
        const vec<T> bent = above * splat((1 - delta_) / 2) * (ratio * (bends / slopes) - 1);
        const vec<T> step = above * ratio / (1 - simd::min(vec<T>{} + 0.5F, bent));
        return simd::min(splat(inverse_ * T(1 - 1e-6)), u + step);
    }

    /// The step after which u has converged: its error is the step cubed, or if 1/δ < 3 the step to the power 1/δ,
    /// since a score that gets a weight makes a derivative jump. If 1/δ < 2 the steps are Newton's.
    T tolerance() const
    {
        using std::pow;
        const double delta = static_cast<double>(value_of(delta_));
        const double epsilon = static_cast<double>(value_of(std::numeric_limits<T>::epsilon()));
        return static_cast<T>(pow(epsilon, std::max(delta > 0.5 ? 0.5 : 1.0 / 3, delta)) / 4);
    }

    /// A column of scores, `stride` apart, and the maximum score.
    struct column {
        std::size_t count;
        const T* scores;
        std::size_t stride;
        simd::vec<T> top;
    };
    /// The minimum number of scores in a sample.
    static constexpr std::size_t sample = 128;

    /// Σ_j b_j^p for p = 1/δ, 1/δ − 1 and, where δ is at most 1/2, 1/δ − 2.
    struct sums {
        simd::vec<T> weights{}, slopes{}, bends{};
    };

    /// u of a sample in which each score represents `times` scores, accurate to a step of tolerance().
    simd::vec<T> near(bool rough, const column& of, simd::vec<T> u, T times) const
    {
        using namespace simd;
        const vec<T> few = splat(inverse_ * T(newton() ? 0.02 : 0.08));
        for (int round = 0; round < 20; ++round) {
            const sums now = rough ? sums_of<true>(of, u) : sums_of<false>(of, u);
            const vec<T> step = step_of(now, u, times);
            u = max(vec<T>{}, u + step);  // a sample without the largest scores would give less
            if (!any(simd::max(step, -step) * now.slopes > few * now.weights)) break;
        }
        return u;
    }

    /// Are the steps Newton's (else Halley's)?
    bool newton() const { return delta_ > T(0.5); }
    simd::vec<T> step_of(const sums& now, simd::vec<T> u, T times) const
    {
        using namespace simd;
        const vec<T> to = newton() ? better(u, now.weights * times, now.slopes * times)
                                   : best(u, now.weights * times, now.slopes * times, now.bends * times);
        return select(now.weights <= T(1e-30), vec<T>{}, to - u);  // only in a sample without the largest scores
    }
    /// A lower bound of u: Newton's step for a convex function, less the error of rough powers; or 0.
    simd::vec<T> too_small(const sums& now, simd::vec<T> u) const
    {
        using namespace simd;
        const vec<T> above = (1 - simd::exp(simd::log(now.weights) * splat(-delta_))) * splat(inverse_);
        const vec<T> error = (2 * simd::max(above, -above) + 1) * T(1e-3);
        return select(now.slopes <= 0, vec<T>{}, u + now.weights / now.slopes * (above - error));
    }

    template <bool rough>
    sums sums_of(const column& of, simd::vec<T> u) const
    {
        return newton() ? sums_of<rough, 1>(of, u) : sums_of<rough, 2>(of, u);
    }
    template <bool rough, int order>
    sums sums_of(const column& of, simd::vec<T> u) const
    {
        using namespace simd;
        sums all;
        const T power = inverse_ - order;
        const auto add = [&](auto n, std::size_t j) __attribute__((always_inline))
        {
            vec<T> over[n], b[n], least[n];
            unrolled<n>([&](auto i) { over[i] = load(of.scores + (j + i) * of.stride) - of.top - u; });
            pow<rough>(over, power, b, least);
            sums few;
            unrolled<n>([&](auto i) {
                const vec<T> s = order == 1 ? least[i] : least[i] * b[i];
                if constexpr (order == 2) few.bends += least[i];
                few.slopes += s;
                few.weights = fma(s, b[i], few.weights);
            });
            all.weights += few.weights;
            all.slopes += few.slopes;
            all.bends += few.bends;
        };
        in_groups<at_once>(0, of.count, add);
        return all;
    }

    /// b, at least 0, and b^p from (b − 1) / δ; the power of 0 is 0.
    template <bool rough, std::size_t n>
    HEED_SIMD_INLINE void pow(simd::vec<T> (&over)[n], T p, simd::vec<T> (&b)[n], simd::vec<T> (&power)[n]) const
    {
        using namespace simd;
        unrolled<n>([&](auto i) {
            over[i] *= splat(delta_);
            b[i] = simd::max(vec<T>{}, over[i] + 1);  // not -inf, which is a factor; but NaN stays
        });
        if constexpr (std::is_same_v<T, float>) {
            detail::powers_of<rough>(b, over, p, power);
            unrolled<n>([&](auto i) { power[i] = select(b[i] <= 0, vec<T>{}, power[i]); });
        } else {
            unrolled<n>([&](auto i) {
                const auto none = b[i] <= 0;
                power[i] = select(none, vec<T>{}, simd::exp(simd::log1p(select(none, vec<T>{}, over[i])) * splat(p)));
            });
        }
    }
    /// The number of registers of scores for parallel powers.
    static constexpr std::size_t at_once = !std::is_same_v<T, float> ? 1 : simd::register_bytes == 64 ? 4 : 2;

    /// A lower bound of u: u if all scores were equal to their mean, since no other scores of the same sum have a
    /// smaller norm.
    simd::vec<T> of_mean(const column& of, T times) const
    {
        using namespace simd;
        const vec<T> none = splat(-std::numeric_limits<T>::infinity());
        vec<T> sum{}, seen{};
        for (std::size_t j = 0; j < of.count; ++j) {
            const vec<T> e = load(of.scores + j * of.stride);
            const auto hidden = e == none;
            sum += select(hidden, vec<T>{}, e - of.top);
            seen += select(hidden, vec<T>{}, vec<T>{} + 1);
        }
        seen = simd::max(seen, vec<T>{} + 1);
        return sum / seen + above_one(seen * times, splat(delta_));
    }

    /// The number of scores above the bound, in the lane with the most.
    static std::size_t most_above(const column& of, simd::vec<T> bound)
    {
        using namespace simd;
        vec<T> above{};
        for (std::size_t j = 0; j < of.count; ++j)
            above += select(load(of.scores + j * of.stride) <= bound, vec<T>{}, vec<T>{} + 1);
        return static_cast<std::size_t>(value_of(simd::max(above)));
    }

    /// The scores above the bound of each lane, [slot][lane], padded with -inf. Returns the number of slots.
    static std::size_t above_bound(const column& of, simd::vec<T> bound, T* list)
    {
        using namespace simd;
        T bounds[simd::lanes<T>];
        store(bounds, bound);
        std::size_t kept[simd::lanes<T>] = {};
        for (std::size_t j = 0; j < of.count; ++j) {
            const T* const at = of.scores + j * of.stride;
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

}  // namespace heed::inline HEED_TARGET::kernels::tiles
