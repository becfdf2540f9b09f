// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/all_pairs.hpp>

/// The taped twins of ops/all_pairs.hpp.
namespace heed::ad {

/// Y = Q Kᵀ, sentence by sentence  ->  ∂Q += ∂Y K,  ∂K += ∂Yᵀ Q
template <tensor Q, tensor K>
auto twin(const ops::dot_all_op& operation, const Q& q_, const K& k_)
{
    using T = element_of<Q>;
    tape<T>& on = tape_of(q_, k_);
    const auto shape = operation.result_shape(shape_of(q_), shape_of(k_));
    const var<T, 3> q = on_tape(on, q_), k = on_tape(on, k_);
    auto [y, out] = on.template make<2>(shape, q.wanted() || k.wanted());
    operation.compute(q.shape(), shape[1], q.data(), k.data(), out);
    on.record(y, [&on, q, k, positions = shape[1]](const T* d_y) {
        T* d_q = on.wanted_adjoint(q);
        T* d_k = on.wanted_adjoint(k);
        const auto [B, S, D] = q.shape();
        ops::detail::for_each_sentence(
            B, 2 * S * positions * D, [=, S = S, D = D, q = q.data(), k = k.data()](std::size_t b) {
                const T* const d = d_y + b * S * positions;
                const T* const k_b = k + b * positions * D;
                if (d_q != nullptr && ops::detail::all_finite(positions * D, k_b)) {
                    blas::gemm(blas::op::plain, blas::op::plain, S, D, positions, d, k_b, T(1), d_q + b * S * D);
                } else if (d_q != nullptr) {
                    for (std::size_t i = 0; i < S * positions; ++i) {
                        if (d[i] == T(0)) continue;  // a masked position: whatever is there stays there
                        kernels::add_scaled(D, d_q + (b * S + i / positions) * D, d[i], k_b + i % positions * D);
                    }
                }
                if (d_k != nullptr) {
                    blas::gemm(blas::op::transposed, blas::op::plain, positions, D, S, d, q + b * S * D, T(1),
                               d_k + b * positions * D);
                }
            });
    });
    return y;
}

/// C = A H, sentence by sentence  ->  ∂A += ∂C Hᵀ,  ∂H += Aᵀ ∂C
template <tensor W, tensor H>
auto twin(const ops::weighted_sums_op& operation, const W& weights_, const H& values_)
{
    using T = element_of<H>;
    tape<T>& on = tape_of(weights_, values_);
    const auto shape = operation.result_shape(shape_of(weights_), shape_of(values_));
    const var<T, 2> weights = on_tape(on, weights_);
    const var<T, 3> values = on_tape(on, values_);
    auto [contexts, out] = on.template make<3>(shape, weights.wanted() || values.wanted());
    operation.compute(values.shape(), shape[1], weights.data(), values.data(), out);
    on.record(contexts, [&on, weights, values, S = shape[1]](const T* d_c) {
        T* d_w = on.wanted_adjoint(weights);
        T* d_h = on.wanted_adjoint(values);
        const auto [B, positions, D] = values.shape();
        ops::detail::for_each_sentence(
            B, 2 * S * positions * D,
            [=, positions = positions, D = D, w = weights.data(), h = values.data()](std::size_t b) {
                const T* const d = d_c + b * S * D;
                if (d_w != nullptr) {
                    blas::gemm(blas::op::plain, blas::op::transposed, S, positions, D, d, h + b * positions * D, T(1),
                               d_w + b * S * positions);
                }
                if (d_h != nullptr) {
                    blas::gemm(blas::op::transposed, blas::op::plain, positions, D, S, w + b * S * positions, d, T(1),
                               d_h + b * positions * D);
                }
            });
    });
    return contexts;
}

}  // namespace heed::ad
