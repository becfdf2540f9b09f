// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/drawn.hpp>
#include <heed/attention/execute/one_query.hpp>
#include <heed/attention/families.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/workspace.hpp>
#include <heed/ops/parts.hpp>

/// Many queries, one after another: a step for each, which any mechanism can.
namespace heed::detail {

/// A mask of places together with the numbers of its queries; any other mask unchanged.
template <class Mask>
decltype(auto) asked_of_queries(const Mask& mask, const auto& memory, const auto& projected, const auto& state)
{
    if constexpr (mask_of_any_place<Mask>) {
        return places_of_queries<Mask>{mask, state.step, shape_of(projected)[1], memory.positions(), state.head};
    } else {
        return (mask);
    }
}

}  // namespace heed::detail

namespace heed::detail::execute {

/// Contexts [B,S,D] of queries [B,S,Q], each after the one before, and the state after them.
template <class Mask>
auto stepwise(const auto& attend, const auto& memory, const auto& queries, const auto& projected, const auto& state,
              const Mask& given_mask)
{
    const std::size_t B = shape_of(projected)[0], S = shape_of(projected)[1];
    const auto& mask = asked_of_queries(given_mask, memory, projected, state);
    const auto answer_to = [&](std::size_t s, const auto& now) {
        const scratch here;
        return detail::answer<false, context_only>(attend, memory, part_of_step(projected, s), part_of_step(queries, s),
                                                   now, mask_of_step(mask, s, S, memory.real));
    };
    auto first = answer_to(0, state);
    if (S == 0) {  // that was a query of zeros: only the combiner knows how wide a context is
        auto none = constant_like(first.context, shape_of_rank<3>{B, 0, shape_of(first.context)[1]}, 0.0);
        auto same = in_family_of<decltype(first.state)>(first.context, state);
        return all_read{std::move(none), std::move(same)};
    }
    if constexpr (plain_tensor<decltype(first.context)> &&
                  reachable_state<std::remove_cvref_t<decltype(first.state)>>) {
        array<element_of<decltype(first.context)>, 3> all(shape_of_rank<3>{B, S, shape_of(first.context)[1]});
        ops::put_step(all, 0, first.context);
        for (std::size_t s = 1; s < S; ++s) {
            const scratch here;
            const as_transient bring;
            detail::answer_into(map_parameters(attend, bring), first, memory, part_of_step(bring(projected), s),
                                part_of_step(transient_query(queries), s), first.state,
                                mask_of_step(mask, s, S, memory.real));
            ops::put_step(all, s, first.context);
        }
        return all_read{std::move(all), std::move(first.state)};
    } else {
        auto now = std::move(first.state);
        std::vector<decltype(first.context)> contexts;
        contexts.reserve(S);
        contexts.push_back(std::move(first.context));
        for (std::size_t s = 1; s < S; ++s) {
            auto next = answer_to(s, now);
            contexts.push_back(std::move(next.context));
            now = std::move(next.state);
        }
        auto all = ops::swap_axes(ops::stack(contexts));
        return all_read{std::move(all), std::move(now)};
    }
}

}  // namespace heed::detail::execute
