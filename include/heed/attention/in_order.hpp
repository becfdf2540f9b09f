// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/attention/answers.hpp>
#include <heed/attention/grown.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/state.hpp>
#include <heed/attention/tiled.hpp>
#include <heed/core/workspace.hpp>
#include <heed/ops/temporal_tiles.hpp>
#include <heed/simd/place.hpp>

/// Many queries at once where each key remembers the scores that it had: the temporal normalizers, in the tiles of
/// kernels/tiles/temporal.hpp.
namespace heed::detail {

/// The first keys of each sentence, as many as a mask of lengths says. The others count in a history, too.
struct first_keys : mask_of_places {
    lengths seen;

    explicit first_keys(lengths of) : seen(std::move(of)) {}
    lane_mask operator()(const place& p) const
    {
        return p.key < static_cast<std::int32_t>(seen[static_cast<std::size_t>(p.batch)]);
    }
};

/// Contexts [B,S,D] of projected queries [B,S,A], and the state after them.
template <class Score, class Memory, class Mask>
auto answers_in_order(const Score& score, const auto& normalize, const Memory& memory, const auto& projected,
                      const auto& state, const Mask& mask)
{
    const ops::heads_of how{.first_query = state.step, .first_head = state.head};
    const auto asked = asking_all(score, projected, memory, state.step);
    const auto before = grown_history(
        state.normalize, [&] { return first_history(score, normalize, memory); }, known_of(state), memory.real,
        memory.positions());
    const auto answer = [&](const auto& sees) {
        return ops::attend_in_order_op{change_of(score, state.step), sees, normalize.by_tiles()}(
            asked, memory.keys, memory.values, before.history, table_of(score, asked), memory.real, how);
    };
    auto made = [&] {
        if constexpr (std::is_same_v<Mask, no_mask>) {
            return answer(kernels::tiles::unmasked{});
        } else if constexpr (std::is_same_v<Mask, lengths>) {
            const scratch here;
            (void)shortened(mask, memory.real, memory.positions());  // refuses one that does not fit
            return answer(first_keys(mask));
        } else {
            return answer(as_places(mask));
        }
    }();
    auto after = state.normalize.map([&](const auto&) { return std::move(made.second); });
    return all_read{std::move(made.first),
                    attention_state<decltype(after), std::remove_cvref_t<decltype(state.score)>>{
                        std::move(after), state.step + shape_of(projected)[1], state.score, state.head}};
}

}  // namespace heed::detail
