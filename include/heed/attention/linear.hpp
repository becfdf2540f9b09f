// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/tiled.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/linear_attention.hpp>
#include <heed/score/inner_product.hpp>

/// Many queries in linear time, where weights are inner products but for a factor: the sum over keys comes first.
///
///     Σ_j (q · k_j) v_j = q · Σ_j k_j v_jᵀ             Katharopoulos et al. 2020, eq. 5-6
///
/// The types decide: a score that is an inner product, a normalizer with `by_sums()`, a weighted sum, and no mask but
/// lengths and causal{}.
namespace heed::detail {

template <class Score, class Normalize, class Combine, class Projected, class Memory, class Mask>
concept linear = functions_in<Score>()
== 0 &&
    known_to_kernels_as<comparing_score<Score>, kernels::inner_product_score>&& hook::by_sums<Normalize>&&
        known_to_kernels_as<Combine, kernels::weighted_sum_of_row>&& std::is_same_v<decltype(Memory::mask), no_mask> &&
    !shared_by_rows<Memory> &&
    (std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths> ||
     std::is_same_v<Mask, causal>)&&requires(const comparing_score<Score>& score, const Projected& projected)
{
    score.asking(projected);
};

/// Does it pay? A pair of query and key costs F + D, and the matrix of sums F·D for each of them.
inline bool worth_sums(const shape_of_rank<3>& queries, std::size_t positions, std::size_t width)
{
    const std::size_t S = queries[1], F = queries[2];
    return S * positions * (F + width) >= (S + positions) * F * width;
}

/// Contexts [B,S,D] of projected queries [B,S,F].
template <class Mask>
auto answers_by_sums(const auto& score, const auto& normalize, const auto& memory, const auto& projected,
                     std::size_t first, const Mask& mask)
{
    const auto answer = [&](const auto& real) {
        return ops::linear_attention(asking_all(score, projected, memory, first), memory.keys, memory.values, real,
                                     std::is_same_v<Mask, causal>, normalize.by_sums());
    };
    if constexpr (std::is_same_v<Mask, lengths>) {
        return answer(shortened(mask, memory.real, memory.positions()));
    } else {
        return answer(memory.real);
    }
}

}  // namespace heed::detail
