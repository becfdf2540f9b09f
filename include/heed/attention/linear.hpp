// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/inner_product.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/tiled.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/linear_attention.hpp>

/// Many queries in linear time, where weights are inner products but for a factor: the sum over keys comes first.
///
///     Σ_j (q · k_j) v_j = q · Σ_j k_j v_jᵀ             Katharopoulos et al. 2020, eq. 5-6
///
/// The types decide: a score that is an inner product, or one that fades by gates over it, a normalizer with
/// `by_sums()`, a weighted sum, and no mask but lengths and causal{}, which gates need.
namespace heed::detail {

/// Do the keys of this score fade by the gates of later positions?
template <class Score>
concept fades = known_to_kernels_as<Score, kernels::fading_score>;

/// The score whose products are summed: the base of one that fades.
template <class Score>
const auto& summed(const Score& score)
{
    if constexpr (fades<Score>) {
        return score.base;
    } else {
        return score;
    }
}
template <class Score>
using summed_score = std::remove_cvref_t<decltype(detail::summed(std::declval<const Score&>()))>;

/// Are its scores inner products of queries as they ask and keys?
template <class Score, class Projected>
concept inner_products = functions_in<Score>()
== 0 && known_to_kernels_as<comparing_score<Score>, kernels::inner_product_score>&& requires(
            const comparing_score<Score>& score, const Projected& projected)
{
    score.asking(projected);
};

template <class Score, class Normalize, class Combine, class Projected, class Memory, class Mask>
concept linear = inner_products<summed_score<Score>, Projected> && hook::by_sums<Normalize> &&
                 known_to_kernels_as<Combine, kernels::weighted_sum_of_row> &&
                 std::is_same_v<decltype(Memory::mask), no_mask> && !shared_by_rows<Memory> &&
                 (std::is_same_v<Mask, causal> ||
                  (!fades<Score> && (std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths>)));

/// Does it pay? A pair of query and key costs F + D, and the matrix of sums F·D for each of them.
inline bool worth_sums(const shape_of_rank<3>& queries, std::size_t positions, std::size_t width)
{
    const std::size_t S = queries[1], F = queries[2];
    return S * positions * (F + width) >= (S + positions) * F * width;
}

/// Can S queries from the first-th on be answered by sums? Where keys fade by gates, each query must stand no earlier
/// than the last key that it sees, and nothing else may fade.
template <class Score>
bool fits_sums(const Score&, const ops::rule_of_sums& rule, const lengths_view& real, std::size_t first, std::size_t S)
{
    if constexpr (fades<Score>) {
        for (std::size_t b = 0; b < real.batch(); ++b) {
            if (first + S < real[b]) return false;
        }
        return rule.decay == 1;
    } else {
        return true;
    }
}

/// Contexts [B,S,D] of projected queries [B,S,F].
template <class Score, class Mask>
auto answers_by_sums(const Score& score, const auto& normalize, const auto& memory, const auto& projected,
                     std::size_t first, const Mask& mask)
{
    const auto asked = asking_all(summed(score), projected, memory, first);
    if constexpr (fades<Score>) {
        return ops::gated_linear_attention(asked, memory.keys, memory.values, memory.real, first,
                                           normalize.by_sums().divides);
    } else {
        const auto answer = [&](const auto& real) {
            return ops::linear_attention(asked, memory.keys, memory.values, real, std::is_same_v<Mask, causal>,
                                         normalize.by_sums());
        };
        if constexpr (std::is_same_v<Mask, lengths>) {
            return answer(shortened(mask, memory.real, memory.positions()));
        } else {
            return answer(memory.real);
        }
    }
}

}  // namespace heed::detail
