// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/kernels/sparse.hpp>
#include <heed/ops/rows.hpp>

/// Weights other than softmax: sparse, independent, or at another temperature.
namespace heed::inline HEED_TARGET::ops {

/// α_j = max(z_j − τ, 0)^power with τ such that Σ_j α_j = 1 over the positions of each row, see kernels/sparse.hpp:
/// e [B,T], or [B,T,D] with one τ per dimension. Beyond a row's length weights and gradients are 0.
template <int power>
struct sparse_weights_op : row_operation<sparse_weights_op<power>> {
    static constexpr const char* name = power == 1 ? "sparsemax" : "entmax15";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, out<T, R> weights)
    {
        kernels::sparse_weights<power>(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(), e.data,
                                       weights.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, in<T, R> weights, in<T, R> d_weights, adjoint<T, R> d_e)
    {
        kernels::sparse_weights_backward<power>(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(),
                                                weights.data, d_weights.data, d_e.data);
    }
};
/// α_j = max(e_j − τ, 0): e [B,T] or [B,T,D]. Martins and Astudillo 2016.
///
///     ∂e_j += ∂α_j − mean of ∂α over the positions with nonzero weight; 0 elsewhere
inline constexpr sparse_weights_op<1> sparsemax{};
/// α_j = max(e_j / 2 − τ, 0)²: e [B,T] or [B,T,D]. Peters et al. 2019, α = 1.5.
///
///     ∂e_j += s_j (∂α_j − Σ_k s_k ∂α_k / Σ_k s_k),  s = √α
inline constexpr sparse_weights_op<2> entmax15{};

}  // namespace heed::inline HEED_TARGET::ops
