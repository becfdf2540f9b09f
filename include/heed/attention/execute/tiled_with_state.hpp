// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/execute/tiled.hpp>
#include <heed/attention/make_memory.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/workspace.hpp>
#include <heed/ops/tiles_in_order.hpp>
#include <heed/simd/score_index.hpp>

/// Many queries at once by the temporal normalizers, in the tiles of kernels/tiles/temporal.hpp.
namespace heed::detail {

/// The keys that a mask shows. One of lengths shows the first keys of each sentence, and does not shorten the rows:
/// the others count in a history, too. Throws shape_error if it does not fit.
decltype(auto) keys_shown(const auto& mask, const auto&) { return keys_of_mask(mask); }
auto keys_shown(const lengths& mask, const auto& memory)
{
    const scratch here;
    (void)visible_lengths(mask, memory.real, memory.positions());
    return mask_mod{[seen = mask](const score_index& p) {
        return p.key < static_cast<std::int32_t>(seen[static_cast<std::size_t>(p.batch)]);
    }};
}

}  // namespace heed::detail

namespace heed::detail::execute {

/// Contexts [B,S,D] of projected queries [B,S,A], and the state after them.
template <class Score, class Memory, class Mask>
auto tiled_with_state(const Score& score, const auto& normalize, const Memory& memory, const auto& projected,
                      const auto& state, const Mask& mask)
{
    const ops::heads_of how{.first_query = query_of_masks(memory, state.step), .first_head = state.head};
    const auto asked = asking_all(score, projected, memory, state.step);                        // [B,S,A]
    const auto before = grown_history(score, normalize, state.normalize, state.known, memory);  // of [B,T]
    auto made = ops::attend_in_order_op{change_of(score, state.step), keys_shown(mask, memory), normalize.tile_rule()}(
        asked, memory.keys, memory.values, before.history, table_of(score, asked), memory.real, how);
    auto after = state.normalize.map([&](const auto&) { return std::move(made.second); });
    return sequence_result{std::move(made.first),
                           attention_state<decltype(after), std::remove_cvref_t<decltype(state.score)>>{
                               std::move(after), state.step + shape_of(projected)[1], state.score, state.head}};
}

}  // namespace heed::detail::execute
