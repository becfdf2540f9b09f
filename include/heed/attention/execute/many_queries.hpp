// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/check.hpp>
#include <heed/attention/execute/blocked.hpp>
#include <heed/attention/execute/linear.hpp>
#include <heed/attention/execute/one_query.hpp>
#include <heed/attention/execute/step.hpp>
#include <heed/attention/execute/tiled.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/projected_heads.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/workspace.hpp>
#include <heed/masks/given.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/check.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/policy/weigh.hpp>

/// Many queries, one after another: a step for each. Works for any mechanism.
namespace heed::inline HEED_TARGET::detail::execute {

/// Contexts [B,S,D] of queries [B,S,Q], run in order, and the state after the last one.
template <class Mask>
auto stepwise(const auto& attend, const auto& memory, const auto& queries, const auto& projected, const auto& state,
              const Mask& given_mask)
{
    const std::size_t B = shape_of(projected)[0], S = shape_of(projected)[1];
    const auto& mask = asked_of_queries(given_mask, memory, S, state);
    const auto answer_to = [&](std::size_t s, const auto& now) {
        const scratch here;
        return detail::answering<false, context_only>{}(attend, memory, part_of_step(queries, s), now,
                                                        mask_of_step(mask, s, S, memory.real),
                                                        part_of_step(projected, s));
    };
    auto first = answer_to(0, state);
    if (S == 0) {  // the step ran on a query of zeros: only the combiner knows the width of a context
        auto none = constant_like(first.context, shape_of_rank<3>{B, 0, shape_of(first.context)[1]}, 0.0);
        auto same = in_family_of<decltype(first.state)>(first.context, state);
        return sequence_result{std::move(none), std::move(same)};
    }
    if constexpr (plain_tensor<decltype(first.context)> &&
                  reachable_state<std::remove_cvref_t<decltype(first.state)>>) {
        array<element_of<decltype(first.context)>, 3> all(shape_of_rank<3>{B, S, shape_of(first.context)[1]});
        ops::put_step(all, 0, first.context);
        for (std::size_t s = 1; s < S; ++s) {
            const scratch here;
            const as_workspace_tensor bring;
            detail::answer_into(first)(attend, memory, part_of_step(query_in(queries, bring), s), first.state,
                                       mask_of_step(mask, s, S, memory.real), part_of_step(bring(projected), s));
            ops::put_step(all, s, first.context);
        }
        return sequence_result{std::move(all), std::move(first.state)};
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
        return sequence_result{std::move(all), std::move(now)};
    }
}

}  // namespace heed::inline HEED_TARGET::detail::execute

