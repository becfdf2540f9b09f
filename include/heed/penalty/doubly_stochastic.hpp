// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <heed/ops/penalties.hpp>
#include <heed/ops/shape.hpp>

namespace heed::inline HEED_TARGET::penalty {

/// Encourages attending to every source position equally: once, over all steps.
///
///     loss = Σ_i (1 - Σ_t α_ti)²              Xu et al. 2015, eq. 14
///
/// weights: [B,T] of each step, plain or taped. The outer sum runs over the real source positions of each sentence,
/// the inner one over its real target steps (without `target`, all steps). The loss is summed over the batch and not
/// scaled: for the paper's λ and a mean over sentences, use `ops::scale(loss, lambda / sentences)`. A sentence without
/// target steps costs 1 for each source position.
template <tensor Weights>
auto doubly_stochastic(const std::vector<Weights>& weights, const lengths& source,
                       const std::optional<lengths>& target = {})
{
    return ops::doubly_stochastic_penalty(ops::stack(weights), source,
                                          target.value_or(lengths::full(source.batch(), weights.size())));
}

}  // namespace heed::inline HEED_TARGET::penalty
