// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <heed/ops/penalty.hpp>
#include <heed/ops/shape.hpp>

namespace heed::penalty {

/// Looking again at what was looked at before costs.
///
///     c_t = Σ_{k<t} α_k
///     loss = Σ_t Σ_i min(α_ti, c_ti)          See et al. 2017, eq. 10 and 12 [lit]
///
/// The coverage c_t is of the steps before t, without t itself: the first step is free. (With it, min(α, c) is α and
/// the loss is the number of steps, whatever the weights.) The coverage is summed over steps, for each position.
///
/// weights: [B,T] of each step, plain or taped. Sums run over real source positions and real target steps; summed over
/// the batch and not scaled (the paper's mean over steps and its λ are `ops::scale`). Where α_ti = c_ti exactly, the
/// gradient goes to the coverage.
template <tensor Weights>
auto coverage(const std::vector<Weights>& weights, const lengths& source, const lengths& target)
{
    return ops::coverage_penalty(ops::stack(weights), source, target);
}

/// The same where every step is real in every row.
template <tensor Weights>
auto coverage(const std::vector<Weights>& weights, const lengths& source)
{
    return penalty::coverage(weights, source, lengths::full(source.batch(), weights.size()));
}

}  // namespace heed::penalty
