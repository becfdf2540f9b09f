// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include <heed/core/blas.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/operation.hpp>

/// Products: of rows and matrices, of queries and keys, of weights and values.
namespace heed::ops {

/// y = x W, or x W + b: x [...,K], W [K,N], b [N] -> [...,N]. All leading axes go through one matrix product.
struct linear_op : operation<linear_op> {
    template <std::size_t R>
    static shape_of_rank<R> result_shape(const shape_of_rank<R>& x, const shape_of_rank<2>& W)
    {
        if (x[R - 1] != W[0]) {
            throw shape_error("linear: x is " + shape_text(x) + " and W is " + shape_text(W) +
                              ", but W must have as many rows as x has columns, " + std::to_string(x[R - 1]));
        }
        shape_of_rank<R> y = x;
        y[R - 1] = W[1];
        return y;
    }
    static void check_bias(const shape_of_rank<2>& W, const shape_of_rank<1>& b)
    {
        require_shape("linear", "the bias", b, {W[1]}, "one number for each column of W ", W);
    }

    template <class T>
    static void compute(std::size_t rows, std::size_t K, std::size_t N, const T* x, const T* W, const T* b, T* y)
    {
        if (b != nullptr) {
            for (std::size_t i = 0; i < rows; ++i) std::copy_n(b, N, y + i * N);
        }
        blas::gemm(blas::op::plain, blas::op::plain, rows, N, K, x, W, b != nullptr ? T(1) : T(0), y);
    }

    template <plain_tensor X, plain_tensor M>
    auto plain(const X& x, const M& W) const
    {
        return of<element_of<X>>(view_of(x), view_of(W), nullptr);
    }
    template <plain_tensor X, plain_tensor M, plain_tensor V>
    auto plain(const X& x, const M& W, const V& b) const
    {
        check_bias(shape_of(W), shape_of(b));
        return of<element_of<X>>(view_of(x), view_of(W), view_of(b).data);
    }

private:
    template <class T, std::size_t R>
    static array<T, R> of(tensor_view<const T, R> x, tensor_view<const T, 2> W, const T* b)
    {
        auto y = storage_for<T, R>(result_shape(x.shape, W.shape));
        compute<T>(W.shape[0] == 0 ? rows_of(x.shape) : x.size() / W.shape[0], W.shape[0], W.shape[1], x.data, W.data,
                   b, y.data());
        return y;
    }

    template <std::size_t R>
    static std::size_t rows_of(const shape_of_rank<R>& shape)
    {
        std::size_t rows = 1;
        for (std::size_t axis = 0; axis + 1 < R; ++axis) rows *= shape[axis];
        return rows;
    }
};
inline constexpr linear_op linear{};

/// y = x v: x [B,T,A], v [A] -> [B,T].
struct matvec_op : operation<matvec_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<3>& x, const shape_of_rank<1>& v)
    {
        require_shape("matvec", "v", v, {x[2]}, "as long as the last axis of x ", x);
        return {x[0], x[1]};
    }

    template <class T>
    static void compute(std::size_t rows, std::size_t n, const T* x, const T* v, T* y)
    {
        parallel_for(rows, kernels::detail::rows_a_shard(n), [=](std::size_t first, std::size_t last, std::size_t) {
            for (std::size_t i = first; i < last; ++i) y[i] = kernels::dot(n, x + i * n, v);
        });
    }

    template <plain_tensor X, plain_tensor V>
    auto plain(const X& x, const V& v) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, 2>(result_shape(shape_of(x), shape_of(v)));
        compute<T>(y.size(), view_of(v).size(), view_of(x).data, view_of(v).data, y.data());
        return y;
    }
};
inline constexpr matvec_op matvec{};

