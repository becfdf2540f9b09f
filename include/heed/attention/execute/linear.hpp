// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/attention/execute/tiled.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/plan.hpp>
#include <heed/ops/linear_attention.hpp>

/// Many queries in linear time, where weights are inner products but for a factor: the sum over keys comes first.
///
///     Σ_j (q · k_j) v_j = q · Σ_j k_j v_jᵀ             Katharopoulos et al. 2020, eq. 5-6
namespace heed::detail::execute {

/// Contexts [B,S,D] of projected queries [B,S,F].
template <class Score, class Mask>
auto linear(const Score& score, const auto& normalize, const auto& memory, const auto& projected, std::size_t first,
            const Mask& mask)
{
    const auto asked = asking_all(summed(score), projected, memory, first);  // [B,S,F]
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

}  // namespace heed::detail::execute
