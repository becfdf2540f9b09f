// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include <heed/ops/penalties.hpp>
#include <heed/ops/shape.hpp>

namespace heed::inline HEED_TARGET::penalty {

/// Penalizes repeated attention to the same positions.
///
///     c_t = Σ_{k<t} α_k
///     loss = Σ_t Σ_i min(α_ti, c_ti)          See et al. 2017, eq. 10 and 12
///
/// The coverage c_t of a position sums the steps before t: the first step costs nothing. (If it included step t, the
/// loss would be the number of steps.)
///
/// weights: [B,T] of each step, plain or taped. Sums run over real source positions and real target steps (without
/// `target`, all steps), and over the batch. The loss is not scaled (use `ops::scale` for the paper's mean over steps
/// and its λ). If α_ti = c_ti exactly, the gradient goes to the coverage.
template <tensor Weights>
auto coverage(const std::vector<Weights>& weights, const lengths& source, const std::optional<lengths>& target = {})
{
    return ops::coverage_penalty(ops::stack(weights), source,
                                 target.value_or(lengths::full(source.batch(), weights.size())));
}

}  // namespace heed::inline HEED_TARGET::penalty
