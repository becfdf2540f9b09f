// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <heed/ad/ad.hpp>

#include <heed_translator/system.hpp>

namespace heed::translator {

/// Whether the loss of this batch has terms that depend on attention weights.
bool reads_weights(const training_step_input& one, const options& how);

/// The loss, plus the penalties of --penalty and the cross-entropy of the given links. `weights` [B,T] of each step.
/// Each term is the sum over the sentences times the weight of a token in the loss. Compiled once for all models.
heed::ad::var<float, 0> add_objectives(heed::ad::var<float, 0> loss,
                                       const std::vector<heed::ad::var<float, 2>>& weights,
                                       const training_step_input& one, const options& how);

}  // namespace heed::translator
