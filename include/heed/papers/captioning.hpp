// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Decoders that attend to locations of an image: xu2015.

#include <cstdint>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/gated.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/hard.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/score/additive.hpp>

/// Xu et al. 2015, "Show, Attend and Tell". Annotations are locations of an image, or anything else. f_att, eq. 4, is a
/// network with one hidden layer: Bahdanau's score, with the decoder's previous state as query.
namespace heed::inline HEED_TARGET::papers::xu2015 {

/// Deterministic soft attention: α = softmax(e), ẑ = Σ_i α_i a_i; eq. 5 and 13. Without the gate.
auto soft(auto W, auto U, auto v)  // [Q,A], [D,A], [A]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

/// Soft attention with a gate that scales the whole context: ẑ = β Σ_i α_i a_i, β = σ(f_β(h_{t-1})), section 4.2.1.
auto gated(auto W, auto U, auto v, auto W_beta, auto b_beta)  // …, [Q,1], [1]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, normalize::softmax{},
                     combine::gated{std::move(W_beta), std::move(b_beta)}};
}

/// Stochastic hard attention: one location, drawn with the weights of `soft` as probabilities. normalize/hard.hpp
/// explains how its scores are trained (eq. 11, without the entropy term of eq. 12). For a trained model, use `{.greedy
/// = true}`.
///
///     p(s_{t,i} = 1) = α_{t,i},  ẑ_t = Σ_i s_{t,i} a_i        eq. 8 and 9
auto hard(auto W, auto U, auto v, const normalize::hard& draw)  // [Q,A], [D,A], [A]
{
    return attention{score::additive{std::move(W), std::move(U), std::move(v)}, draw, combine::weighted_sum{}};
}
auto hard(auto W, auto U, auto v, std::uint64_t seed)
{
    return xu2015::hard(std::move(W), std::move(U), std::move(v), normalize::hard{.seed = seed});
}

/// Encourages attending to every location once, over all steps: weights [B,T] of each step.
///
///     loss = λ Σ_i (1 - Σ_t α_ti)²            eq. 14
template <tensor Weights>
auto doubly_stochastic(const std::vector<Weights>& weights, const lengths& source, const lengths& target,
                       double lambda = 1)
{
    return ops::scale(penalty::doubly_stochastic(weights, source, target), lambda);
}

}  // namespace heed::inline HEED_TARGET::papers::xu2015
