// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <heed/ops/penalties.hpp>
#include <heed/ops/shape.hpp>

namespace heed::inline HEED_TARGET::penalty {

/// Encourages attention to move forward: a backward step costs the number of positions by which the mean position
/// decreases.
///
///     m_t = Σ_i i α_ti                         the expected position, i from 0
///     loss = Σ_{t>1} max(0, m_{t-1} - m_t)     after Chorowski et al. 2014
///
/// The paper compares cumulative weights, max(0, Σ_e Σ_{i<=e} (α_ti - α_{t-1,i})), which is equal if the weights of
/// both steps have the same sum. Positions are not divided by the length.
///
/// weights: [B,T] of each step, plain or taped. Sums run over real source positions and real target steps (without
/// `target`, all steps), and over the batch. The loss is not scaled (use `ops::scale`). For speech and other tasks with
/// outputs in the order of the source.
template <tensor Weights>
auto monotone(const std::vector<Weights>& weights, const lengths& source, const std::optional<lengths>& target = {})
{
    return ops::monotone_penalty(ops::stack(weights), source,
                                 target.value_or(lengths::full(source.batch(), weights.size())));
}

}  // namespace heed::inline HEED_TARGET::penalty
