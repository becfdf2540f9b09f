// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include <heed/core/errors.hpp>
#include <heed/core/family.hpp>
#include <heed/core/tensor.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/rms_norm.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/sums.hpp>

/// Differences of pairs of heads.
namespace heed::inline HEED_TARGET::per_head {

/// Heads in pairs that share values: the second head of each pair is subtracted from the first, and each difference is
/// normalized separately (differential attention).
///
///     head_h = (softmax(Q1 K1ᵀ / √d) − λ softmax(Q2 K2ᵀ / √d)) V
///     λ = exp(λ_q1 · λ_k1) − exp(λ_q2 · λ_k2) + λ_init
///     MultiHead = Concat(…, (1 − λ_init) norm(head_h), …) W_O         Ye et al. 2024, section 2.1, eq. 1-3
///
///     const per_head::differential subtract{q1, k1, q2, k2, gain, 0.8};
///     multi_head attend{std::vector(2 * n, head), W_Q, W_K, W_V, W_O, subtract};
///
/// (softmax_1 − λ softmax_2) V = softmax_1 V − λ softmax_2 V: both are contexts of ordinary heads, computed by their
/// usual kernels. W_Q and W_K have columns for 2n heads, [q1 of head 0, q2 of head 0, q1 of head 1, …], W_V for n of
/// width V, and W_O has n·V rows. The norm is the root mean square of each head, with one gain [V] for all heads; as in
/// the authors' program it subtracts no mean, ε = 1e-5, and it precedes the factor 1 − λ_init. All heads share one λ.
/// The paper's V is 2d; it initializes the gain to 1 and draws the vectors of λ from N(0, 0.1²).
///
/// `step` returns the weights of all 2n heads; `weights(of_heads)` returns their differences. Throws shape_error unless
/// the last axis of the contexts is a multiple of 2V.
template <class Vector>
struct differential {
    Vector lambda_q1, lambda_k1, lambda_q2, lambda_k2;  // [d]
    Vector gain;                                        // [V]
    double lambda_init = 0.8;
    double epsilon = 1e-5;

    static constexpr std::size_t heads_per_value = 2;

    auto operator()(const tensor auto& contexts, const auto&) const  // [...,2n·V] -> [...,n·V]
    {
        auto shape = shape_of(contexts);
        const std::size_t V = shape_of(gain)[0];
        if (V == 0 || shape.back() % (2 * V) != 0) {
            throw shape_error("per_head::differential: pairs of heads of width " + std::to_string(V) + " in " +
                              shape_text(shape) + "; the last axis must be a multiple of twice the gain's size");
        }
        shape.back() /= 2;
        const auto heads = differences(contexts, ops::detail::rows_of(shape) * shape.back() / V, V);
        return ops::reshaped(ops::scale(ops::rms_norm(heads, gain, epsilon), 1 - lambda_init), shape);
    }

    auto lambda() const  // []
    {
        const auto one = ops::exp(ops::dot(lambda_q1, lambda_k1)), two = ops::exp(ops::dot(lambda_q2, lambda_k2));
        return ops::add(ops::subtract(one, two), constant_like(one, shape_of_rank<0>{}, lambda_init));
    }

    /// The weights of each pair of heads on its values: from [B,2n,T], the differences [B,n,T].
    auto weights(const tensor auto& of_heads) const
    {
        const auto [B, n, T] = shape_of(of_heads);
        return ops::reshaped(differences(of_heads, B * n / 2, T), shape_of_rank<3>{B, n / 2, T});
    }

    /// The paper's λ_init of layer l, counted from 1.
    static double init_of_layer(std::size_t l) { return 0.8 - 0.6 * std::exp(-0.3 * (static_cast<double>(l) - 1)); }

    static auto parameters(auto& self, auto&& visit)
    {
        return per_head::differential{visit("lambda_q1", self.lambda_q1),
                                      visit("lambda_k1", self.lambda_k1),
                                      visit("lambda_q2", self.lambda_q2),
                                      visit("lambda_k2", self.lambda_k2),
                                      visit("gain", self.gain),
                                      self.lambda_init,
                                      self.epsilon};
    }

private:
    /// x_{2h} − λ x_{2h+1} for `pairs` pairs of vectors of size `width`: [pairs,width].
    auto differences(const tensor auto& x, std::size_t pairs, std::size_t width) const
    {
        const auto both = ops::reshaped(x, shape_of_rank<3>{pairs, 2, width});
        return ops::subtract(ops::step_of(both, 0), ops::multiply(ops::step_of(both, 1), lambda()));
    }
};

template <class Vector, class Vector2, class Vector3, class Vector4, class Vector5>
differential(Vector, Vector2, Vector3, Vector4, Vector5, double = 0.8, double = 1e-5)
    -> differential<joint_tensor<Vector, Vector2, Vector3, Vector4, Vector5>>;

}  // namespace heed::inline HEED_TARGET::per_head
