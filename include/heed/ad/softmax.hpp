// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/softmax.hpp>

namespace heed::ad {

/// α = softmax(e)  ->  ∂e_j += α_j (∂α_j − Σ_k α_k ∂α_k), for [B,T,D] in every dimension
template <class T, std::size_t R>
var<T, R> twin(const ops::softmax_op& operation, const var<T, R>& scores, const lengths& real)
{
    tape<T>& on = scores.tape();
    real.require("softmax", scores.shape()[0], scores.shape()[1]);
    auto [weights, out] = on.template make<R>(scores.shape(), scores.wanted());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    operation.template compute<T>(scores.shape(), kept, scores.data(), out);
    on.record(weights, [&on, scores, weights = weights, kept](const T* d_w) {
        const auto& shape = scores.shape();
        T* d_e = on.adjoint(scores);
        if constexpr (R == 2) {
            kernels::softmax_backward(shape[0], shape[1], kept, weights.data(), d_w, d_e);
        } else {
            kernels::softmax_per_dimension_backward(shape[0], shape[1], shape[2], kept, weights.data(), d_w, d_e);
        }
    });
    return weights;
}

}  // namespace heed::ad
