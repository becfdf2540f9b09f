// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/attention/weigh.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/tiles/pairs.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/steps.hpp>

/// The kernels of additive scores, e_j = vᵀ tanh(q + k_j): of a step under softmax and under temporal modulation, and
/// of many queries in tiles. A score of this form declares `using in_kernels = kernels::additive_score;` and has a
/// member v.
namespace heed {

namespace kernels {

struct additive_score {
    using in_tiles = tiles::additive;
    static const auto& factors(const auto& score) { return score.v; }
};

}  // namespace kernels

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

}  // namespace heed
