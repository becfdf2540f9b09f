// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/attention/streaming.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/fading.hpp>

/// Dao and Gu 2024, "Transformers are SSMs: Generalized Models and Efficient Algorithms Through Structured State Space
/// Duality".
namespace heed::papers::dao2024 {

/// Structured masked attention of one head with the 1-semiseparable mask of a state-space model (SSD): queries are its
/// C, keys its B, values its X.
///
///     Y = (L ∘ C Bᵀ) X,  L_ij = a_i ⋯ a_{j+1}                                            section 5.1
///
/// with a_t = σ(w · x_t + b) = exp(−softplus(−w · x_t − b)), which is the exp(Δ A) of Mamba-2 with A = −1 and Δ =
/// softplus of a line; w [D,1] and b [1]. `attend(memory, queries, causal{})` takes linear time, `streaming{attend}` is
/// the recurrence h_t = a_t h_{t−1} + B_t x_tᵀ. Deviation: Δ does not also scale the input; scale the values if it
/// shall.
template <class Matrix, class Vector>
auto state_space(Matrix w, Vector b)
{
    return attention{score::fading{score::dot{}, std::move(w), std::move(b)}, normalize::retention{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::dao2024
