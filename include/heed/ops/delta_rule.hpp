// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <heed/core/errors.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/delta_rule.hpp>
#include <heed/kernels/linear_attention.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/linear_attention.hpp>
#include <heed/ops/operation.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// The values of one sentence, corrected by the delta rule, and their derivative. Keys have `skip` columns before them.
template <class T>
struct correction {
    std::size_t b, n, skip;
    in<T, 3> keys, values, rates;

    std::size_t width() const { return keys.shape[2] - skip; }
    std::size_t depth() const { return values.shape[2]; }
    T rate(std::size_t i) const { return rates.data[b * rates.shape[1] + i]; }
    const T* key(std::size_t i) const { return keys.data + (b * keys.shape[1] + i) * keys.shape[2] + skip; }

    void forward(const auto& fading, out<T, 3> y) const
    {
        const std::size_t D = depth();
        T* const to = y.data + b * y.shape[1] * D;
        kernels::correct_values<kernels::sees::past, T>(
            n, width(), D, fading, rows_of(keys, b, skip), rows_of(values, b),
            [this](std::size_t i) { return rate(i); },
            [to, D](std::size_t first, std::size_t count, const T*, const T* u) {
                std::copy_n(u, count * D, to + first * D);
            });
        std::fill(to + n * D, to + y.shape[1] * D, T(0));
    }

    /// with_c(i, d): adds d to ∂c_i of kernels::fading_by_gates.
    void backward(const auto& fading, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_keys, adjoint<T, 3> d_values,
                  adjoint<T, 3> d_rates, const auto& with_c) const
    {
        using kernels::sees;
        const std::size_t F = width(), D = depth(), at_values = b * values.shape[1];
        scratch here;
        T* const g = here.take<T>(n * D);
        const auto k = rows_of(keys, b, skip), u = rows_of(y, b);
        kernels::correct_values<sees::future, T>(
            n, F, D, fading, k, rows_of(d_y, b), [this](std::size_t i) { return rate(i); },
            [&](std::size_t first, std::size_t count, const T* of_g, const T* of_h) {
                std::copy_n(of_g, count * D, g + first * D);
                if (d_values) kernels::add(count * D, d_values.data + (at_values + first) * D, of_h);
            });
        if (!d_keys && !d_rates) return;
        const auto rows_of_g = [g, D](std::size_t first, std::size_t, T*) -> const T* { return g + first * D; };
        const auto rows_of_h = [g, D, this](std::size_t first, std::size_t count, T* to) -> const T* {  // β_i g_i
            for (std::size_t r = 0; r < count; ++r)
                simd::transform(
                    D, to + r * D, [by = rate(first + r)](auto x) { return by * x; },
                    static_cast<const T*>(g + (first + r) * D));
            return to;
        };
        const auto d_key = [&](std::size_t i) { return d_keys.data + (key(i) - keys.data); };
        const kernels::rows_seen others{n, n, 0, 0, false};
        kernels::sums_of_seen<sees::past, T>(
            others, D, F, fading, rows_of_g, u, k, [&](std::size_t first, std::size_t count, const T* rows) {
                for (std::size_t r = 0; r < count; ++r) {
                    const std::size_t i = first + r;
                    const T* const m = rows + r * F;
                    const T along = kernels::dot(F, m, key(i));
                    if (d_rates)
                        d_rates.data[b * rates.shape[1] + i] +=
                            kernels::dot(D, g + i * D, values.data + (at_values + i) * D) - along;
                    if (!d_keys) continue;
                    kernels::add_scaled(F, d_key(i), -rate(i), m);
                    with_c(i, rate(i) * along);
                }
            });
        if (!d_keys) return;
        kernels::sums_of_seen<sees::future, T>(others, D, F, fading, u, rows_of_h, k,
                                               [&](std::size_t first, std::size_t count, const T* rows) {
                                                   for (std::size_t r = 0; r < count; ++r) {
                                                       const std::size_t i = first + r;
                                                       const T* const m = rows + r * F;
                                                       kernels::add_scaled(F, d_key(i), T(-1), m);
                                                       with_c(i, -kernels::dot(F, key(i), m));
                                                   }
                                               });
    }
};

inline shape_of_rank<3> shape_of_corrected(const char* where, const shape_of_rank<3>& k, const shape_of_rank<3>& v,
                                           const shape_of_rank<3>& rates, const lengths_view& real)
{
    require_shape(where, "the values", v, {k[0], k[1], v[2]}, "one for each key of ", k);
    require_shape(where, "the rates", rates, {k[0], k[1], 1}, "one for each key of ", k);
    real.require(where, k[0], k[1]);
    return v;
}

}  // namespace detail

