// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/contextual_positions.hpp>
#include <heed/score/scaled_dot.hpp>

/// Golovneva, Wang, Weston and Sukhbaatar 2024, "Contextual Position Encoding: Learning to Count What's Important".
namespace heed::papers::golovneva2024 {

/// Attention of one head with contextual positions (CoPE): `attend(memory, queries, causal{})`.
///
///     a_ij = softmax_j(q_i · (k_j + z[p_ij]) / √d)                                            section 4
///     p_ij = min(p_max, Σ_{l=j..i} σ(q_i · k_l / √d))
///
/// z is [D, p_max + 1]; see score::contextual_positions.
template <class Matrix>
auto contextual(Matrix positions)
{
    return attention{score::contextual_positions{score::scaled_dot{}, std::move(positions)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::golovneva2024
