// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/mask.hpp>
#include <heed/core/window.hpp>
#include <heed/memory.hpp>
#include <heed/normalize/inner.hpp>
#include <heed/ops/mask.hpp>

/// What local_m and local_p share: another normalizer, seen through a window.
///
/// Where it can, a window cuts: nothing outside of it is computed. That needs an inner normalizer without memory, or
/// history::in_window. Everywhere else, and where the window is itself inside another normalizer, it hides.
namespace heed {

/// What a normalizer inside a window remembers. The papers name windows and temporal modulation together as future work
/// and leave this open (SPEC §15.6).
namespace normalize::history {

/// Of all positions: the window hides only where weights are made. It costs the whole row; a window that covers the
/// sentence changes nothing.
struct everywhere {};

/// Of what lay in the window: scores outside count as -inf, a position that was never in it has no history.
struct in_window {};

}  // namespace normalize::history

namespace detail {

/// The window that a policy found, and the centre it is around, if that is a tensor.
template <class Policy, class Centre = no_state>
struct found_window {
    using found_by = Policy;
    window where;
    [[no_unique_address]] Centre centre;
};

/// Were the scores cut to the window of this very policy?
template <class At, class Policy>
concept cut_by = requires
{
    requires std::is_same_v<typename std::remove_cvref_t<decltype(std::declval<At>().focus)>::found_by, Policy>;
};

template <class At>
concept cut_by_another = requires(const At& at)
{
    at.focus.where;
};

/// Does a normalizer remember nothing at all? Some have `start` only to get scores that no mask was added to.
template <class Inner>
consteval bool remembers_nothing()
{
    if constexpr (remembers<Inner>) {
        return std::is_empty_v<decltype(std::declval<const Inner&>().start(blank_probe{}))>;
    } else {
        return true;
    }
}

/// What is remembered outside a cut stays as it is: not for a memory that fades there too.
template <class Inner, class History>
inline constexpr bool may_cut = remembers_nothing<Inner>() ||
                                (std::is_same_v<History, normalize::history::in_window> && !ages_inside<Inner>());

inline boolean_mask<2> mask_of(const window& where, std::size_t positions)
{
    boolean_mask<2> attend(shape_of_rank<2>{where.count.batch(), positions});
    for (std::size_t b = 0; b < where.count.batch(); ++b) {
        for (std::size_t j = 0; j < where.count[b]; ++j) attend[b * positions + where.begin[b] + j] = 1;
    }
    return attend;
}

/// A moment that shows only what lies in a window.
template <class At>
struct narrowed_moment {
    const At& whole;
    const boolean_mask<2>& attend;
    const lengths& real = whole.real;
    std::size_t step = whole.step;

    decltype(auto) query() const { return whole.query(); }

    template <tensor E>
    auto visible(const E& scores) const
    {
        return whole.visible(ops::hide(scores, attend));
    }
};

/// The inner normalizer's weights of scores that were cut to the window.
template <class Inner>
auto weigh_cut(const Inner& inner, const tensor auto& scores, const auto& state, const auto& at)
{
    if constexpr (remembers<Inner>) {
        return inner(scores, state, at);
    } else {
        return inner(scores, at);
    }
}

/// The inner normalizer's weights of a whole row of scores, 0 outside the window.
template <class History, class Inner>
auto weigh_within(const window& where, const Inner& inner, const tensor auto& scores, const auto& state, const auto& at)
{
    const auto attend = mask_of(where, shape_of(scores)[1]);
    if constexpr (!remembers<Inner>) {
        return inner(ops::hide(scores, attend), at);
    } else if constexpr (std::is_same_v<History, normalize::history::everywhere>) {
        return inner(scores, state, narrowed_moment<std::remove_cvref_t<decltype(at)>>{at, attend});
    } else {
        return inner(ops::hide(scores, attend), state, at);
    }
}

/// What the inner normalizer remembers of a whole row of scores, of which the window showed a part.
template <class History, class Inner>
auto advance_within(const window& where, const Inner& inner, const tensor auto& scores, const tensor auto& weights,
                    const auto& state, const auto& at)
{
    const auto attend = mask_of(where, shape_of(scores)[1]);
    if constexpr (std::is_same_v<History, normalize::history::everywhere>) {
        return inner.advance(scores, weights, state, narrowed_moment<std::remove_cvref_t<decltype(at)>>{at, attend});
    } else {
        return inner.advance(ops::hide(scores, attend), weights, state, at);
    }
}

}  // namespace detail

}  // namespace heed
