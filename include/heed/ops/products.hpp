// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include <heed/gemm/weights.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/rows.hpp>

/// Products of rows with matrices, queries with keys, and weights with values.
namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// y[j] += Σ_i f_i x[i,j] for x [rows,n]: threads split the columns, so that the order of the sum does not depend on
/// the number of threads. Rows with f = 0 are not read.
template <class T>
void add_weighted_rows(std::size_t rows, std::size_t n, const T* f, const T* x, T* y)
{
    parallel_for(
        n, kernels::detail::rows_a_shard(rows),
        [=](std::size_t first, std::size_t last, std::size_t) {
            kernels::add_in_blocks(rows, last - first, y + first, [=](std::size_t begin, std::size_t end, T* to) {
                for (std::size_t i = begin; i < end; ++i) {
                    if (f[i] != T(0)) kernels::add_scaled(last - first, to, f[i], x + i * n + first);
                }
            });
        },
        simd::lanes<T>);
}

}  // namespace detail

/// y = x W, or x W + b: x [...,K], W [K,N], b [N] -> [...,N]. All leading axes are computed by one matrix product.
///
///     ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y,  ∂b += Σ_rows ∂y         on the tape: ad/products.hpp
struct linear_op : operation<linear_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, const auto& W)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        if (x.shape[R - 1] != W.shape[0])
            detail::refuse("linear: x is ", x.shape, " and the matrix is ", W.shape, ", but the matrix must have ",
                           heed::detail::number_of{x.shape[R - 1], "row"}, ", one for each column of x");
        auto y = x.shape;
        y[R - 1] = W.shape[1];
        return y;
    }
    static auto shape(const auto& x, const auto& W, const auto& b)
    {
        require_shape("linear", "the bias", b.shape, {W.shape[1]}, "one number for each column of W ", W.shape);
        return shape(x, W);
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 2> W, out<T, R> y)
    {
        kernels::times_weights(detail::rows_of(x.shape), W.shape[1], W.shape[0], x.data, W.data, false, y.data);
    }
    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 2> W, in<T, 1> b, out<T, R> y)
    {
        const std::size_t rows = detail::rows_of(x.shape), N = W.shape[1];
        for (std::size_t i = 0; i < rows; ++i) std::copy_n(b.data, N, y.data + i * N);
        kernels::times_weights(rows, N, W.shape[0], x.data, W.data, true, y.data);
    }
};
inline constexpr linear_op linear{};

/// y = base + x W: x [...,K], W [K,N], base [...,N] -> [...,N].
///
///     ∂base += ∂y,  ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y             on the tape: ad/products.hpp
struct addmm_op : operation<addmm_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& base, const auto& x, const auto& W)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        auto must = x.shape;
        must[R - 1] = W.shape[1];
        require_shape("addmm", "the base", base.shape, must, "the shape of x W, with x ", x.shape);
        require_shape("addmm", "W", W.shape, {x.shape[R - 1], W.shape[1]}, "one row for each column of x ", x.shape);
        return base.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> base, in<T, R> x, in<T, 2> W, out<T, R> y)
    {
        std::copy_n(base.data, y.size(), y.data);
        kernels::times_weights(detail::rows_of(y.shape), W.shape[1], W.shape[0], x.data, W.data, true, y.data);
    }
};
inline constexpr addmm_op addmm{};

/// y[b,t] = x[b,t,:] · v: x [B,T,A], v [A] -> [B,T].
///
///     ∂x[b,t,:] += ∂y[b,t] v,  ∂v += Σ ∂y[b,t] x[b,t,:]
///
/// Where ∂y is 0, for example at a masked position, x is not read.
struct matvec_op : operation<matvec_op> {
    static shape_of_rank<2> shape(const auto& x, const auto& v)
    {
        require_shape("matvec", "v", v.shape, {x.shape[2]}, "the size of the last axis of x ", x.shape);
        return {x.shape[0], x.shape[1]};
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 1> v, out<T, 2> y)
    {
        const std::size_t n = v.size();
        detail::each_row(y.size(), n, [=](std::size_t i) { y.data[i] = kernels::dot(n, x.data + i * n, v.data); });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 1> v, in<T, 2> y, in<T, 2> d_y, adjoint<T, 3> d_x, adjoint<T, 1> d_v)
    {
        const std::size_t rows = y.size(), n = v.size();
        if (d_x) {
            detail::each_row(rows, n, [=](std::size_t i) {
                if (d_y.data[i] != T(0)) kernels::add_scaled(n, d_x.data + i * n, d_y.data[i], v.data);
            });
        }
        if (d_v) detail::add_weighted_rows(rows, n, d_y.data, x.data, d_v.data);
    }
};
inline constexpr matvec_op matvec{};

/// y[b,t,:] = keys[b,t,:] + x[b,t] v: keys [B,T,A], x [B,T], v [A] -> [B,T,A].
///
///     ∂keys += ∂y,  ∂x[b,t] += ∂y[b,t,:] · v,  ∂v += Σ x[b,t] ∂y[b,t,:]
struct add_outer_op : operation<add_outer_op> {
    static shape_of_rank<3> shape(const auto& keys, const auto& x, const auto& v)
    {
        require_shape("add_outer", "x", x.shape, {keys.shape[0], keys.shape[1]}, "one for each position of the keys ",
                      keys.shape);
        require_shape("add_outer", "v", v.shape, {keys.shape[2]}, "the size of a key of ", keys.shape);
        return keys.shape;
    }

