// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/groups.hpp>

/// The taped twins of ops/groups.hpp.
namespace heed::ad {

/// c_d = Σ_t α_t^g(d) h_t^d  ->  ∂α_t^g += Σ_{d in g} ∂c_d h_t^d,  ∂h_t^d += ∂c_d α_t^g(d)
template <tensor W, tensor H>
auto twin(const ops::grouped_sum_op& operation, const W& weights_, const H& values_)
{
    using T = element_of<H>;
    tape<T>& on = tape_of(weights_, values_);
    const auto shape = operation.result_shape(shape_of(weights_), shape_of(values_));
    const var<T, 3> weights = on_tape(on, weights_), values = on_tape(on, values_);
    auto [context, out] = on.template make<2>(shape, weights.wanted() || values.wanted());
    operation.compute(values.shape(), weights.shape()[2], weights.data(), values.data(), out);
    on.record(context, [&on, weights, values](const T* d_c) {
        T* d_w = on.wanted_adjoint(weights);
        T* d_h = on.wanted_adjoint(values);
        const auto [B, positions, D] = values.shape();
        const std::size_t G = weights.shape()[2], n = D / G;
        for (std::size_t r = 0; r < B * positions; ++r) {
            for (std::size_t g = 0; g < G; ++g) {
                const T* d = d_c + r / positions * D + g * n;
                const T weight = weights.data()[r * G + g];
                if (d_w != nullptr) d_w[r * G + g] += kernels::dot(n, d, values.data() + r * D + g * n);
                if (d_h != nullptr && weight != T(0)) kernels::add_scaled(n, d_h + r * D + g * n, weight, d);
            }
        }
    });
    return context;
}

}  // namespace heed::ad
