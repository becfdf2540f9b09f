// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/sums.hpp>

namespace heed::inline HEED_TARGET::penalty {

/// Encourages two models that translate in opposite directions to align the same words.
///
///     loss = −tr(A Bᵀ) = −Σ_j Σ_i α_ji β_ij    Cohn et al. 2016, "bilingual symmetry"
///
/// α_j, the weights of `there`, are those of target word j over the source; β_i, the weights of `back`, are those of
/// source word i over the target. The loss is lowest if both models have the same sharp links. there: [B,T] of each of
/// S steps; back: [B,S] of each of T steps; plain or taped. source and target: the positions of each side, including
/// the end words, as in batches of seq2seq. The loss is summed over the batch and not scaled (use `ops::scale`).
template <tensor There, tensor Back>
auto symmetry(const std::vector<There>& there, const std::vector<Back>& back, const lengths& source,
              const lengths& target)
{
    // [B,S,T] both
    const auto a = ops::swap_axes(ops::clear_ended(ops::stack(there), target));
    const auto b = ops::transpose(ops::swap_axes(ops::clear_ended(ops::stack(back), source)));
    return ops::scale(ops::dot(a, b), -1);
}

}  // namespace heed::inline HEED_TARGET::penalty
