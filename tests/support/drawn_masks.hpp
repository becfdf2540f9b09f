// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/attention.hpp>

namespace support {

/// A boolean mask [B,S,T] in the form that execute::blocked takes.
inline auto for_blocks(const heed::boolean_mask<3>& mask, std::size_t head = 0)
{
    const auto [B, S, T] = mask.shape();
    return heed::detail::predicate_of_queries{heed::detail::truth_values{mask, {B, 1, S, T}, 0}, 0, S, T, head};
}

/// Contexts [B,S,D] of queries for score, normalizer and combiner, independent of the plan: by a matrix of all scores,
/// or one query after another.
auto without_tiles(const auto& attend, const auto& memory, const auto& queries, const heed::boolean_mask<3>& mask,
                   std::size_t head = 0)
{
    const auto projected = attend.project(queries);
    const auto sees = support::for_blocks(mask, head);
    using plan = heed::detail::plan_of<std::remove_cvref_t<decltype(attend)>, decltype(projected), decltype(memory),
                                       heed::no_mask>;
    if constexpr (plan::blocked) {
        return heed::detail::execute::blocked(attend.score, attend.normalize, attend.combine, memory, projected,
                                              {0, head, memory.real}, sees);
    } else {
        auto state = attend.start(memory);
        state.head = head;
        return heed::detail::execute::stepwise(attend, memory, queries, projected, state, sees).contexts;
    }
}

}  // namespace support
