// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/kernels/rows.hpp>
#include <heed/ops/rows.hpp>

/// The similarity of two vectors: by direction and by distance.
namespace heed::inline HEED_TARGET::ops {

/// y = x / |x| along the last axis: x [...,N] -> [...,N].
///
///     ∂x += (∂y − y (y·∂y)) / |x|
///
/// A vector of length 0 (or so short that 1/|x| is not finite) stays 0 and gets gradient 0. |x|² may overflow.
struct normalize_l2_op : operation<normalize_l2_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x) { return x.shape; }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        const std::size_t n = x.shape[R - 1], size = x.size();
        for (std::size_t r = 0; r < size; r += n) {
            const auto by = inverse(n, x.data + r);
            simd::transform(
                n, y.data + r, [by](auto v) { return v * by.first * by.second; }, x.data + r);
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        const std::size_t n = x.shape[R - 1], size = x.size();
        for (std::size_t r = 0; r < size; r += n) {
            const auto by = inverse(n, x.data + r);
            if (by.second == T(0)) continue;
            const T along = kernels::dot(n, y.data + r, d_y.data + r);
            const auto across = [by, along](auto sum, auto u, auto d) {
                return sum + (d - u * along) * by.first * by.second;
            };
            simd::transform(n, d_x.data + r, across, static_cast<const T*>(d_x.data + r), y.data + r, d_y.data + r);
        }
    }

private:
    /// 1/|x| as a product of two normal floating-point factors; zeros for a vector of length 0.
    template <class T>
    struct inverse_length {
        T first, second;
    };
    template <class T>
    static inverse_length<T> inverse(std::size_t n, const T* x)
    {
        using std::abs, std::sqrt;
        using limits = std::numeric_limits<T>;
        const T squared = kernels::dot(n, x, x);
        if (squared >= limits::min() / limits::epsilon() && squared <= limits::max()) return {T(1), 1 / sqrt(squared)};
        T most = 0, sum = 0;
        for (std::size_t i = 0; i < n; ++i) most = std::max<T>(most, abs(x[i]));
        if (most < limits::min()) return {T(0), T(0)};
        for (std::size_t i = 0; i < n; ++i) sum += x[i] / most * (x[i] / most);
        return {1 / most, 1 / sqrt(sum)};
    }
};
inline constexpr normalize_l2_op normalize_l2{};

/// A[b,s,t] = 1 / (1 + r), r = |x[b,s,:] − y[b,t,:]|, the Euclidean distance: x [B,S,D], y [B,T,D] -> [B,S,T], in
/// (0, 1]. With the lengths of both: 0 beyond them, even if x or y is NaN there. Yin et al. 2016, section 4.
///
///     ∂x[b,s,:] −= Σ_t A² (x − y)/r ∂A,  ∂y[b,t,:] += Σ_s A² (x − y)/r ∂A
///
/// Where x equals y the distance has a kink; the gradient there is 0.
struct match_matrix_op : operation<match_matrix_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& y)
    {
        require_shape("match_matrix", "the second argument", y.shape, {x.shape[0], y.shape[1], x.shape[2]},
                      "the rows and width of the first, ", x.shape);
        return {x.shape[0], x.shape[1], y.shape[1]};
    }
    static shape_of_rank<3> shape(const auto& x, const auto& y, const lengths_view& real_x, const lengths_view& real_y)
    {
        const auto A = shape(x, y);
        real_x.require("match_matrix, first argument", A[0], A[1]);
        real_y.require("match_matrix, second argument", A[0], A[2]);
        return A;
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 3> y, out<T, 3> A)
    {
        forward(x, y, {}, {}, A);
    }
    /// Without lengths all positions are real.
    template <class T>
    static void forward(in<T, 3> x, in<T, 3> y, const lengths_view& real_x, const lengths_view& real_y, out<T, 3> A)
    {
        const std::size_t D = x.shape[2];
        if (real_x.data() != nullptr) std::fill_n(A.data, A.size(), T(0));
        each_pair(A.shape, D, real_x, real_y, [=](std::size_t s, std::size_t t, std::size_t i) {
            A.data[i] = 1 / (1 + distance(D, x.data + s * D, y.data + t * D));
        });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 3> y, in<T, 3> A, in<T, 3> d_A, adjoint<T, 3> d_x, adjoint<T, 3> d_y)
    {
        backward(x, y, {}, {}, A, d_A, d_x, d_y);
    }
    template <class T>
    static void backward(in<T, 3> x, in<T, 3> y, const lengths_view& real_x, const lengths_view& real_y, in<T, 3> A,
                         in<T, 3> d_A, adjoint<T, 3> d_x, adjoint<T, 3> d_y)
    {
        const std::size_t D = x.shape[2];
        each_pair(A.shape, D, real_x, real_y, [=](std::size_t s, std::size_t t, std::size_t i) {
            if (d_A.data[i] == T(0)) return;
            const T *const u = x.data + s * D, *const v = y.data + t * D;
            const T r = distance(D, u, v);
            if (r == T(0)) return;
            const T slope = -A.data[i] * A.data[i] * d_A.data[i] / r;
            if (slope == T(0)) return;
            if (d_x) kernels::add_scaled_difference(D, d_x.data + s * D, slope, u, v);
            if (d_y) kernels::add_scaled_difference(D, d_y.data + t * D, slope, v, u);
        });
    }

