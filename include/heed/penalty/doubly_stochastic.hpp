// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <heed/ops/penalty.hpp>
#include <heed/ops/shape.hpp>

namespace heed::penalty {

/// Every source position should be looked at as much as any other: once, over all steps together.
///
///     loss = Σ_i (1 - Σ_t α_ti)²              Xu et al. 2015, eq. 14 [lit] · SPEC N11
///
/// weights: [B,T] of each step, plain or taped. The sum over i runs over the real source positions of each sentence,
/// the one over t over its real target steps; sums run over steps, not over positions (where they would always be 1).
/// Summed over the batch and not scaled: the paper's λ, and a division by the number of sentences, are
/// `ops::scale(loss, lambda / sentences)`. A sentence without target steps costs one for every source position.
template <tensor Weights>
auto doubly_stochastic(const std::vector<Weights>& weights, const lengths& source, const lengths& target)
{
    return ops::doubly_stochastic_penalty(ops::stack(weights), source, target);
}

/// The same where every step is real in every row.
template <tensor Weights>
auto doubly_stochastic(const std::vector<Weights>& weights, const lengths& source)
{
    return penalty::doubly_stochastic(weights, source, lengths::full(source.batch(), weights.size()));
}

}  // namespace heed::penalty