    template <class T>
    static void forward(in<T, 3> keys, in<T, 2> x, in<T, 1> v, out<T, 3> y)
    {
        const std::size_t n = v.size();
        detail::each_row(x.size(), n, [=](std::size_t i) {
            simd::transform(
                n, y.data + i * n, [f = simd::splat<T>(x.data[i])](auto k, auto u) { return simd::fma(f, u, k); },
                keys.data + i * n, v.data);
        });
    }

    template <class T>
    static void backward(in<T, 3>, in<T, 2> x, in<T, 1> v, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_keys,
                         adjoint<T, 2> d_x, adjoint<T, 1> d_v)
    {
        const std::size_t rows = x.size(), n = v.size();
        if (d_keys) {
            simd::parallel_transform(
                y.size(), d_keys.data, [](auto sum, auto d) { return sum + d; }, static_cast<const T*>(d_keys.data),
                d_y.data);
        }
        if (d_x) {
            detail::each_row(rows, n, [=](std::size_t i) { d_x.data[i] += kernels::dot(n, d_y.data + i * n, v.data); });
        }
        if (d_v) detail::add_weighted_rows(rows, n, x.data, d_y.data, d_v.data);
    }
};
inline constexpr add_outer_op add_outer{};

/// y[b,t] = q[b,:] · k[b,t,:]: q [B,D], k [B,T,D] -> [B,T].
///
///     ∂q[b,:] += Σ_t ∂y[b,t] k[b,t,:],  ∂k[b,t,:] += ∂y[b,t] q[b,:]
///
/// Where ∂y is 0, for example at a masked position, k is not read.
struct dot_per_position_op : operation<dot_per_position_op> {
    static shape_of_rank<2> shape(const auto& q, const auto& k)
    {
        require_shape("dot_per_position", "the query", q.shape, {k.shape[0], k.shape[2]},
                      "one row for each row of the keys ", k.shape);
        return {k.shape[0], k.shape[1]};
    }

    template <class T>
    static void forward(in<T, 2> q, in<T, 3> k, out<T, 2> y)
    {
        const std::size_t D = k.shape[2];
        detail::each_position(k.shape[0], k.shape[1], D, [=](std::size_t b, std::size_t i) {
            y.data[i] = kernels::dot(D, q.data + b * D, k.data + i * D);
        });
    }

    template <class T>
    static void backward(in<T, 2> q, in<T, 3> k, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_q, adjoint<T, 3> d_k)
    {
        const std::size_t D = k.shape[2], positions = k.shape[1];
        detail::each_row(k.shape[0], 2 * D * positions, [=](std::size_t b) {
            const auto rows = [=](std::size_t first, std::size_t last, T* of_query) {
                for (std::size_t i = b * positions + first; i < b * positions + last; ++i) {
                    const T d = d_y.data[i];
                    if (d == T(0)) continue;
                    if (of_query != nullptr) kernels::add_scaled(D, of_query, d, k.data + i * D);
                    if (d_k) kernels::add_scaled(D, d_k.data + i * D, d, q.data + b * D);
                }
            };
            if (!d_q) return rows(0, positions, nullptr);
            kernels::add_in_blocks(positions, D, d_q.data + b * D, rows);
        });
    }
};
inline constexpr dot_per_position_op dot_per_position{};

/// c[b,:] = Σ_t α[b,t] h[b,t,:]: α [B,T], h [B,T,D] -> [B,D]. Values with a weight of exactly 0 are skipped, even if
/// NaN.
///
///     ∂α[b,t] += ∂c[b,:] · h[b,t,:],  ∂h[b,t,:] += α[b,t] ∂c[b,:]
struct weighted_sum_op : operation<weighted_sum_op> {
    static shape_of_rank<2> shape(const auto& weights, const auto& values)
    {
        require_shape("weighted_sum", "the weights", weights.shape, {values.shape[0], values.shape[1]},
                      "one for each position of the values ", values.shape);
        return {values.shape[0], values.shape[2]};
    }

    template <class T>
    static void forward(in<T, 2> weights, in<T, 3> values, out<T, 2> context)
    {
        const std::size_t positions = values.shape[1], D = values.shape[2];
        detail::each_row(values.shape[0], positions * D, [=](std::size_t b) {
            kernels::detail::selected_sum_row(positions, D, weights.data + b * positions,
                                              values.data + b * positions * D, context.data + b * D);
        });
    }

    template <class T>
    static void backward(in<T, 2> weights, in<T, 3> values, in<T, 2>, in<T, 2> d_c, adjoint<T, 2> d_weights,
                         adjoint<T, 3> d_values)
    {
        const std::size_t D = values.shape[2];
        detail::each_position(values.shape[0], values.shape[1], 2 * D, [=](std::size_t b, std::size_t i) {
            const T* const d = d_c.data + b * D;
            if (d_weights) d_weights.data[i] += kernels::dot(D, d, values.data + i * D);
            if (d_values && weights.data[i] != T(0)) {
                kernels::add_scaled(D, d_values.data + i * D, weights.data[i], d);
            }
        });
    }
};
inline constexpr weighted_sum_op weighted_sum{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET {

/// Takes the place of a policy's bias, for x W instead of x W + b. Has no parameters.
struct no_bias {
    static auto parameters(auto&, auto&&) { return no_bias{}; }
};

namespace detail {

/// x W + b, or x W with no_bias: x [...,K], W [K,N], b [N] -> [...,N].
auto linear_with(const tensor auto& x, const auto& W, const auto& b) { return ops::linear(x, W, b); }
auto linear_with(const tensor auto& x, const auto& W, const no_bias&) { return ops::linear(x, W); }

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