/// Runs many queries with the executor that the plan chooses.
namespace heed::inline HEED_TARGET::detail {

template <executor by>
using by_executor = std::integral_constant<executor, by>;

/// Calls run(by_executor, memory, decision) with the executor for projected queries, starting at number `first`, and
/// the memory as that executor reads it.
template <class State, class Mask, class Attention, class Memory>
auto choose_executor(const Attention& attend, const Memory& memory, const auto& projected, std::size_t first,
                     const auto& run)
{
    using plan = plan_of<Attention, decltype(projected), Memory, Mask>;
    const decision made = plan::choose(attend, memory, shape_of(projected), first);
    if constexpr (plan::linear)
        if (made.by == executor::linear) return run(by_executor<executor::linear>{}, memory, made);
    if constexpr (plan::tiled) {
        constexpr executor tiled = plan::with_state ? executor::tiled_with_state : executor::tiled;
        if (made.by == tiled) return run(by_executor<tiled>{}, memory, made);
    }
    if constexpr (plan::blocked) {
        return run(by_executor<executor::blocked>{}, memory, made);
    } else {
        static_assert(check_at_once<decltype(attend.score), decltype(attend.combine),
                                    std::remove_cvref_t<decltype(projected)>, Memory>());
        return run(by_executor<executor::stepwise>{}, memory, made);
    }
}

/// For a KV cache. One query, [B,1,Q], reads its rows in place; many queries need contiguous rows, and are worth a
/// copy.
template <class State, class Mask, class Attention, class T>
auto choose_executor(const Attention& attend, const memory<cache_tensor<T>, cache_tensor<T>>& memory,
                     const auto& projected, std::size_t first, const auto& run)
{
    if (numbers_differ<decltype(Attention::score)>(memory)) {
        return run(by_executor<executor::stepwise>{}, memory,
                   one_by_one("the score reads query numbers, and sentences of this KV cache differ in length"));
    }
    if (shape_of(projected)[1] == 1) {
        return run(by_executor<executor::stepwise>{}, memory, one_by_one("a KV cache is not copied for one query"));
    }
    return choose_executor<State, Mask>(attend, in_one_piece(memory), projected, first, run);
}

/// For heads that share keys and values: tiles read the shared rows. Other executors get separate rows for each head.
template <class State, class Mask, class Attention, class Values, class Keys>
auto choose_executor(const Attention& attend, const grouped_memory<Values, Keys>& memory, const auto& projected,
                     std::size_t first, const auto& run)
{
    using plan = plan_of<Attention, decltype(projected), decltype(memory), Mask>;
    const decision made = plan::choose(attend, memory, shape_of(projected), first);
    const std::size_t heads = memory.real.heads();
    if constexpr (!on_a_tape<Attention, heed::memory<Values, Keys>, State, Mask, decltype(projected)>()) {
        if (shape_of(projected)[1] == 1) return run(by_executor<executor::stepwise>{}, memory, made);
        if (is_cache<Keys> && differ_in_length(memory.real))
            return run(by_executor<executor::stepwise>{}, memory,
                       one_by_one("sentences of this KV cache differ in length"));
    }
    if constexpr (is_cache<Keys>) {
        const auto whole = in_one_piece(memory.all);
        return choose_executor<State, Mask>(attend, grouped_memory(whole, heads), projected, first, run);
    } else {
        if constexpr (plan::tiled && !plan::with_state)
            if (made.by == executor::tiled) return run(by_executor<executor::tiled>{}, memory, made);
        return choose_executor<State, Mask>(attend, with_own_rows(memory.all, heads), projected, first, run);
    }
}

/// The contexts of many queries and the state after them, from an executor.
auto read_by(by_executor<executor::stepwise>, const auto& attend, const auto& memory, const auto& queries,
             const auto& projected, const auto& state, const auto& mask)
{
    return execute::stepwise(attend, memory, queries, projected, state, mask);
}
auto read_by(by_executor<executor::tiled_with_state>, const auto& attend, const auto& memory, const auto& queries,
             const auto& projected, const auto& state, const auto& mask)
{
    auto all = execute::tiled_with_state(attend.score, attend.normalize, memory, projected, state, mask);
    return sequence_result{heed::finished_matrix(attend.combine, std::move(all.contexts), queries),
                           std::move(all.state)};
}
/// The contexts from an executor without state.
auto contexts_by(by_executor<executor::linear>, const auto& attend, const auto& memory, const auto& projected,
                 const auto& state, const auto& mask)
{
    return execute::linear(attend.score, attend.normalize, memory, projected, state.step, mask);
}
auto contexts_by(by_executor<executor::tiled>, const auto& attend, const auto& memory, const auto& projected,
                 const auto& state, const auto& mask)
{
    return execute::tiled(score_with_bias(attend.score, mask), attend.normalize, memory, projected, state,
                          mask_alone(mask));
}
auto contexts_by(by_executor<executor::blocked>, const auto& attend, const auto& memory, const auto& projected,
                 const auto& state, const auto& mask)
{
    return execute::blocked(attend.score, attend.normalize, heed::summing_all(attend.combine), memory, projected,
                            {state.step, state.head, memory.real},
                            asked_of_queries(mask, memory, shape_of(projected)[1], state));
}
auto read_by(auto by, const auto& attend, const auto& memory, const auto& queries, const auto& projected,
             const auto& state, const auto& mask)
{
    auto last = state;
    last.step += shape_of(projected)[1];
    auto contexts = contexts_by(by, attend, memory, projected, state, mask);
    return sequence_result{heed::finished_matrix(attend.combine, std::move(contexts), queries), std::move(last)};
}

/// `read_all`: the contexts of many queries and the state after them.
struct reading_all {
    static constexpr bool shares_rows = true;  // heads may share rows of keys