/// Values corrected by the delta rule: each becomes its difference from the prediction of the past.
///
///     u_i = β_i (v_i − Σ_{j<i} γ^{i−j} (k_i · k_j) u_j)           Schlag et al. 2021, section 4.2
///
/// keys [B,T,F], values [B,T,D], rates β [B,T,1] -> [B,T,D], 0 in the padding. In linear time; Σ_j γ^{i−j} u_j k_jᵀ is
/// the state S_i = γ S_{i−1} (I − β_i k_i k_iᵀ) + β_i v_i k_iᵀ. Where β_i |k_i|² exceeds
/// 2, the state may grow without limit.
///
///     g_i = ∂u_i − Σ_{j>i} γ^{j−i} (k_j · k_i) β_j g_j:   ∂v_i += β_i g_i,   ∂β_i += g_i · u_i / β_i,
///     ∂k_i −= Σ_{j<i} γ^{i−j} β_i (g_i · u_j) k_j + Σ_{j>i} γ^{j−i} β_j (g_j · u_i) k_j
struct correct_values_op : operation<correct_values_op> {
    static shape_of_rank<3> shape(const auto& keys, const auto& values, const auto& rates, const lengths_view& real,
                                  double)
    {
        return detail::shape_of_corrected("correct_values", keys.shape, values.shape, rates.shape, real);
    }

    template <class T>
    static void forward(in<T, 3> keys, in<T, 3> values, in<T, 3> rates, const lengths_view& real, double decay,
                        out<T, 3> y)
    {
        detail::each_sentence(keys.shape[0], [&](std::size_t b) {
            scratch here;
            detail::correction<T>{b, real[b], 0, keys, values, rates}.forward(kernels::fading_with_age<T>(decay, here),
                                                                              y);
        });
    }

    template <class T>
    static void backward(in<T, 3> keys, in<T, 3> values, in<T, 3> rates, const lengths_view& real, double decay,
                         in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_keys, adjoint<T, 3> d_values, adjoint<T, 3> d_rates)
    {
        detail::each_sentence(keys.shape[0], [&](std::size_t b) {
            scratch here;
            const kernels::fading_with_age<T> fading(decay, here);
            detail::correction<T>{b, real[b], 0, keys, values, rates}.backward(fading, y, d_y, d_keys, d_values,
                                                                               d_rates, [](std::size_t, const T&) {});
        });
    }
};
inline constexpr correct_values_op correct_values{};

/// Values corrected by the delta rule, where the past decays by gates:
///
///     u_i = β_i (v_i − Σ_{j<i} exp(F_i − F_j) (k_i · k_j) u_j),  F_j = Σ_{l≤j} log a_l       Yang et al. 2025,
///     section 3.1
///
/// keys [B,T,2+F] with the columns (1, −F_j) of `carried_sums`; the rest as in correct_values.
///
///     as in correct_values, with exp(F_i − F_j) instead of γ^{i−j};  ∂F_i += k_i · (∂k_i of j < i − ∂k_i of j > i)
struct correct_values_by_gates_op : operation<correct_values_by_gates_op> {
    static shape_of_rank<3> shape(const auto& keys, const auto& values, const auto& rates, const lengths_view& real)
    {
        carry_sums_op::require_columns(keys.shape);
        return detail::shape_of_corrected("correct_values_by_gates", keys.shape, values.shape, rates.shape, real);
    }

    template <class T>
    static void forward(in<T, 3> keys, in<T, 3> values, in<T, 3> rates, const lengths_view& real, out<T, 3> y)
    {
        detail::each_sentence(keys.shape[0], [&](std::size_t b) {
            const scratch here;
            const auto sums = detail::sums_of_gates(keys, b, keys.shape[1], real[b]);
            detail::correction<T>{b, real[b], 2, keys, values, rates}.forward(kernels::fading_by_gates<T>{sums.c}, y);
        });
    }

    template <class T>
    static void backward(in<T, 3> keys, in<T, 3> values, in<T, 3> rates, const lengths_view& real, in<T, 3> y,
                         in<T, 3> d_y, adjoint<T, 3> d_keys, adjoint<T, 3> d_values, adjoint<T, 3> d_rates)
    {
        detail::each_sentence(keys.shape[0], [&](std::size_t b) {
            const scratch here;
            const auto sums = detail::sums_of_gates(keys, b, keys.shape[1], real[b]);
            detail::correction<T>{b, real[b], 2, keys, values, rates}.backward(
                kernels::fading_by_gates<T>{sums.c}, y, d_y, d_keys, d_values, d_rates,
                [&](std::size_t i, const T& d) { d_keys.data[(b * keys.shape[1] + i) * keys.shape[2] + 1] += d; });
        });
    }
};
inline constexpr correct_values_by_gates_op correct_values_by_gates{};

}  // namespace heed::inline HEED_TARGET::ops
