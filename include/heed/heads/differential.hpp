// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>

#include <heed/core/tensor.hpp>
#include <heed/ops/differences.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/rms_norm.hpp>

namespace heed::per_head {

/// Heads in pairs that read the same values: the second of each is subtracted from the first, and each difference is
/// normalised alone (differential attention).
///
///     head_h = (softmax(Q1 K1ᵀ / √d) − λ softmax(Q2 K2ᵀ / √d)) V
///     λ = exp(λ_q1 · λ_k1) − exp(λ_q2 · λ_k2) + λ_init
///     MultiHead = Concat(…, (1 − λ_init) norm(head_h), …) W_O         Ye et al. 2024, section 2.1, eq. 1-3
///
///     const per_head::differential subtract{q1, k1, q2, k2, gain, 0.8};
///     multi_head attend{std::vector(2 * n, head), W_Q, W_K, W_V, W_O, subtract};
///
/// (softmax_1 − λ softmax_2) V = softmax_1 V − λ softmax_2 V, so that both are contexts of ordinary heads, in any of
/// their kernels: W_Q and W_K have columns for 2n heads, [q1 of head 0, q2 of head 0, q1 of head 1, …], W_V for n of
/// width V, and W_O has n·V rows. The norm is the root mean square of each head, with a gain [V] for all of them;
/// without its mean, with ε = 1e-5 and before 1 − λ_init, as in the authors' program (their GroupNorm). λ is the same
/// for all heads. The paper's V is 2d. There the gain is 1 at first, and the vectors of λ are drawn from N(0, 0.1²).
///
/// `step` returns the weights of all 2n heads; `weights(of_heads)` are their differences.
template <class Vector>
struct differential {
    Vector lambda_q1, lambda_k1, lambda_q2, lambda_k2;  // [d]
    Vector gain;                                        // [V]
    double lambda_init = 0.8;
    double epsilon = 1e-5;

    static constexpr std::size_t heads_a_value = 2;

    auto operator()(const tensor auto& contexts, const auto&) const  // [...,2n·V] -> [...,n·V]
    {
        const auto heads = ops::differences(contexts, lambda(), shape_of(gain)[0]);
        return ops::scale(ops::rms_norm(heads, gain, epsilon), 1 - lambda_init);
    }

    auto lambda() const  // [1]
    {
        return ops::difference_factor(lambda_q1, lambda_k1, lambda_q2, lambda_k2, lambda_init);
    }

    /// The weights with which each pair of heads reads its values: of [B,2n,T], the differences [B,n,T].
    auto weights(const tensor auto& of_heads) const
    {
        const auto [B, n, T] = shape_of(of_heads);
        const auto rows = ops::differences(ops::reshaped(of_heads, shape_of_rank<2>{B, n * T}), lambda(), T);
        return ops::reshaped(rows, shape_of_rank<3>{B, n / 2, T});
    }

    /// The paper's λ_init of layer l, counted from 1.
    static double init_of_layer(std::size_t l) { return 0.8 - 0.6 * std::exp(-0.3 * (static_cast<double>(l) - 1)); }

    static auto parameters(auto& self, auto&& visit)
    {
        auto q1 = visit("lambda_q1", self.lambda_q1);
        auto k1 = visit("lambda_k1", self.lambda_k1);
        auto q2 = visit("lambda_q2", self.lambda_q2);
        auto k2 = visit("lambda_k2", self.lambda_k2);
        auto gain = visit("gain", self.gain);
        return per_head::differential<decltype(gain)>{std::move(q1),   std::move(k1),    std::move(q2), std::move(k2),
                                                      std::move(gain), self.lambda_init, self.epsilon};
    }
};

template <class Vector, class Vector2, class Vector3, class Vector4, class Vector5>
differential(Vector, Vector2, Vector3, Vector4, Vector5, double = 0.8, double = 1e-5)
    -> differential<joint_tensor<Vector, Vector2, Vector3, Vector4, Vector5>>;

}  // namespace heed::per_head
