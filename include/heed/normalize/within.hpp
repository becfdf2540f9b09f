// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heed/core/mask.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/masks.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <heed/policy/weigh.hpp>

/// Common parts of local_m and local_p: another normalizer, restricted to a window.
///
/// Where possible, the window is cut out: positions outside it are not computed. `window(at, positions)` returns the
/// window, and `inner_in_window(window)` the normalizer inside it. Cutting requires an inner normalizer without state,
/// or history::in_window. Otherwise, and if the window is itself inside another normalizer, positions are masked
/// instead.
namespace heed::inline HEED_TARGET {

/// The history that a normalizer inside a window keeps. Sankaran et al. 2016, §7, propose windows with temporal
/// modulation as future work and leave this open (docs/explanation/decisions.md).
namespace normalize::history {

/// Of all positions: the window masks positions only when weights are computed. Costs the whole row.
struct everywhere {};

/// Of the positions in the window: scores outside count as -inf, and a position that was never in it has no history.
struct in_window {};

}  // namespace normalize::history

namespace detail {

/// The window that a policy computed, and its center, if that is a tensor.
template <class Center = no_state>
struct found_window {
    window_view where;
    HEED_NO_UNIQUE_ADDRESS Center center;

    /// The window of a selection of rows.
    auto map(const auto& row) const
    {
        if constexpr (tensor<Center>) {
            return detail::found_window<decltype(row(center))>{row.part(where), row(center)};
        } else {
            return detail::found_window<>{row.part(where), {}};
        }
    }
};

/// Can the window be cut out? State outside it is not updated, which is wrong for a state that decays everywhere.
template <class Inner, class History>
inline constexpr bool may_cut = !remembers<Inner> || (std::is_same_v<History, normalize::history::in_window> &&
                                                      !normalizer_traits_of<Inner>().state_decays);

/// A window in this thread's workspace: `place(b)` returns the range of row b.
template <class Place>
window_view window_of_rows(const lengths_view& real, std::size_t width, Place&& place)
{
    const std::size_t B = real.batch();
    auto* const begin = workspace_family::take<std::size_t>(2 * B);
    for (std::size_t b = 0; b < B; ++b) {
        const position_range here = place(b);
        begin[b] = here.first;
        begin[B + b] = here.count;
    }
    return {begin, {begin + B, B, real.first_row(), real.heads()}, width};
}

/// The positions in a window, as a mask in this thread's workspace.
inline boolean_mask_view<2> mask_of(const window_view& where, std::size_t positions)
{
    const std::size_t B = where.count.batch();
    auto* const attend = workspace_family::take<std::uint8_t>(B * positions);
    std::fill_n(attend, B * positions, std::uint8_t{0});
    for (std::size_t b = 0; b < B; ++b) {
        std::fill_n(attend + b * positions + where.begin[b], where.count[b], std::uint8_t{1});
    }
    return {attend, {B, positions}};
}

/// A step context that shows only the positions in a window.
template <class At>
struct narrowed_moment {
    const At& whole;
    const boolean_mask_view<2>& attend;
    lengths_view real = whole.real;
    std::size_t step = whole.step, head = whole.head;

    decltype(auto) query() const { return whole.query(); }

    template <tensor E>
    auto visible(const E& scores) const
    {
        return whole.visible(ops::masked_fill(scores, attend));
    }
};

/// Is this step context inside a window?
template <class At>
concept within_window = std::is_same_v<typename std::remove_cvref_t<At>::where, in_window>;

/// The inner normalizer's weights of a whole row of scores, 0 outside the window.
template <class History, class Inner>
auto weigh_within(const window_view& where, const Inner& inner, const tensor auto& scores, const auto& state,
                  const auto& at)
{
    static_assert(!within_window<decltype(at)>, "heed: a window does not know its position inside another window: make "
                                                "the outer normalizer the window and remove the inner window");
    const auto attend = mask_of(where, shape_of(scores)[1]);
    if constexpr (remembers<Inner> && std::is_same_v<History, normalize::history::everywhere>) {
        return weigh(inner, scores, state, narrowed_moment<std::remove_cvref_t<decltype(at)>>{at, attend});
    } else {
        return weigh(inner, ops::masked_fill(scores, attend), state, at);
    }
}

/// The inner normalizer's state after a whole row of scores, part of which was in the window.
template <class History, class Inner>
auto advance_within(const window_view& where, const Inner& inner, const tensor auto& scores, const tensor auto& weights,
                    const auto& state, const auto& at)
{
    const auto attend = mask_of(where, shape_of(scores)[1]);
    if constexpr (std::is_same_v<History, normalize::history::everywhere>) {
        return next_of(inner, scores, weights, state, narrowed_moment<std::remove_cvref_t<decltype(at)>>{at, attend});
    } else {
        return next_of(inner, ops::masked_fill(scores, attend), weights, state, at);
    }
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
