// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>

/// The step context: the argument `at` of policies.
namespace heed::inline HEED_TARGET {

namespace detail {

/// No position is masked.
struct no_masks {
    const auto& visible(const tensor auto& scores) const { return scores; }
    static bool is_visible(std::size_t) { return true; }

    no_masks map(const auto&) const { return {}; }
    void require(std::size_t, std::size_t) const {}
};

/// Tags: outside a window, and inside one.
struct nowhere {};
struct in_window {};

}  // namespace detail

/// The inputs that a policy can read in addition to its arguments. Within a window, `real` counts the positions in the
/// window.
template <class Query, class Masks = detail::no_masks, class Where = detail::nowhere>
struct step_context {
    lengths_view real;  // the number of real positions of each row
    std::size_t step;   // 0 for the first query
    const Query& given;
    const Masks& masks;    // the masks of the call
    std::size_t head = 0;  // its index in a multi_head
    using where = Where;
    using query_type = Query;
    using masks_type = Masks;

    /// The query as passed by the caller, [B,Q] or its parts.
    const Query& query() const { return given; }

    /// The scores [B,T,...], -inf at masked positions. A normalizer calls this after modifying the scores.
    decltype(auto) visible(const tensor auto& scores) const { return masks.visible(scores); }
};

template <class Query, class Masks>
step_context(lengths_view, std::size_t, const Query&, const Masks&, std::size_t) -> step_context<Query, Masks>;

namespace detail {

/// This step context, restricted to windows.
template <class Query, class Masks>
step_context<Query, Masks, in_window> in_windows(const step_context<Query, Masks>& at)
{
    return {at.real, at.step, at.given, at.masks, at.head};
}

}  // namespace detail

/// A step context without query and masks, for calling a normalizer directly.
struct plain_step_context {
    lengths_view real;
    std::size_t step = 0, head = 0;

    const auto& visible(const tensor auto& scores) const { return scores; }  // [B,T,...]; nothing is hidden
};

}  // namespace heed::inline HEED_TARGET
