// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/gemm/blas.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/rows.hpp>

/// Products of many queries with all positions of their sentence: matrix products, one per sentence. Row b·S + s of a
/// matrix [B·S,T] belongs to query s of sentence b.
namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// In a matrix product 0 · NaN is NaN, so masked values must be finite.
template <class T>
bool all_finite(std::size_t n, const T* x)
{
    unsigned not_finite = 0;  // x − x is 0 unless x is infinite or NaN
    for (std::size_t i = 0; i < n; ++i) not_finite |= static_cast<unsigned>(x[i] - x[i] != T(0));
    return not_finite == 0;
}

/// y += aᵀ x over the elements of a that are not 0: a [S,T], x [S,D], y [T,D].
template <class T>
void add_selected(std::size_t S, std::size_t positions, std::size_t D, const T* a, const T* x, T* y)
{
    if (all_finite(S * D, x)) return blas::gemm(blas::op::transposed, blas::op::plain, positions, D, S, a, x, T(1), y);
    for (std::size_t i = 0; i < S * positions; ++i)
        if (a[i] != T(0)) kernels::add_scaled(D, y + i % positions * D, a[i], x + i / positions * D);
}

/// f(b) for every sentence, in parallel if the BLAS allows it; each costs about `work` multiplications.
void for_each_sentence(std::size_t B, std::size_t work, const auto& f)
{
    if (B > 1 && blas::detail::callable_from_several_threads()) return each_row(B, work, f);
    for (std::size_t b = 0; b < B; ++b) f(b);
}

}  // namespace detail

/// y[b·S+s,t] = q[b,s,:] · k[b,t,:]: q [B,S,D], k [B,T,D] -> [B·S,T]. For each sentence Y = Q Kᵀ.
///
///     ∂Q += ∂Y K,  ∂K += ∂Yᵀ Q
///
/// Where ∂y is 0, for example at a masked position, a key or a query may be infinite or NaN.
struct bmm_nt_op : operation<bmm_nt_op> {
    static shape_of_rank<2> shape(const auto& q, const auto& k)
    {
        require_shape("bmm_nt", "the queries", q.shape, {k.shape[0], q.shape[1], k.shape[2]},
                      "the sentences and width of the keys");
        return {q.shape[0] * q.shape[1], k.shape[1]};
    }

    template <class T>
    static void forward(in<T, 3> q, in<T, 3> k, out<T, 2> y)
    {
        const std::size_t S = q.shape[1], D = q.shape[2], positions = k.shape[1];
        detail::for_each_sentence(q.shape[0], S * positions * D, [=](std::size_t b) {
            blas::gemm(blas::op::plain, blas::op::transposed, S, positions, D, q.data + b * S * D,
                       k.data + b * positions * D, T(0), y.data + b * S * positions);
        });
    }

    template <class T>
    static void backward(in<T, 3> q, in<T, 3> k, in<T, 2>, in<T, 2> d_y, adjoint<T, 3> d_q, adjoint<T, 3> d_k)
    {
        const std::size_t S = q.shape[1], D = q.shape[2], positions = k.shape[1];
        detail::for_each_sentence(q.shape[0], 2 * S * positions * D, [=](std::size_t b) {
            const T* const d = d_y.data + b * S * positions;
            const T* const keys = k.data + b * positions * D;
            if (d_q && detail::all_finite(positions * D, keys)) {
                blas::gemm(blas::op::plain, blas::op::plain, S, D, positions, d, keys, T(1), d_q.data + b * S * D);
            } else if (d_q) {
                for (std::size_t i = 0; i < S * positions; ++i) {
                    if (d[i] == T(0)) continue;
                    kernels::add_scaled(D, d_q.data + (b * S + i / positions) * D, d[i], keys + i % positions * D);
                }
            }
            if (d_k) detail::add_selected(S, positions, D, d, q.data + b * S * D, d_k.data + b * positions * D);
        });
    }
};
inline constexpr bmm_nt_op bmm_nt{};

/// c[b,s,:] = Σ_t α[b·S+s,t] h[b,t,:]: α [B·S,T], h [B,T,D] -> [B,S,D]. For each sentence C = A H. Values with a weight
/// of exactly 0 are skipped, even if NaN.
///
///     ∂A += ∂C Hᵀ,  ∂H += Aᵀ ∂C, where a value of weight 0 gets no gradient
struct bmm_op : operation<bmm_op> {
    static shape_of_rank<3> shape(const auto& weights, const auto& values)
    {
        const std::size_t B = values.shape[0], S = B == 0 ? 0 : weights.shape[0] / B;
        require_shape("bmm", "the weights", weights.shape, {B * S, values.shape[1]},
                      "S rows for each sentence, and one weight for each position");
        return {B, S, values.shape[2]};
    }

    template <class T>
    static void forward(in<T, 2> weights, in<T, 3> values, out<T, 3> contexts)
    {
        const std::size_t S = contexts.shape[1], positions = values.shape[1], D = values.shape[2];
        detail::for_each_sentence(values.shape[0], S * positions * D, [=](std::size_t b) {
            const T* const w = weights.data + b * S * positions;
            const T* const h = values.data + b * positions * D;
            T* const c = contexts.data + b * S * D;
            if (detail::all_finite(positions * D, h)) {
                blas::gemm(blas::op::plain, blas::op::plain, S, D, positions, w, h, T(0), c);
            } else {
                for (std::size_t s = 0; s < S; ++s) {
                    kernels::detail::selected_sum_row(positions, D, w + s * positions, h, c + s * D);
                }
            }
        });
    }

    template <class T>
    static void backward(in<T, 2> weights, in<T, 3> values, in<T, 3> contexts, in<T, 3> d_c, adjoint<T, 2> d_weights,
                         adjoint<T, 3> d_values)
    {
        const std::size_t S = contexts.shape[1], positions = values.shape[1], D = values.shape[2];
        detail::for_each_sentence(values.shape[0], 2 * S * positions * D, [=](std::size_t b) {
            const T* const d = d_c.data + b * S * D;
            if (d_weights) {
                blas::gemm(blas::op::plain, blas::op::transposed, S, positions, D, d, values.data + b * positions * D,
                           T(1), d_weights.data + b * S * positions);
            }
            if (d_values) {
                detail::add_selected(S, positions, D, weights.data + b * S * positions, d,
                                     d_values.data + b * positions * D);
            }
        });
    }
};
inline constexpr bmm_op bmm{};

}  // namespace heed::inline HEED_TARGET::ops
