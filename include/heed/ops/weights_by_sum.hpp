// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/linear_attention.hpp>
#include <heed/ops/rows.hpp>

namespace heed::inline HEED_TARGET::ops {

/// How products become weights without an exponential: each is multiplied by γ^age, where the age of a key is the
/// number of visible positions after it. If `divides`, the results are divided by their sum.
struct rule_of_sums {
    double decay = 1;  // γ
    bool divides = true;
};

/// w_j = γ^{n−1−j} e_j, or if `divides` w_j = γ^{n−1−j} e_j / Σ_k γ^{n−1−k} e_k: e [B,T] or [B,T,D] -> the shape of e.
/// n is the row's length. Weights are 0 after the n-th position, where e_j is -inf, and where the divisor is 0.
///
///     ∂e_j += γ^{n−1−j} ∂w_j,  or if `divides`  ∂e_j += γ^{n−1−j} (∂w_j − Σ_k w_k ∂w_k) / Σ_k γ^{n−1−k} e_k
struct weights_by_sum_op : row_operation<weights_by_sum_op> {
    static constexpr const char* name = "weights_by_sum";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, const rule_of_sums& rule, out<T, R> weights)
    {
        scratch here;
        const T* const aged = kernels::pow_table<T>(rule.decay, e.shape[1], here);
        detail::each_column(e.shape, real, 2, [&](std::size_t at, std::size_t step, std::size_t n, std::size_t all) {
            in_double<T> whole = 0;
            for (std::size_t j = 0; j < n; ++j)
                whole += static_cast<in_double<T>>(seen(e.data[at + j * step]) * aged[n - 1 - j]);
            const T sum = static_cast<T>(whole);
            const T by = rule.divides ? sum : T(1);  // 1 / sum may be infinite
            for (std::size_t j = 0; j < n; ++j)
                weights.data[at + j * step] = by == 0 ? T(0) : seen(e.data[at + j * step]) * aged[n - 1 - j] / by;
            for (std::size_t j = n; j < all; ++j) weights.data[at + j * step] = 0;
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, const rule_of_sums& rule, in<T, R> weights,
                         in<T, R> d_weights, adjoint<T, R> d_e)
    {
        scratch here;
        const T* const aged = kernels::pow_table<T>(rule.decay, e.shape[1], here);
        detail::each_column(e.shape, real, 2, [&](std::size_t at, std::size_t step, std::size_t n, std::size_t) {
            in_double<T> all = rule.divides ? 0 : 1, pulled = 0;
            for (std::size_t j = 0; j < n && rule.divides; ++j) {
                all += static_cast<in_double<T>>(seen(e.data[at + j * step]) * aged[n - 1 - j]);
                pulled += static_cast<in_double<T>>(weights.data[at + j * step] * d_weights.data[at + j * step]);
            }
            const T sum = static_cast<T>(all), mean = static_cast<T>(pulled);
            if (sum == 0) return;
            for (std::size_t j = 0; j < n; ++j) {
                if (e.data[at + j * step] == hidden<T>) continue;
                d_e.data[at + j * step] += aged[n - 1 - j] * (d_weights.data[at + j * step] - mean) / sum;
            }
        });
    }

private:
    template <class T>
    static constexpr T hidden = -std::numeric_limits<T>::infinity();
    template <class T>
    static T seen(T e)
    {
        return e == hidden<T> ? T(0) : e;
    }
};
inline constexpr weights_by_sum_op weights_by_sum{};

}  // namespace heed::inline HEED_TARGET::ops
