// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/core/cxx20.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/fused_steps.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_kernel.hpp>

/// The kernels of scores e_j = vᵀ tanh(q + k_j). A score of this form declares `using kernel_tag = additive_score;` and
/// has a member v.
namespace heed::inline HEED_TARGET::kernels {

struct additive_score {
    using in_tiles = tiles::additive;
    static const auto& factors(const auto& score) { return score.v; }
};

}  // namespace heed::inline HEED_TARGET::kernels

namespace heed::inline HEED_TARGET::score {

/// Scores query s against annotation h_j with a network that has one hidden layer.
///
///     e_j = vᵀ tanh(W s + U h_j)              Bahdanau et al. 2015, appendix A.1.2
///
/// `prepare` computes U h_j once per batch. No deviation. Like the paper, no bias; to add one, `additive{W, U, v, b}`:
/// e_j = vᵀ tanh(W s + U h_j + b).
template <class Matrix, class Vector, class Bias = no_bias>
struct additive {
    Matrix W;                         // [Q,A]
    Matrix U;                         // [D,A]
    Vector v;                         // [A]
    HEED_NO_UNIQUE_ADDRESS Bias b{};  // [A], optional

    using kernel_tag = kernels::additive_score;
    static constexpr score_traits traits{.weights = weight_kind::per_position};

    auto prepare(const tensor auto& annotations) const  // [B,T,D] -> [B,T,A]
    {
        return ops::linear(annotations, U);
    }

    auto project(const tensor auto& query) const  // [B,Q] -> [B,A]
    {
        return heed::detail::linear_with(query, W, b);
    }

    auto match(const tensor auto& projected, const tensor auto& keys) const  // [B,A], [B,T,A] -> [B,T]
    {
        return ops::matvec(ops::tanh_of_sum_per_position(keys, projected), v);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys) const  // [B,Q], [B,T,A] -> [B,T]
    {
        return match(project(query), keys);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::additive{visit("W", self.W), visit("U", self.U), visit("v", self.v), visit("b", self.b)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Bias = no_bias>
additive(Matrix, Matrix2, Vector, Bias = {}) -> additive<joint_tensor<Matrix, Matrix2>, Vector, Bias>;

}  // namespace heed::inline HEED_TARGET::score

namespace heed::inline HEED_TARGET {

/// The kernels of a step under softmax and under temporal modulation.
template <class Score, class Normalize, class Combine>
    requires(known_to_kernels_as<Score, kernels::additive_score>&&
                 known_to_kernels_as<Normalize, kernels::softmax_of_row, kernels::temporal_softmax_of_row>&&
                     known_to_kernels_as<Combine, kernels::weighted_sum_of_row>)
struct step_kernel<Score, Normalize, Combine> {
    static constexpr bool temporal = known_to_kernels_as<Normalize, kernels::temporal_softmax_of_row>;
    using operation = std::conditional_t<temporal, ops::additive_temporal_step_op, ops::additive_step_op>;

    static auto answer(const auto& score, const auto& normalize, const auto&, const auto& in, const auto&)
    {
        if constexpr (temporal) {
            auto seen = operation{}(in.query, in.keys, score.v, in.values, in.history.history, in.real);
            return outcome{std::move(seen.context), std::move(seen.weights), normalize.make(std::move(seen.history))};
        } else {
            auto seen = operation{}(in.query, in.keys, score.v, in.values, in.real);
            return outcome{std::move(seen.context), std::move(seen.weights), no_state{}};
        }
    }
};

}  // namespace heed::inline HEED_TARGET
