// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention/weigh.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/steps.hpp>

/// The kernel of scores that are inner products, e_j = a(q) · k_j. Such a score declares `using in_kernels =
/// kernels::inner_product_score;` and has `asking(query)`, its a(q).
namespace heed {

namespace kernels {

struct inner_product_score {
    using in_tiles = tiles::inner_product;
};

/// A score that wraps another, whose scores fade by gates: score::fading.
struct fading_score {};

}  // namespace kernels

template <class Score, class Normalize, class Combine>
    requires(known_to_kernels_as<Score, kernels::inner_product_score>&& known_to_kernels_as<
             Normalize, kernels::softmax_of_row>&& known_to_kernels_as<Combine, kernels::weighted_sum_of_row>)
struct step_kernel<Score, Normalize, Combine> {
    using operation = ops::dot_step_op;

    static auto answer(const auto& score, const Normalize&, const Combine&, const auto& in, const auto&)
    {
        auto seen = operation{}(score.asking(in.query), in.keys, in.values, in.real);
        return outcome{std::move(seen.context), std::move(seen.weights), no_state{}};
    }
};

}  // namespace heed
