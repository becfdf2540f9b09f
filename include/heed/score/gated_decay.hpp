// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/ops/elementwise.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/score/forgetting.hpp>

namespace heed::inline HEED_TARGET::score {

/// A score with keys that decay by the gates of all later positions, up to the query's own (gated linear attention,
/// state-space duality): retention with a data-dependent decay for each position.
///
///     e'_{i,j} = e_{i,j} Π_{l=j+1..i} a_l,  a_l = σ(w · x_l + b)
///                                             Yang et al. 2024, section 4.1; Dao and Gu 2024, section 5.1
///
///     attention attend{score::gated_decay{score::scaled_dot{}, w, b}, normalize::retention{},
///                      combine::weighted_sum{}};
///     attention shares{score::gated_decay{score::kernel{score::elu_plus_one{}}, w, b}, normalize::ratio{},
///                      combine::weighted_sum{}};
///
/// Over an inner product, with causal{}, contexts follow from a recurrent state, S_t = a_t S_{t−1} + k_t v_tᵀ and o_t =
/// S_tᵀ q_t: many queries take linear time (attention/execute/linear.hpp), and heed::streaming keeps only S_t. F_j =
/// Σ_{l≤j} log a_l is defined as in score::forgetting, which adds F_i − F_j; this score multiplies by exp(F_i − F_j).
///
/// Deviations: one gate for each position and head, as in Dao and Gu; Yang et al. have one for each dimension, the 16th
/// root of a sigmoid. Dao and Gu's a_l = exp(−A softplus(w · x_l + b)) with A = 1 is σ(−w · x_l − b), and A is 1 here;
/// their step Δ, which also scales the input, their convolution, skip and norm are layers of a model. In a multi_head a
/// gate reads the head's annotations, x W_K.
///
/// For self-attention: the i-th query is at the i-th position of the memory, or at the last one if there are fewer. A
/// later key does not decay. Linear time requires the last of many queries to be at the last position or after it;
/// otherwise, and with other masks or a normalizer's `decay`, each pair is computed. No exponent is above 0: distant
/// keys decay to 0. Wraps any score except `modified`, with weights per position; F is rounded as in score::forgetting.
template <class Base, class Matrix, class Vector>
struct gated_decay : over_gates<gated_decay<Base, Matrix, Vector>, Base, Matrix, Vector> {
    using gates = over_gates<gated_decay, Base, Matrix, Vector>;

    using kernel_tag = kernels::gated_decay_score;
    static constexpr score_traits traits =
        traits_around_score<gates>([](score_traits& own) { own.nonnegative = score_traits_of<Base>().nonnegative; });

    gated_decay(Base one, Matrix matrix, Vector vector) : gates(std::move(one), std::move(matrix), std::move(vector)) {}

    /// Scores [B·S,T] times their decay.
    auto changed(const tensor auto& scores, const tensor auto& sums) const { return ops::decay_history(scores, sums); }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::gated_decay{visit("base", self.base), visit("w", self.w), visit("b", self.b)};
    }
};

}  // namespace heed::inline HEED_TARGET::score
