// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/softmax.hpp>
#include <heed/ops/rows.hpp>

namespace heed::ops {

/// α = softmax(e) over the positions of each row: e [B,T], or [B,T,D] with one softmax per dimension.
///
///     ∂e_j += α_j (∂α_j − Σ_k α_k ∂α_k)
///
/// Beyond a row's length, and in a row of length 0, weights and gradients are 0.
struct softmax_op : row_operation<softmax_op> {
    static constexpr const char* name = "softmax";

    template <class T>
    static void forward(in<T, 2> e, const lengths_view& real, out<T, 2> weights)
    {
        kernels::softmax(e.shape[0], e.shape[1], real.data(), e.data, weights.data);
    }
    template <class T>
    static void forward(in<T, 3> e, const lengths_view& real, out<T, 3> weights)
    {
        kernels::softmax_per_dimension(e.shape[0], e.shape[1], e.shape[2], real.data(), e.data, weights.data);
    }

    template <class T>
    static void backward(in<T, 2> e, const lengths_view& real, in<T, 2> weights, in<T, 2> d_weights, adjoint<T, 2> d_e)
    {
        kernels::softmax_backward(e.shape[0], e.shape[1], real.data(), weights.data, d_weights.data, d_e.data);
    }
    template <class T>
    static void backward(in<T, 3> e, const lengths_view& real, in<T, 3> weights, in<T, 3> d_weights, adjoint<T, 3> d_e)
    {
        kernels::softmax_per_dimension_backward(e.shape[0], e.shape[1], e.shape[2], real.data(), weights.data,
                                                d_weights.data, d_e.data);
    }
};
inline constexpr softmax_op softmax{};

}  // namespace heed::ops
