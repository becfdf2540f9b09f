// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/ops/elementwise.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/score/forgetting.hpp>

namespace heed::inline HEED_TARGET::score {

/// A score whose keys fade by the gates of all later positions, up to the query's own (gated linear attention,
/// state-space duality): retention with a decay for each position, which depends on the text.
///
///     e'_{i,j} = e_{i,j} Π_{l=j+1..i} a_l,  a_l = σ(w · x_l + b)
///                                             Yang et al. 2024, section 4.1; Dao and Gu 2024, section 5.1
///
///     attention attend{score::gated_decay{score::scaled_dot{}, w, b}, normalize::retention{},
///     combine::weighted_sum{}}; attention shares{score::gated_decay{score::kernel{score::elu_plus_one{}}, w, b},
///     normalize::ratio{},
///                      combine::weighted_sum{}};
///
/// Over an inner product, with causal{}, contexts are the states of a recurrence, S_t = a_t S_{t−1} + k_t v_tᵀ and o_t
/// = S_tᵀ q_t: many queries take linear time (attention/execute/linear.hpp), and heed::streaming keeps S_t alone. F_j =
/// Σ_{l≤j} log a_l are those of score::forgetting, which adds F_i − F_j where this multiplies by exp(F_i − F_j).
///
/// Deviations: one number for each position and head, as Dao and Gu have it; Yang et al. have one for each dimension,
/// the 16th root of a sigmoid. Dao and Gu's a_l = exp(−A softplus(w · x_l + b)) with A = 1 is σ(−w · x_l − b), and A is
/// 1 here; their step Δ, which also scales the input, their convolution, skip and norm are layers of a model. In a
/// multi_head a gate reads the head's annotations, x W_K.
///
/// For self-attention: the i-th query stands at the i-th position of the memory, or at the last one if there are fewer.
/// A later key has not faded. Of many queries the last must stand at the last position or behind it; else, and with
/// other masks, or with a `decay` of the normalizer's, they are answered pair by pair. No exponent is above 0: what is
/// far away fades to 0. Over all scores but `modified`, with weights per position; F as rounded as there.
template <class Base, class Matrix, class Vector>
struct gated_decay : over_gates<gated_decay<Base, Matrix, Vector>, Base, Matrix, Vector> {
    using gates = over_gates<gated_decay, Base, Matrix, Vector>;

    using kernel_tag = kernels::gated_decay_score;
    static constexpr score_traits traits =
        traits_around_score<gates>([](score_traits& own) { own.nonnegative = score_traits_of<Base>().nonnegative; });

    gated_decay(Base one, Matrix matrix, Vector vector) : gates(std::move(one), std::move(matrix), std::move(vector)) {}

    /// Scores [B·S,T] times what is left of them.
    auto changed(const tensor auto& scores, const tensor auto& sums) const { return ops::decay_history(scores, sums); }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::gated_decay{visit("base", self.base), visit("w", self.w), visit("b", self.b)};
    }
};

}  // namespace heed::inline HEED_TARGET::score