    template <class Attention, class Memory, class State>
    auto operator()(const Attention& attend, const Memory& memory, const auto& queries, const State& state,
                    const auto& given_mask) const
    {
        const auto& projected = attend.project(queries);  // [B,S,A]
        const auto& mask = mask_for(given_mask, queries_of_call(memory, shape_of(projected)[1], state), memory.real);
        require_no_tape<Memory, on_a_tape<Attention, Memory, State, decltype(mask), decltype(projected)>()>();
        require_state_of(memory.batch(), state.score,
                         state.normalize);  // even if the score recomputes it from the keys
        using score = decltype(Attention::score);
        using plan = plan_of<Attention, decltype(projected), Memory, decltype(mask)>;
        // For one query of one sentence of a KV cache, only the positions that the mask shows are read, if they are
        // contiguous and neither history nor keys depend on position numbers: generation with a window costs the same
        // for each word.
        if constexpr (grows<Memory> && any_predicate_mask<std::remove_cvref_t<decltype(mask)>> &&
                      functions_in<score>() == 0 && !score_traits_of<score>().extends_keys && plan::tiled &&
                      !plan::with_state) {
            if (shape_of(projected)[1] == 1) {
                if (const auto [begin, end] = seen_in_one_piece(mask, memory); begin < end) {
                    return knowing_positions(memory, execute::stepwise(attend, positions_of(memory, begin, end),
                                                                       queries, projected, state, no_mask{}));
                }
            }
        }
        return knowing_positions(
            memory, choose_executor<State, decltype(mask)>(
                        attend, memory, projected, state.step, [&](auto by, const auto& source, const decision&) {
                            return read_by(by, attend, source, queries, projected, state, mask);
                        }));
    }
};

/// `read_all` of concatenated heads, [B,S,H·d]: tiles read them in place. Other executors get separate rows for each
/// head.
template <class Attention>
auto read_side_by_side(const Attention& attend, const auto& memory, const auto& queries, const auto& state,
                       const auto& given_mask)
{
    const auto [B, H, S, d] = queries.shape();
    require_groups(queries.shape(), memory);
    const side_by_side_memory source{memory.joined.values, memory.joined.keys, memory.joined.real, H, memory.heads};
    const auto& valid = mask_given(given_mask, source.keys);
    const auto& mask =
        mask_for(valid, asked_queries{state.step, S, B, H, source.positions(), false, true}, source.real);
    using plan = plan_of<Attention, decltype(queries.joined), decltype(source), decltype(mask)>;
    if constexpr (plan::tiled) {
        if (plan::choose(attend, source, shape_of(queries.joined), state.step).by == executor::tiled) {
            auto all = read_by(by_executor<executor::tiled>{}, attend, source, queries, queries.joined, state, mask);
            return sequence_result{split_heads(std::move(all.contexts), H), std::move(all.state)};
        }
    }
    return attend.read_all(apart(memory), queries, state, given_mask);
}

/// Replaces a normalizer: returns the scores, with -inf where a query does not see a key.
struct no_normalizer {
    static constexpr normalizer_traits traits{.rowwise = true};

    auto operator()(const tensor auto& scores, const auto& at) const
    {
        const auto [rows, T] = shape_of(scores);
        auto* const there = workspace_family::take<std::uint8_t>(rows * T);
        for (std::size_t i = 0; i < rows * T; ++i) there[i] = i % T < at.real[i / T] ? 1 : 0;
        return ops::masked_fill(scores, boolean_mask_view<2>{there, {rows, T}});
    }

    static auto parameters(auto&, auto&&) { return no_normalizer{}; }
};

/// `weights_of`: the weights of many queries, [B,S,T].
struct weighing_all {
    static constexpr bool shares_rows = false;

