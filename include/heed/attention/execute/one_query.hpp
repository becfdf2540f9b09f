// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/attention/execute/step.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/workspace.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_kernel.hpp>

/// How an attention answers one query, by the family of tensors that a step runs in:
///
///     on a tape          if any input is on one; everything else is brought onto it
///     in the workspace   plain tensors: no allocation but for the results
///     line by line       a state whose tensors cannot be reached, and `compose`
///
/// `attend` is the attention throughout.
namespace heed::inline HEED_TARGET::detail {

/// Requirements of a memory: the gradient of its keys reaches the parameters that made them, unless all are plain.
template <class Attention, class Memory>
constexpr void require_fits()
{
    using score = decltype(Attention::score);
    using keys = std::remove_cvref_t<decltype(std::declval<Memory&>().keys)>;
    using annotations = array<plain_number<element_of<keys>>, 3>;
    if constexpr (plain_tensor<keys> && hook::prepare<score, const annotations&>) {
        static_assert(plain_tensor<decltype(std::declval<const score&>().prepare(std::declval<const annotations&>()))>,
                      HEED_SAYS_KEYS_DO_NOT_TRAIN);
    }
}

/// Is any input of a step on a tape?
template <class Attention, class Memory, class Query, class State, class Mask>
consteval bool on_a_tape()
{
    using memory_type = std::remove_cvref_t<Memory>;
    using keys = std::remove_cvref_t<decltype(std::declval<const memory_type&>().keys)>;
    using values = std::remove_cvref_t<decltype(std::declval<const memory_type&>().values)>;
    return taped_policy<decltype(Attention::score)> || taped_policy<decltype(Attention::normalize)> ||
           taped_policy<decltype(Attention::combine)> || !plain_tensor<keys> || !plain_tensor<values> ||
           taped_query<std::remove_cvref_t<Query>> || taped_state<std::remove_cvref_t<State>> || requires
    {
        requires !plain_tensor<decltype(std::remove_cvref_t<Mask>::bias)>;
    };
}

/// Requirements of a KV cache: what it shows may be gone before a tape reads it again.
template <class Attention, class Memory, class Query, class State, class Mask>
constexpr void require_no_tape()
{
    using plain = memory<array<float, 3>, array<float, 3>>;
    static_assert(!grows<std::remove_cvref_t<Memory>> || !on_a_tape<Attention, plain, Query, State, Mask>(),
                  "heed: a KV cache answers plain tensors; on a tape extend the memory that `on` made, of "
                  "annotations that are on the tape, too");
}

/// A query in the family of tensors that computes; one without `map` as it is.
const auto& query_in(const auto& query, const auto&) { return query; }
auto query_in(const mappable_query auto& query, const auto& bring) { return map_query(query, bring); }
decltype(auto) transient_query(const auto& query) { return query_in(query, as_workspace_tensor{}); }

/// A query that a step projects by itself.
struct not_projected {};
decltype(auto) projected_by(const auto& attend, const not_projected&, const auto& given)
{
    return attend.project(given);
}
const auto& projected_by(const auto&, const auto& projected, const auto&) { return projected; }

/// `step` and `read`, and `compose`, if `specified`. `given` is the query, `projected` what the score projects it to,
/// or not_projected.
template <bool specified, class With, class Attention, class Mask>
auto answer(const Attention& attend, const auto& memory, const auto& projected, const auto& given, const auto& state,
            const Mask& mask)
{
    using memory_type = std::remove_cvref_t<decltype(memory)>;
    constexpr bool reachable = reachable_state<std::remove_cvref_t<decltype(state)>>;
    constexpr bool taped = on_a_tape<Attention, memory_type, decltype(projected), decltype(state), Mask>() ||
                           taped_query<std::remove_cvref_t<decltype(given)>>;
    constexpr bool composed = !reachable || specified;
    const scratch here;
    if constexpr (taped) {
        static_assert(!shared_by_rows<memory_type>,
                      "heed: a shared_memory answers plain tensors; on a tape ask a memory with a row for each "
                      "query");
        require_no_tape<Attention, memory_type, decltype(projected), decltype(state), Mask>();
        heed::score::over::check_state<decltype(Attention::score), std::remove_cvref_t<decltype(state.score)>>();
        const auto& query = projected_by(attend, projected, given);
        // Put every tensor on the tape, even if only some need gradients, so that one taped step is compiled.
        using family = typename recording<std::bool_constant<taped>>::family;
        using T = element_of<decltype(memory.keys)>;
        const auto lift = variables_beside<T>(family{}, [&](const auto& look) {
            (void)map_parameters(attend, look);
            (void)look(memory.keys);
            (void)look(memory.values);
            (void)query_in(query, look);
            (void)query_in(given, look);
            if constexpr (reachable) {
                (void)state.normalize.map(look);
                (void)state.score.map(look);
            }
            if constexpr (requires { mask.bias; }) (void)look(mask.bias);
        });
        const auto& now = state_in(state, lift);
        return knowing_positions(
            memory,
            answer_of(With{}, step<family, specified, With>(map_parameters(attend, lift), memory, query_in(query, lift),
                                                            query_in(given, lift), now, mask, lift, state.known)));
    } else if constexpr (composed && grows<memory_type>) {
        static_assert(reachable || specified,
                      "heed: a state in which `map` does not reach every tensor cannot grow with its memory: give it "
                      "`auto map(auto&& f, const auto&... others) const` that does, or ask gathered(memory), a copy "
                      "that no longer grows (a state without tensors declares `static constexpr bool holds_no_tensors "
                      "= true;`)");
        require_one_number<decltype(Attention::score)>(memory);
        return knowing_positions(
            memory, detail::answer<specified, With>(attend, in_one_piece(memory), projected, given, state, mask));
    } else if constexpr (composed) {
        return knowing_positions(memory, answer_of(With{}, step<plain_family, true, With>(
                                                               attend, memory, projected_by(attend, projected, given),
                                                               given, state, mask, unchanged{}, state.known)));
    } else {
        const as_workspace_tensor bring;
        const auto shown = map_parameters(attend, bring);
        const auto& asked = transient_query(given);
        const auto seen =
            step<workspace_family, false, With>(shown, memory, transient_query(projected_by(shown, projected, asked)),
                                                asked, state_in(state, bring), mask, bring, state.known);
        // Owning tensors. The state keeps the types of the caller's, so that one variable can hold each in turn.
        const owned copy;
        auto history = state.normalize.map(copy, seen.state.normalize);
        auto score_state = state.score.map(copy, seen.state.score);
        attention_state<decltype(history), decltype(score_state)> after{std::move(history), seen.state.step,
                                                                        std::move(score_state), seen.state.head};
        know_positions(after, memory);
        return answer_of(With{}, step_result{copy(seen.context), copy(seen.weights), std::move(after)});
    }
}

/// The same into results that the caller keeps, in the workspace.
template <class Result>
void answer_into(const auto& attend, Result& result, const auto& memory, const auto& projected, const auto& given,
                 const auto& state, const auto& mask)
{
    constexpr bool weights = requires { result.weights; };
    using wanted = std::conditional_t<weights, weights_too, context_only>;
    const scratch here;
    const as_workspace_tensor bring;
    const auto shown = map_parameters(attend, bring);
    const auto& asked = transient_query(given);
    const auto seen =
        step<workspace_family, false, wanted>(shown, memory, transient_query(projected_by(shown, projected, asked)),
                                              asked, state_in(state, bring), mask, bring, state.known);
    assign(result.context, seen.context);
    if constexpr (weights) assign(result.weights, seen.weights);
    assign_state(result.state.normalize, seen.state.normalize);
    assign_state(result.state.score, seen.state.score);
    result.state.step = seen.state.step;
    result.state.head = seen.state.head;
    know_positions(result.state, memory);
}

}  // namespace heed::inline HEED_TARGET::detail
