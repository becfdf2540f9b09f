// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <heed/attention/check.hpp>
#include <heed/attention/execute/step.hpp>
#include <heed/attention/growing.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/query.hpp>

/// What answers a call, in words: for heed::explain and for tests that pin a mechanism's path.
namespace heed::detail {

/// The input of the body of a step with these arguments; a type, never an object.
template <class Attention, class Memory, class Query, class State, class Mask>
auto input_of_a_step(const Attention& attend, const Memory& memory, const Query& query, const State& state,
                     const Mask& mask)
{
    using number = element_of<decltype(memory.keys)>;
    const auto source = source_in(memory, unchanged{});
    const auto masks =
        masks_of<plain_family, number, lengths_are_a_mask<Attention, Mask>>(memory.mask, mask, unchanged{});
    const moment<Query, std::remove_const_t<decltype(masks)>> at{memory.real, state.step, query, masks, state.head};
    const auto past = heed::score::over::recall(attend.score, state.score, at, source);
    const auto focus = [&] {
        if constexpr (cuts_windows<decltype(Attention::normalize)>) {
            return focus_of(attend.normalize, at, source.positions);
        } else {
            return no_focus{};
        }
    }();
    const auto projected = attend.project(query);
    return detail::input_of_step<number>(memory.real, std::size_t{0}, std::size_t{0}, attend.score, attend.normalize,
                                         summing(attend.combine), projected, source.keys, source.values, past,
                                         state.normalize, query, masks, focus);
}

/// Which executor runs a step, by the types.
template <class Attention, class Memory, class Query, class Mask = no_mask>
consteval step_executor executor_of_a_step()
{
    using state = decltype(std::declval<const Attention&>().start(std::declval<const Memory&>()));
    if constexpr (!reachable_state<state>) {
        return step_executor::composed;
    } else {
        using input = decltype(detail::input_of_a_step(std::declval<const Attention&>(), std::declval<const Memory&>(),
                                                       std::declval<const Query&>(), std::declval<const state&>(),
                                                       std::declval<const Mask&>()));
        return executor_of_step<input>();
    }
}

inline std::string sentence_of(step_executor by, bool masked)
{
    switch (by) {
    case step_executor::fused:
        return "fused: one kernel for the whole batch";
    case step_executor::fused_by_row:
        return "fused_by_row: a kernel, sentence by sentence";
    case step_executor::composed_by_row:
        return std::string(
                   "composed_by_row: score, normalizer and combiner, sentence by sentence, not fused because ") +
               (masked ? "kernels take no mask" : "no kernel knows these three together");
    case step_executor::composed:
        break;
    }
    return "composed: score, normalizer and combiner for the whole batch, because `map` does not reach the state's "
           "tensors";
}

/// The sentence of heed::explain.
template <class Attention, class Mask>
std::string explained(const Attention& attend, const auto& memory, const auto& queries, const Mask& mask)
{
    using memory_type = std::remove_cvref_t<decltype(memory)>;
    using query = std::remove_cvref_t<decltype(queries)>;
    if constexpr (has_axes<2, query>()) {
        constexpr step_executor by = executor_of_a_step<Attention, memory_type, query, Mask>();
        return sentence_of(by, !std::is_same_v<Mask, no_mask> || !std::is_same_v<decltype(memory.mask), no_mask>);
    } else if constexpr (grows<memory_type>) {
        if (numbers_differ<decltype(Attention::score)>(memory))
            return "stepwise: one query after another, because the score reads the number of a query, and sentences of "
                   "this growing memory differ in length";
        return detail::explained(attend, in_one_piece(memory), queries, mask) + "; a growing memory is copied for this";
    } else {
        const auto projected = attend.project(queries);  // [B,S,A]
        return sentence_of(plan<Attention, std::remove_const_t<decltype(projected)>, memory_type, Mask>::choose(
            attend, memory, shape_of(projected), 0));
    }
}

}  // namespace heed::detail

namespace heed {

/// Which executor answers these queries [B,S,Q], and what keeps the faster ones away, in one sentence; of one query
/// [B,Q], how a step runs.
///
///     heed::explain(attend, memory, queries, causal{})
///     // "tiled: tile by tile, no score is stored, not linear because the normalizer has no `by_sums()`"
///
/// A mechanism of several heads is explained by its first one.
template <class Mask = no_mask>
std::string explain(const auto& mechanism, const auto& memory, const auto& queries, const Mask& mask = {})
{
    return mechanism.explain(memory, queries, mask);
}

}  // namespace heed
