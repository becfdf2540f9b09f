// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/forgetting.hpp>
#include <heed/score/scaled_dot.hpp>

/// Lin, Nikishin, He and Courville 2025, "Forgetting Transformer: Softmax Attention with a Forget Gate".
namespace heed::papers::lin2025 {

/// Forgetting attention of one head, for queries that see no later keys: `attend(memory, queries, causal{})`.
///
///     O = softmax(Q Kᵀ / √d + D) V,  D_ij = Σ_{l=j+1..i} log σ(w · x_l + b)          section 3
///
/// w [D,1] and b [1] of the head's annotations x; no positions.
template <class Matrix, class Vector>
auto forgetting(Matrix w, Vector b)
{
    return attention{score::forgetting{score::scaled_dot{}, std::move(w), std::move(b)}, normalize::softmax{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::lin2025
