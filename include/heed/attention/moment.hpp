// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/core/mask.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/windows.hpp>

/// What a policy can read besides its arguments: the lengths, the step, the query and the masks.
namespace heed {

namespace detail {

template <class E>
const E& shown(const E& scores, const no_mask&)
{
    return scores;
}
template <tensor E, class Mask>
    requires requires(const Mask& mask) { mask.shape(); }
auto shown(const E& scores, const Mask& mask) { return ops::hide(scores, mask); }
template <tensor E, class Bias>
auto shown(const E& scores, const additive_mask<Bias>& mask)
{
    return ops::add_mask(scores, mask.bias);
}

/// Tags: outside of a window, and within one.
struct nowhere {};
struct in_window {};

}  // namespace detail

/// The moment of a query. `real` is the number of real positions of each row; within a window, of those in the window.
template <class Ask, class SourceMask = no_mask, class StepMask = no_mask, class Place = detail::nowhere>
struct moment {
    lengths_view real;
    std::size_t step;  // 0 for the first query
    const Ask& ask;
    const SourceMask& source;  // hides positions from all queries
    const StepMask& mask;      // hides positions from this query
    using place = Place;

    /// The query as it was given, [B,Q] or its parts.
    decltype(auto) query() const { return ask(); }

    /// The scores, with -inf at the positions that a mask hides. A normalizer calls this after any modulation of its
    /// own.
    template <tensor E>
    decltype(auto) visible(const E& scores) const
    {
        if constexpr (std::is_same_v<StepMask, no_mask>) {
            return detail::shown(scores, source);
        } else if constexpr (std::is_same_v<SourceMask, no_mask>) {
            return detail::shown(scores, mask);
        } else {
            const auto of_source = detail::shown(scores, source);
            return detail::shown(of_source, mask);
        }
    }
};

/// A moment without query and masks: for calling a normalizer by hand.
struct plain_moment {
    lengths_view real;
    std::size_t step = 0;

    const auto& visible(const tensor auto& scores) const { return scores; }
};

}  // namespace heed
