// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/combine/weighted_sum.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/ops/delta_rule.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/step_kernel.hpp>

namespace heed::inline HEED_TARGET::combine {

/// A weighted sum of values that the delta rule corrects: a memory stores at a key the difference between the value and
/// its prediction by earlier keys.
///
///     c = Σ_j α_j u_j,  u_j = β_j (x_j − Σ_{l<j} f_{l,j} (k_j · k_l) u_l),  β_j = most · σ(w · x_j + b)
///                                             Schlag, Irie and Schmidhuber 2021, section 4.2
///
///     attention delta{score::cosine{}, normalize::retention{}, combine::delta_rule{w, b}};
///     attention gated{score::gated_decay{score::cosine{}, w_a, b_a}, normalize::retention{},
///                     combine::delta_rule{w, b}};             Yang, Kautz and Hatamizadeh 2025, section 3.1
///
/// x_j are the values, k_j the score's prepared keys, f the decay of the normalizer or of score::gated_decay. With
/// causal{}, contexts are those of the recurrence S_j = f S_{j−1} (I − β_j k_j k_jᵀ) + β_j x_j k_jᵀ, c_j = S_j q_j, in
/// linear time; heed::streaming keeps only S_j. w [D,1] and b [1] are applied to the annotations; in a multi_head, to
/// the head's annotations x W_K.
///
/// Keys should have length 1, as score::cosine's: where β_j |k_j|² exceeds 2, the state may grow without limit. `most`
/// = 2 allows negative eigenvalues of the state's transition (Grazzi et al. 2025). Values are corrected once per
/// memory, so `extend` is not available. For inner products and normalize::retention; with gates, its `decay` must
/// be 1.
template <class Matrix, class Vector>
struct delta_rule {
    Matrix w;  // [D,1]
    Vector b;  // [1]
    double most = 1;

    using kernel_tag = kernels::weighted_sum_of_row;
    static constexpr combiner_traits traits{
        .weights = weight_kind::per_position, .needs_all_positions = true, .needs_products = true};

    auto operator()(const tensor auto& weights_of_positions, const tensor auto& values) const
    {
        return ops::weighted_sum(weights_of_positions, values);
    }

    auto combine_matrix(const tensor auto& weights_of_queries, const tensor auto& values) const
    {
        return ops::bmm(weights_of_queries, values);
    }

    /// The corrected values u [B,T,D]. Throws heed::error if both gates and the normalizer's `decay` fade keys.
    auto prepare_values(const tensor auto& values, const auto& of) const
    {
        const auto rates = ops::scale(ops::sigmoid(ops::linear(of.annotations, w, b)), most);  // β [B,T,1]
        const auto beta = of_visible(rates, of.mask);
        const double decay = of.normalize.linear_rule().decay;
        if constexpr (known_to_kernels_as<std::remove_cvref_t<decltype(of.score)>, kernels::gated_decay_score>) {
            if (decay != 1)
                detail::throw_error({"combine::delta_rule: the decay of normalize::retention must be 1 with the gates "
                                     "of score::gated_decay"});
            return ops::correct_values_by_gates(of.keys, values, beta, of.real);
        } else {
            return ops::correct_values(of.keys, values, beta, of.real, decay);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto w = visit("w", self.w);
        auto b = visit("b", self.b);
        return combine::delta_rule<decltype(w), decltype(b)>{std::move(w), std::move(b), self.most};
    }

private:
    /// Rates of 0 where a mask hides a position, which then stores nothing.
    static auto of_visible(auto beta, const no_mask&) { return beta; }
    static auto of_visible(const auto& beta, const boolean_mask<2>& mask) { return ops::zero_masked(beta, mask); }
};

template <class Matrix, class Vector>
delta_rule(Matrix, Vector, double = 1) -> delta_rule<Matrix, Vector>;

}  // namespace heed::inline HEED_TARGET::combine
