// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/attention/streaming.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/retention.hpp>
#include <heed/score/fading.hpp>
#include <heed/score/scaled_dot.hpp>

/// Yang, Wang, Shen, Panda and Kim 2024, "Gated Linear Attention Transformers with Hardware-Efficient Training".
namespace heed::papers::yang2024 {

/// Gated linear attention of one head, with a gate for each position: `attend(memory, queries, causal{})` takes linear
/// time, and `streaming{attend}` is the recurrence.
///
///     S_t = α_t S_{t−1} + k_tᵀ v_t,  o_t = q_t S_t / √d,  α_t = σ(w · x_t + b)            section 4.1
///
/// w [D,1] and b [1] of the head's annotations x. Deviations: in the paper α_t is a vector, σ(x W¹ W² + b)^{1/16}, with
/// a gate for each dimension of the keys; here it is one number. The 1/√d is that of the authors' program. The norm and
/// the output gate behind the heads are layers of the model.
template <class Matrix, class Vector>
auto gated_linear(Matrix w, Vector b)
{
    return attention{score::fading{score::scaled_dot{}, std::move(w), std::move(b)}, normalize::retention{},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::yang2024
