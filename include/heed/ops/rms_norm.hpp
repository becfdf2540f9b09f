// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include <heed/kernels/block_sums.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/rows.hpp>

/// Root mean square normalization.
namespace heed::inline HEED_TARGET::ops {

/// y = gain ⊙ x / sqrt(mean(x²) + ε) for each of the p slices of n elements of a row: x [...,p·n], gain [n] ->
/// [...,p·n]. Zhang and Sennrich 2019, eq. 4, with ε. A gain of the row's size normalizes the row; a gain of a head's
/// size normalizes each head separately. A slice of zeros stays 0.
///
///     r = 1 / sqrt(mean(x²) + ε):   ∂x_i += r g_i ∂y_i − x_i r³ / n Σ_k g_k ∂y_k x_k,  ∂g_i += r x_i ∂y_i
struct rms_norm_op : operation<rms_norm_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, const auto& gain, double epsilon)
    {
        const std::size_t N = x.shape.back(), n = gain.shape[0];
        if (n == 0 || N % n != 0)
            detail::refuse("rms_norm: a gain of ", n, " numbers for x ", x.shape,
                           "; the gain's size must divide the last axis of x");
        if (!(epsilon > 0))
            detail::refuse("rms_norm: epsilon is ", std::to_string(epsilon),
                           " but must be above 0, for example 1e-5, to avoid dividing by 0");
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 1> gain, double epsilon, out<T, R> y)
    {
        const std::size_t n = gain.shape[0];
        detail::each_row(x.size() / n, 4 * n, [=](std::size_t part) {
            const T *const from = x.data + part * n, r = factor(n, from, epsilon);
            T* const to = y.data + part * n;
            for (std::size_t i = 0; i < n; ++i) to[i] = gain.data[i] * (r * from[i]);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, 1> gain, double epsilon, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x,
                         adjoint<T, 1> d_gain)
    {
        const std::size_t n = gain.shape[0];
        const auto rows = [=](std::size_t first, std::size_t last, T* of_gain) {
            for (std::size_t at = first * n; at < last * n; at += n) {
                const T *const from = x.data + at, *const d = d_y.data + at;
                const T r = factor(n, from, epsilon);
                T along = 0;
                for (std::size_t i = 0; i < n; ++i) along += gain.data[i] * d[i] * from[i];
                const T back = along * r * r * r / static_cast<T>(n);
                for (std::size_t i = 0; i < n; ++i) {
                    if (d_x) d_x.data[at + i] += r * gain.data[i] * d[i] - from[i] * back;
                    if (of_gain != nullptr) of_gain[i] += r * from[i] * d[i];
                }
            }
        };
        if (!d_gain) return rows(0, x.size() / n, nullptr);
        kernels::add_in_blocks(x.size() / n, n, d_gain.data, rows);
    }

private:
    template <class T>
    static T factor(std::size_t n, const T* x, double epsilon)
    {
        T squares = 0;
        for (std::size_t i = 0; i < n; ++i) squares += x[i] * x[i];
        using std::sqrt;
        return 1 / sqrt(squares / static_cast<T>(n) + static_cast<T>(epsilon));
    }
};
inline constexpr rms_norm_op rms_norm{};

}  // namespace heed::inline HEED_TARGET::ops
