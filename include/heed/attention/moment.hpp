// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/attention/masks.hpp>
#include <heed/core/mask.hpp>

/// What a policy can read besides its arguments: the lengths, the step, the query and the masks.
namespace heed {

namespace detail {

/// Tags: outside of a window, and within one.
struct nowhere {};
struct in_window {};

}  // namespace detail

/// The moment of a query. `real` is the number of real positions of each row; within a window, of those in the window.
template <class Query, class Masks = detail::no_masks, class Place = detail::nowhere>
struct moment {
    lengths_view real;
    std::size_t step;  // 0 for the first query
    const Query& given;
    const Masks& masks;    // what hides positions
    std::size_t head = 0;  // which one asks, among those of a multi_head
    using place = Place;

    /// The query as it was given, [B,Q] or its parts.
    const Query& query() const { return given; }

    /// The scores, with -inf at the positions that a mask hides. A normalizer calls this after any modulation of its
    /// own.
    decltype(auto) visible(const tensor auto& scores) const { return masks.visible(scores); }
};

/// A moment without query and masks: for calling a normalizer by hand.
struct plain_moment {
    lengths_view real;
    std::size_t step = 0, head = 0;

    const auto& visible(const tensor auto& scores) const { return scores; }  // nothing is hidden
};

}  // namespace heed
