// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include <heed/core/mask.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// The place in a sentence that a query looks at, and how weights decay around it.
namespace heed::ops {

/// p_b = S_b · sigmoid(v · z_b), a place within each row, S_b its length: z [B,P], v [P] -> [B].
///
///     ∂a_b = p_b (1 − p_b / S_b) ∂p_b with a_b = v · z_b,  ∂z_b += ∂a_b v,  ∂v += Σ_b ∂a_b z_b
///
/// A row of length 0 has no place to look at: no gradient comes back from it.
struct place_in_row_op : operation<place_in_row_op> {
    static shape_of_rank<1> shape(const auto& z, const auto& v, const lengths_view& real)
    {
        require_shape("place_in_row", "v", v.shape, {z.shape[1]}, "as long as the rows of z ", z.shape);
        if (z.shape[0] != real.batch()) {
            throw shape_error("place_in_row: z is " + shape_text(z.shape) + " but there are " +
                              std::to_string(real.batch()) + " sentences; give one row for each of them");
        }
        return {real.batch()};
    }

    template <class T>
    static void forward(in<T, 2> z, in<T, 1> v, const lengths_view& real, out<T, 1> p)
    {
        const std::size_t rows = p.size(), n = v.size();
        for (std::size_t b = 0; b < rows; ++b) p.data[b] = kernels::dot(n, z.data + b * n, v.data);
        simd::transform(
            rows, p.data, [](auto x) { return simd::sigmoid(x); }, static_cast<const T*>(p.data));
        for (std::size_t b = 0; b < rows; ++b) p.data[b] *= static_cast<T>(real[b]);
    }

    template <class T>
    static void backward(in<T, 2> z, in<T, 1> v, const lengths_view& real, in<T, 1> p, in<T, 1> d_p, adjoint<T, 2> d_z,
                         adjoint<T, 1> d_v)
    {
        const std::size_t n = v.size();
        for (std::size_t b = 0; b < p.size(); ++b) {
            if (real[b] == 0) continue;
            const T d_a = p.data[b] * (1 - p.data[b] / static_cast<T>(real[b])) * d_p.data[b];
            if (d_z) kernels::add_scaled(n, d_z.data + b * n, d_a, v.data);
            if (d_v) kernels::add_scaled(n, d_v.data, d_a, z.data + b * n);
        }
    }
};
inline constexpr place_in_row_op place_in_row{};

/// y[b,j] = x[b,j] f[b,j], f[b,j] = exp(−(s − p_b)² / 2σ²), where s = begin_b + j is the place of j in the sentence:
/// x [B,W], or [B,W,N] with one factor per position; p [B].
///
///     ∂x[b,j] += f[b,j] ∂y[b,j],  ∂p_b += Σ_j y[b,j] ∂y[b,j] (s − p_b) / σ²
struct gaussian_op : operation<gaussian_op> {
    static auto shape(const auto& x, const auto& p, std::span<const std::size_t> begin, double)
    {
        require_shape("gaussian", "the centre", p.shape, {x.shape[0]}, "one for each row of the weights ", x.shape);
        require_shape<1>("gaussian", "the list of first positions", {begin.size()}, {x.shape[0]}, "one for each row");
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 1> p, std::span<const std::size_t> begin, double sigma, out<T, R> y)
    {
        scratch here;
        const T* const f = factors(x.shape, p, begin, static_cast<T>(sigma), here);
        const std::size_t width = detail::width_of(x.shape);
        for (std::size_t i = 0; i < x.shape[0] * x.shape[1]; ++i) {
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) y.data[k] = x.data[k] * f[i];
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, 1> p, std::span<const std::size_t> begin, double by, in<T, R> y,
                         in<T, R> d_y, adjoint<T, R> d_x, adjoint<T, 1> d_p)
    {
        scratch here;
        const T sigma = static_cast<T>(by);
        const T* const f = d_x ? factors(x.shape, p, begin, sigma, here) : nullptr;
        const std::size_t positions = x.shape[1], width = detail::width_of(x.shape);
        for (std::size_t i = 0; i < x.shape[0] * positions; ++i) {
            if (d_x) kernels::add_scaled(width, d_x.data + i * width, f[i], d_y.data + i * width);
            if (!d_p) continue;
            const std::size_t b = i / positions;
            const T off = static_cast<T>(begin[b] + i % positions) - p.data[b];
            T sum = 0;
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) sum += y.data[k] * d_y.data[k];
            d_p.data[b] += sum * off / (sigma * sigma);
        }
    }

private:
    /// exp(−(s − p)² / 2σ²) for each position: [B,W].
    template <class T, std::size_t R>
    static const T* factors(const shape_of_rank<R>& x, in<T, 1> p, std::span<const std::size_t> begin, T sigma,
                            scratch& here)
    {
        const std::size_t rows = x[0], positions = x[1];
        T* const f = here.take<T>(rows * positions);
        const T by = -1 / (2 * sigma * sigma);
        for (std::size_t b = 0; b < rows; ++b) {
            for (std::size_t j = 0; j < positions; ++j) {
                const T off = static_cast<T>(begin[b] + j) - p.data[b];
                f[b * positions + j] = by * off * off;
            }
        }
        simd::transform(
            rows * positions, f, [](auto e) { return simd::exp(e); }, static_cast<const T*>(f));
        return f;
    }
};
inline constexpr gaussian_op gaussian{};

}  // namespace heed::ops