    template <class Attention, class Memory, class State>
    auto operator()(const Attention& attend, const Memory& given, const auto& queries, const State& state,
                    const auto& given_mask) const
    {
        using score = decltype(Attention::score);
        static_assert(score::traits.weights == weight_kind::per_position,
                      "heed: weights_of and scores_of return [B,S,T], one number for each query and position, so the "
                      "score must have weights per position; for other scores call `step`");
        require_no_tape<Memory, on_a_tape<Attention, Memory, State, decltype(given_mask), decltype(queries)>()>();
        require_one_number<score>(given);
        const auto& memory = in_one_piece(given);
        const auto& projected = attend.project(queries);
        const std::size_t B = memory.batch(), S = shape_of(projected)[1];
        const auto& mask = mask_for(given_mask, queries_of_call(given, S, state), memory.real);
        require_state_of(B, state.score, state.normalize);
        const auto& of_queries = asked_of_queries(mask, memory, S, state);
        if constexpr (plan_of<Attention, decltype(projected), decltype(memory), decltype(mask)>::blocked) {
            const scratch here;
            return ops::reshaped(
                weights_of_block(block_of_all(attend.score, attend.normalize, attend.combine, memory, projected,
                                              {state.step, state.head}, shown(memory.mask), shown(of_queries))),
                B, S, memory.positions());
        } else {
            auto now = state;
            std::vector<decltype(attend.step(memory, part_of_step(queries, 0), now).weights)> all;
            for (std::size_t s = 0; s < S; ++s) {
                const scratch here;
                auto next =
                    attend.step(memory, part_of_step(queries, s), now, mask_of_step(of_queries, s, S, memory.real));
                all.push_back(std::move(next.weights));
                now = std::move(next.state);
            }
            if (S == 0) return constant_like(memory.keys, shape_of_rank<3>{B, 0, memory.positions()}, 0.0);
            return ops::swap_axes(ops::stack(all));
        }
    }
};

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
               (masked ? "kernels do not support masks" : "no kernel supports this combination");
    case step_executor::composed:
        break;
    }
    return "composed: score, normalizer and combiner for the whole batch, because `map` does not reach the state's "
           "tensors";
}

/// The sentence of heed::explain.
template <class Attention, class Mask>
std::string explained(const Attention& attend, const auto& memory, const auto& given, const Mask& given_mask)
{
    constexpr bool one_query = has_axes<2, std::remove_cvref_t<decltype(given)>>();
    const auto& queries = detail::asked<(one_query ? 2 : 3)>(memory, given);
    const auto& valid = mask_given(given_mask);
    if constexpr (one_query) {
        using state = decltype(attend.start(memory));
        using mask = std::remove_cvref_t<decltype(mask_of_query(valid, memory, attend.start(memory)))>;
        using keys = std::remove_cvref_t<decltype(source_in(memory, unchanged{}).keys)>;
        using masks =
            decltype(masks_of<plain_family, element_of<decltype(memory.keys)>, lengths_are_a_mask<Attention, mask>>(
                memory.mask, std::declval<const mask&>(), unchanged{}));
        using at = step_context<std::remove_cvref_t<decltype(queries)>, masks>;
        constexpr bool masked = !std::is_same_v<Mask, no_mask> || !std::is_same_v<decltype(memory.mask), no_mask>;
        if constexpr (reachable_state<state>)
            return sentence_of(
                executor_of_step<Attention, keys, decltype(state::score), decltype(state::normalize), at>(), masked);
        return sentence_of(step_executor::composed, masked);
    } else {
        using mask = decltype(mask_for(valid, asked_queries{}, memory.real));
        return choose_executor<attention_state<no_state>, mask>(
            attend, memory, attend.project(queries), 0, [](auto, const auto& source, const decision& made) {
                constexpr bool copied = is_cache<std::remove_cvref_t<decltype(memory.keys)>> &&
                                        !is_cache<std::remove_cvref_t<decltype(source.keys)>>;
                return sentence_of(made) + (copied ? "; a KV cache is copied for this" : "");
            });
    }
}

}  // namespace heed::inline HEED_TARGET::detail

namespace heed::inline HEED_TARGET {

/// The executor of these queries [B,S,Q], and why faster ones were not chosen, in one sentence; for one query [B,Q],
/// how a step runs.
///
///     heed::explain(attend, memory, queries, causal{})
///     // "tiled: tile by tile, no score is stored, not linear because the normalizer has no `linear_rule()`"
///
/// For a mechanism of several heads, explains the first one.
template <class Mask = no_mask>
std::string explain(const auto& mechanism, const auto& memory, const auto& queries, const Mask& mask = {})
{
    return mechanism.explain(memory, queries, mask);
}

}  // namespace heed::inline HEED_TARGET
