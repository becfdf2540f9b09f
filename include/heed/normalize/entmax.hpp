// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/core/dual_number.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/sparse.hpp>
#include <heed/kernels/tiles/entmax_rule.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/weigh.hpp>
#include <heed/simd/simd.hpp>

namespace heed::inline HEED_TARGET::ops {

/// α-entmax with δ = α − 1 = σ(a), between softmax (δ → 0) and sparsemax (δ = 1); Peters et al., Correia et al. 2019:
///
///     w_j = [1 + δ y_j]₊^{1/δ},  y_j = e_j − max_k e_k − u,  u such that Σ_j w_j = 1
///
/// over the real positions of each row: e [B,T] or [B,T,D], a [1]. Newton's method finds u, starting from a value that
/// is too small. This form stays exact for a small δ, where (α − 1) e and its τ are nearly equal. With s_j = w_j^{2−α}:
///
///     ∂e_j += s_j (∂w_j − m),  m = Σ_k s_k ∂w_k / Σ_k s_k
///     ∂a   += δ (1 − δ) Σ_j w_j g_j (∂w_j − m),  g_j = (x_j / (1 + x_j) − ln(1 + x_j)) / δ²,  x_j = δ y_j
struct entmax_op : operation<entmax_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& a, const lengths_view& real)
    {
        require_shape("entmax", "a", a.shape, {1}, "one number");
        real.require("entmax", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, 1> a, const lengths_view& real, out<T, R> weights)
    {
        const auto column = [delta = kernels::tiles::entmax_delta(*a.data)](std::size_t n, const T* x, T* y, T*) {
            weigh(n, delta, x, y);
        };
        kernels::detail::each_column_of_scores(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(), e.data,
                                               weights.data, column);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, 1> a, const lengths_view& real, in<T, R> weights, in<T, R> d_weights,
                         adjoint<T, R> d_e, adjoint<T, 1> d_a)
    {
        if (e.size() == 0) return;
        const T delta = kernels::tiles::entmax_delta(*a.data);
        const std::size_t positions = e.shape[1], width = detail::width_of(e.shape);
        scratch here;
        T* const of_rows = here.take<T>(e.shape[0]);
        std::fill_n(of_rows, e.shape[0], T(0));
        detail::each_column(e.shape, real, 30, [&](std::size_t at, std::size_t step, std::size_t n, std::size_t) {
            in_double<T> slopes = 0, pulled = 0;
            for (std::size_t j = 0; j < n; ++j) {
                const T s = slope(weights.data[at + j * step], delta);
                if (s == T(0)) continue;  // ∂w may be NaN
                slopes += static_cast<in_double<T>>(s);
                pulled += static_cast<in_double<T>>(s * d_weights.data[at + j * step]);
            }
            const T mean = slopes == 0 ? T(0) : static_cast<T>(pulled / slopes);
            in_double<T> sum = 0;
            for (std::size_t j = 0; j < n; ++j) {
                const std::size_t i = at + j * step;
                const T w = weights.data[i], by = d_weights.data[i] - mean;
                if (w == T(0)) continue;
                if (d_e) d_e.data[i] += slope(w, delta) * by;
                if (d_a) sum += static_cast<in_double<T>>(bend(w, delta) * by);
            }
            of_rows[at / (positions * width)] += static_cast<T>(sum);  // one thread computes each row
        });
        for (std::size_t b = 0; d_a && b < e.shape[0]; ++b) *d_a.data += delta * (1 - delta) * of_rows[b];
    }

private:
    /// Writes w; computes Σ_j w_j and Σ_j s_j.
    template <class T>
    static void sums(std::size_t n, T delta, const T* x, T u, T* y, T& weights, T& slopes)
    {
        using namespace simd;
        kernels::detail::long_sum<T> all, steep;
        each_register<T>(n, [&](std::size_t i, std::size_t count) {
            const vec<T> over = (load_first(x + i, count) - splat(u)) * splat(delta);  // 1 + it is the base
            const auto none = over <= splat(T(-1));
            const vec<T> power = simd::log1p(select(none, vec<T>{}, over)) / splat(delta);
            vec<T> w = select(none, vec<T>{}, simd::exp(power)), s = select(none, vec<T>{}, w / (over + T(1)));
            if (count < lanes<T>) {
                w = fill_behind<T>(w, count, T(0));
                s = fill_behind<T>(s, count, T(0));
            }
            store_first(y + i, w, count);
            all.add(w);
            steep.add(s);
        });
        weights = all.get();
        slopes = steep.get();
    }

    template <class T>
    static void weigh(std::size_t n, T delta, const T* x, T* y)
    {
        const T top = kernels::detail::max_of(n, x);
        if (top == -std::numeric_limits<T>::infinity()) return kernels::detail::no_weights(n, x, y);
        if (top == std::numeric_limits<T>::infinity()) return kernels::detail::unknown_weights(n, x, y);
        scratch here;
        T* const scores = here.take<T>(n);  // y may be x
        for (std::size_t j = 0; j < n; ++j) scores[j] = x[j] - top;
        T u = 0, weights = 0, slopes = 0;
        for (int round = 0; round < 100; ++round) {
            sums(n, delta, static_cast<const T*>(scores), u, y, weights, slopes);
            const T better = u + (weights - 1) / slopes;
            const bool settled = !(better > u + 2 * std::numeric_limits<T>::epsilon() * std::max(T(1), u));
            if (settled && !dual_element<T>) break;
            u = better;  // dual numbers need the last step for their derivative
            if (settled) {
                sums(n, delta, static_cast<const T*>(scores), u, y, weights, slopes);
                break;
            }
        }
        if (weights != weights) kernels::detail::unknown_weights(n, static_cast<const T*>(scores), y);
    }

    /// s_j from w_j.
    template <class T>
    static T slope(T w, T delta)
    {
        using std::exp, std::log;
        return w == 0 ? T(0) : exp((1 - delta) * log(w));
    }
    /// w_j g_j from w_j. Near x = 0, where the terms cancel, by the Taylor series.
    template <class T>
    static T bend(T w, T delta)
    {
        if (w == 0) return 0;
        using std::abs, std::expm1, std::log;
        const T log_base = delta * log(w), x = expm1(log_base);  // 1 + x = w^δ
        if (abs(x) > T(0.02)) return w * (x / (1 + x) - log_base) / (delta * delta);
        const T y = x / delta;
        T sum = 0;
        for (int k = 9; k >= 2; --k) sum = static_cast<T>((k % 2 == 0 ? -1.0 : 1.0) * (k - 1) / k) + x * sum;
        return w * y * y * sum;
    }
};
inline constexpr entmax_op entmax{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Learned sparsity: α-entmax with a trained α, between softmax (α = 1) and sparsemax (α = 2).
///
///     w_j = [(α − 1) e_j − τ]₊^{1/(α−1)},  τ such that Σ_j w_j = 1        Peters, Niculae, Martins 2019, eq. 4
///     α = 1 + σ(a)                                                  Correia, Niculae, Martins 2019, section 3.2
///
///     normalize::entmax{array<float, 1>{0}}     α = 1.5; a is learned; ad::lift makes it a parameter like any other
///
/// a is one number per attention, and so per head of a multi_head. Also works per dimension, with one α for all. A row
/// with no score above -inf gets weights 0. `entmax15` is the special case α = 1.5, and faster. Deviation: α is at
/// least 1 + 10⁻⁶ (1.01 in the authors' program, where bisection finds τ and a is initialized from N(0, 1)).
template <class Vector>
struct entmax {
    static constexpr normalizer_traits traits{.rowwise = true, .shift_invariant = true};
    Vector a;  // [1]

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::entmax(at.visible(scores), a, at.real);
    }

    auto tile_rule() const { return kernels::tiles::with_numbers_of_heads<kernels::tiles::entmax, Vector>{{}, a}; }

    static auto parameters(auto& self, auto&& visit) { return normalize::entmax{visit("a", self.a)}; }
};

template <class Vector>
entmax(Vector) -> entmax<Vector>;

}  // namespace heed::inline HEED_TARGET::normalize
