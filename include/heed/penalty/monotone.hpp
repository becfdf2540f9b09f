// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <heed/ops/penalty.hpp>
#include <heed/ops/shape.hpp>

namespace heed::penalty {

/// The path of attention should move forward: stepping back costs, by as many positions as the mean steps back.
///
///     m_t = Σ_i i α_ti                         the expected position, i from 0
///     loss = Σ_{t>1} max(0, m_{t-1} - m_t)     after Chorowski et al. 2014 [lit] · SPEC R3
///
/// The paper compares cumulative weights, max(0, Σ_e Σ_{i<=e} (α_ti - α_{t-1,i})): where the weights of both steps sum
/// to the same, this is the same number. Positions count as they are, not divided by the length.
///
/// weights: [B,T] of each step, plain or taped. Sums run over real source positions and real target steps; summed over
/// the batch and not scaled (`ops::scale`). For speech and other tasks whose order is that of the source.
template <tensor Weights>
auto monotone(const std::vector<Weights>& weights, const lengths& source, const lengths& target)
{
    return ops::monotone_penalty(ops::stack(weights), source, target);
}

/// The same where every step is real in every row.
template <tensor Weights>
auto monotone(const std::vector<Weights>& weights, const lengths& source)
{
    return penalty::monotone(weights, source, lengths::full(source.batch(), weights.size()));
}

}  // namespace heed::penalty
