// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/stick_breaking.hpp>
#include <heed/score/scaled_dot.hpp>

/// Tan, Yang, Courville, Panda and Shen 2025, "Scaling Stick-Breaking Attention: An Efficient Implementation and
/// In-depth Study".
namespace heed::papers::tan2025 {

/// Attention whose weights are parts of a stick, for queries that see no later keys: `attend(memory, queries,
/// causal{})`.
///
///     α_j = σ(e_j) Π_{j<k} (1 − σ(e_k)),  e = Q Kᵀ / √d
///
/// Deviation: the query's own position takes part; in the paper only those before it.
inline auto stick_breaking()
{
    return attention{score::scaled_dot{}, normalize::stick_breaking{}, combine::weighted_sum{}};
}

}  // namespace heed::papers::tan2025
