// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/rotary.hpp>
#include <heed/score/scaled_dot.hpp>

/// Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
namespace heed::papers::su2021 {

/// Scaled dot products of queries and keys that are turned with their positions.
///
///     a_{m,n} = softmax_n((R_m q_m) · (R_n k_n) / √d)            eq. 16; the pairs of eq. 15 and 34
///
/// One head: `multi_head{std::vector(n, su2021::rotary()), W_Q, W_K, W_V, W_O}` has n.
inline auto rotary()
{
    return attention{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
}

}  // namespace heed::papers::su2021