/// y[b,t] = q[b,:] · k[b,t,:]: q [B,D], k [B,T,D] -> [B,T].
struct dot_each_op : operation<dot_each_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<2>& q, const shape_of_rank<3>& k)
    {
        require_shape("dot_each", "the query", q, {k[0], k[2]}, "one row for each row of the keys ", k);
        return {k[0], k[1]};
    }

    template <class T>
    static void compute(const shape_of_rank<3>& shape, const T* q, const T* k, T* y)
    {
        const std::size_t positions = shape[1], D = shape[2];
        parallel_for(shape[0], kernels::detail::rows_a_shard(positions * D),
                     [=](std::size_t first, std::size_t last, std::size_t) {
                         for (std::size_t b = first; b < last; ++b) {
                             for (std::size_t i = b * positions; i < (b + 1) * positions; ++i) {
                                 y[i] = kernels::dot(D, q + b * D, k + i * D);
                             }
                         }
                     });
    }

    template <plain_tensor Q, plain_tensor K>
    auto plain(const Q& q, const K& k) const
    {
        using T = element_of<Q>;
        auto y = storage_for<T, 2>(result_shape(shape_of(q), shape_of(k)));
        compute<T>(shape_of(k), view_of(q).data, view_of(k).data, y.data());
        return y;
    }
};
inline constexpr dot_each_op dot_each{};

/// c[b,:] = Σ_t α[b,t] h[b,t,:]: α [B,T], h [B,T,D] -> [B,D]. A weight of exactly 0 selects its value away, even a NaN.
struct weighted_sum_op : operation<weighted_sum_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<2>& weights, const shape_of_rank<3>& values)
    {
        require_shape("weighted_sum", "the weights", weights, {values[0], values[1]},
                      "one for each position of the values ", values);
        return {values[0], values[2]};
    }

    template <class T>
    static void compute(const shape_of_rank<3>& shape, const T* weights, const T* values, T* context)
    {
        const auto [B, T_, D] = shape;
        parallel_for(B, kernels::detail::rows_a_shard(T_ * D),
                     [&, T_ = T_, D = D](std::size_t first, std::size_t last, std::size_t) {
                         for (std::size_t b = first; b < last; ++b) {
                             kernels::detail::selected_sum_row(T_, D, weights + b * T_, values + b * T_ * D,
                                                               context + b * D);
                         }
                     });
    }

    template <plain_tensor W, plain_tensor H>
    auto plain(const W& weights, const H& values) const
    {
        using T = element_of<H>;
        auto context = storage_for<T, 2>(result_shape(shape_of(weights), shape_of(values)));
        compute<T>(shape_of(values), view_of(weights).data, view_of(values).data, context.data());
        return context;
    }
};
inline constexpr weighted_sum_op weighted_sum{};

/// c[b,d] = Σ_t α[b,t,d] h[b,t,d]: α, h [B,T,D] -> [B,D].
struct elementwise_sum_op : operation<elementwise_sum_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<3>& weights, const shape_of_rank<3>& values)
    {
        require_shape("elementwise_sum", "the weights", weights, values, "one for each dimension of each value");
        return {values[0], values[2]};
    }

    template <class T>
    static void compute(const shape_of_rank<3>& shape, const T* weights, const T* values, T* context)
    {
        const auto [B, T_, D] = shape;
        for (std::size_t b = 0; b < B; ++b) {
            T* c = context + b * D;
            std::fill_n(c, D, T(0));
            for (std::size_t t = b * T_; t < (b + 1) * T_; ++t) {
                simd::transform(
                    D, c, [](auto sum, auto w, auto h) { return simd::select(w == T(0), sum, sum + w * h); },
                    static_cast<const T*>(c), weights + t * D, values + t * D);
            }
        }
    }

    template <plain_tensor W, plain_tensor H>
    auto plain(const W& weights, const H& values) const
    {
        using T = element_of<H>;
        auto context = storage_for<T, 2>(result_shape(shape_of(weights), shape_of(values)));
        compute<T>(shape_of(values), view_of(weights).data, view_of(values).data, context.data());
        return context;
    }
};
inline constexpr elementwise_sum_op elementwise_sum{};

}  // namespace heed::ops
