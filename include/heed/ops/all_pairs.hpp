// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/blas.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/operation.hpp>

/// Products of many queries with all positions of their sentence: matrix products, one a sentence. Row b·S + s of a
/// matrix [B·S,T] belongs to query s of sentence b.
namespace heed::ops {

namespace detail {

/// In a matrix product 0 · NaN is NaN: what a mask hides must be finite for it.
template <class T>
bool all_finite(std::size_t n, const T* x)
{
    unsigned not_finite = 0;  // x − x is 0 unless x is infinite or NaN
    for (std::size_t i = 0; i < n; ++i) not_finite |= static_cast<unsigned>(x[i] - x[i] != T(0));
    return not_finite == 0;
}

/// f(b) for every sentence, shared out among the threads; each costs about `work` multiplications.
template <class F>
void for_each_sentence(std::size_t B, std::size_t work, F&& f)
{
    const auto some = [&](std::size_t first, std::size_t last, std::size_t) {
        for (std::size_t b = first; b < last; ++b) f(b);
    };
    if (B > 1 && blas::detail::callable_from_several_threads()) {
        parallel_for(B, kernels::detail::rows_a_shard(work), some);
    } else {
        some(0, B, 0);
    }
}

}  // namespace detail

/// y[b·S+s,t] = q[b,s,:] · k[b,t,:]: q [B,S,D], k [B,T,D] -> [B·S,T].
struct dot_all_op : operation<dot_all_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<3>& q, const shape_of_rank<3>& k)
    {
        require_shape("dot_all", "the queries", q, {k[0], q[1], k[2]}, "as many sentences and as wide as the keys");
        return {q[0] * q[1], k[1]};
    }

    template <class T>
    static void compute(const shape_of_rank<3>& q_shape, std::size_t positions, const T* q, const T* k, T* y)
    {
        const auto [B, S, D] = q_shape;
        detail::for_each_sentence(B, S * positions * D, [&, S = S, D = D](std::size_t b) {
            blas::gemm(blas::op::plain, blas::op::transposed, S, positions, D, q + b * S * D, k + b * positions * D,
                       T(0), y + b * S * positions);
        });
    }

    template <plain_tensor Q, plain_tensor K>
    auto plain(const Q& q, const K& k) const
    {
        using T = element_of<Q>;
        array<T, 2> y(result_shape(shape_of(q), shape_of(k)));
        compute<T>(shape_of(q), shape_of(k)[1], view_of(q).data, view_of(k).data, y.data());
        return y;
    }
};
inline constexpr dot_all_op dot_all{};

/// c[b,s,:] = Σ_t α[b·S+s,t] h[b,t,:]: α [B·S,T], h [B,T,D] -> [B,S,D]. A weight of exactly 0 selects its value away,
/// even a NaN.
struct weighted_sums_op : operation<weighted_sums_op> {
    static shape_of_rank<3> result_shape(const shape_of_rank<2>& weights, const shape_of_rank<3>& values)
    {
        const std::size_t S = values[0] == 0 ? 0 : weights[0] / values[0];
        require_shape("weighted_sums", "the weights", weights, {values[0] * S, values[1]},
                      "some rows for each sentence, and a weight for each position");
        return {values[0], S, values[2]};
    }

    template <class T>
    static void compute(const shape_of_rank<3>& shape, std::size_t S, const T* weights, const T* values, T* contexts)
    {
        const auto [B, positions, D] = shape;
        detail::for_each_sentence(B, S * positions * D, [&, positions = positions, D = D](std::size_t b) {
            const T* const w = weights + b * S * positions;
            const T* const h = values + b * positions * D;
            T* const c = contexts + b * S * D;
            if (detail::all_finite(positions * D, h)) {
                blas::gemm(blas::op::plain, blas::op::plain, S, D, positions, w, h, T(0), c);
            } else {
                for (std::size_t s = 0; s < S; ++s) {
                    kernels::detail::selected_sum_row(positions, D, w + s * positions, h, c + s * D);
                }
            }
        });
    }

    template <plain_tensor W, plain_tensor H>
    auto plain(const W& weights, const H& values) const
    {
        using T = element_of<H>;
        const auto shape = result_shape(shape_of(weights), shape_of(values));
        array<T, 3> contexts(shape);
        compute<T>(shape_of(values), shape[1], view_of(weights).data, view_of(values).data, contexts.data());
        return contexts;
    }
};
inline constexpr weighted_sums_op weighted_sums{};

}  // namespace heed::ops
