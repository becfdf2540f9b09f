// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/mask.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/operation.hpp>

namespace heed::ops {

/// α = softmax(e) over the positions of each row: e [B,T], or [B,T,D] with one softmax for every dimension.
/// Behind a row's length, and in a row of length 0, weights are 0 and gradients are 0.
struct softmax_op : operation<softmax_op> {
    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, const T* scores, T* weights)
    {
        static_assert(R == 2 || R == 3, "heed: softmax takes scores [B,T] or [B,T,D]");
        if constexpr (R == 2) {
            kernels::softmax(shape[0], shape[1], real, scores, weights);
        } else {
            kernels::softmax_per_dimension(shape[0], shape[1], shape[2], real, scores, weights);
        }
    }

    template <plain_tensor E>
    auto plain(const E& scores, const lengths& real) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(scores);
        real.require("softmax", shape[0], shape[1]);
        auto weights = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), view_of(scores).data, weights.data());
        return weights;
    }
};
inline constexpr softmax_op softmax{};

}  // namespace heed::ops