private:
    /// f(vector of x, vector of y, offset in A) for each pair within the lengths; vectors are numbered over the whole
    /// batch.
    static void each_pair(const shape_of_rank<3>& A, std::size_t D, const lengths_view& real_x,
                          const lengths_view& real_y, const auto& f)
    {
        const auto real_in = [](const lengths_view& real, std::size_t b, std::size_t positions) {
            return real.data() == nullptr ? positions : real[b];
        };
        const std::size_t S = A[1], N = A[2];
        detail::each_row(
            A[0], S * N * D,
            [&](std::size_t b) {
                const std::size_t last_s = b * S + real_in(real_x, b, S), last_t = b * N + real_in(real_y, b, N);
                for (std::size_t s = b * S; s < last_s; ++s) {
                    for (std::size_t t = b * N; t < last_t; ++t) f(s, t, s * N + t - b * N);
                }
            },
            std::size_t{1} << 16);
    }

    template <class T>
    static T distance(std::size_t D, const T* x, const T* y)
    {
        using std::sqrt;
        return sqrt(kernels::squared_distance(D, x, y));
    }
};
inline constexpr match_matrix_op match_matrix{};

/// y[b,t] = 1 / (1 + r), r = |q[b,:] − k[b,t,:]|: q [B,D], k [B,T,D] -> [B,T]. match_matrix for one query per row.
///
///     ∂q[b,:] −= Σ_t y² (q − k)/r ∂y,  ∂k[b,t,:] += y² (q − k)/r ∂y
struct match_per_position_op : operation<match_per_position_op> {
    static shape_of_rank<2> shape(const auto& q, const auto& k)
    {
        require_shape("match_per_position", "the query", q.shape, {k.shape[0], k.shape[2]},
                      "one row for each row of the keys ", k.shape);
        return {k.shape[0], k.shape[1]};
    }

    template <class T>
    static void forward(in<T, 2> q, in<T, 3> k, out<T, 2> e)
    {
        match_matrix_op::forward(one_step(q), k, one_step(e));
    }

    template <class T>
    static void backward(in<T, 2> q, in<T, 3> k, in<T, 2> e, in<T, 2> d_e, adjoint<T, 2> d_q, adjoint<T, 3> d_k)
    {
        match_matrix_op::backward(one_step(q), k, one_step(e), one_step(d_e), adjoint<T, 3>{one_step<T>(d_q)}, d_k);
    }

private:
    /// [B,N] as [B,1,N].
    template <class T>
    static tensor_view<T, 3> one_step(tensor_view<T, 2> x)
    {
        return {x.data, {x.shape[0], 1, x.shape[1]}};
    }
};
inline constexpr match_per_position_op match_per_position{};

}  // namespace heed::inline HEED_TARGET::ops
