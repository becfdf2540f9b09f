// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/attention/execute/step.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/workspace.hpp>

/// How an attention answers one query, by the family of tensors that a step runs in:
///
///     on a tape          if any input is on one; everything else is brought onto it
///     in the workspace   plain tensors: no allocation but for the results
///     line by line       a state whose tensors cannot be reached, and `compose`
///
/// `attend` is the attention throughout.
namespace heed::detail {

/// Requirements of a memory.
template <class Attention, class Memory>
constexpr void require_fits()
{
    static_assert(keys_train<decltype(Attention::score), std::remove_cvref_t<Memory>>(), HEED_SAYS_KEYS_DO_NOT_TRAIN);
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
           taped_query<std::remove_cvref_t<Query>> || taped_state<std::remove_cvref_t<State>> ||
           taped_mask<std::remove_cvref_t<Mask>> ||
           taped_mask<std::remove_cvref_t<decltype(std::declval<const memory_type&>().mask)>>;
}

/// Requirements of a growing memory: what it shows may be gone before a tape reads it again.
template <class Attention, class Query, class State, class Mask>
constexpr void require_no_tape()
{
    using plain = memory<array<float, 3>, array<float, 3>>;
    static_assert(!on_a_tape<Attention, plain, Query, State, Mask>(),
                  "heed: a growing memory answers plain tensors; on a tape extend the memory that `on` made, of "
                  "annotations that are on the tape, too");
}

template <class Query>
decltype(auto) query_in(const Query& query, const auto& bring)
{
    if constexpr (mappable_query<Query>) {
        return map_query(query, bring);
    } else {
        return (query);
    }
}
decltype(auto) transient_query(const auto& query) { return query_in(query, as_transient{}); }

/// look(x) for every tensor that a step reads.
void each_input(const auto& attend, const auto& look, const auto& memory, const auto& projected, const auto& given,
                const auto& state, const auto& mask)
{
    (void)map_parameters(attend, look);
    (void)look(memory.keys);
    (void)look(memory.values);
    (void)query_in(projected, look);
    (void)query_in(given, look);
    if constexpr (reachable_state<std::remove_cvref_t<decltype(state)>>) {
        (void)state.normalize.map(look);
        (void)state.score.map(look);
    }
    if constexpr (requires { mask.bias; }) (void)look(mask.bias);
}

/// The part of `step` after the projection of the query; `given` is the query itself.
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
        if constexpr (grows<memory_type>) require_no_tape<Attention, decltype(projected), decltype(state), Mask>();
        static_assert(
            heed::score::over::check_past<decltype(Attention::score), std::remove_cvref_t<decltype(state.score)>>());
        // Put every tensor on the tape, even if only some need gradients, so that one taped step is compiled.
        using family = typename recording<std::bool_constant<taped>>::family;
        using T = element_of<decltype(memory.keys)>;
        const auto lift = variables_beside<T>(family{}, [&](const auto& look) {
            detail::each_input(attend, look, memory, projected, given, state, mask);
        });
        const auto now = [&] {
            if constexpr (reachable) {
                return state_in(state, lift);
            } else {
                return state;
            }
        }();
        return answer_of<With>(step<family, specified, With>(map_parameters(attend, lift), memory,
                                                             query_in(projected, lift), query_in(given, lift), now,
                                                             mask, lift, lengths_view{}),
                               now);
    } else if constexpr (composed && grows<memory_type>) {
        static_assert(reachable,
                      "heed: a state in which `map` does not reach every tensor cannot grow with its memory: give it "
                      "`auto map(auto&& f, const auto&... others) const` that does, or ask gathered(memory), a copy "
                      "that no longer grows (a state without tensors declares `static constexpr bool holds_no_tensors "
                      "= true;`)");
        require_one_number<decltype(Attention::score)>(memory);
        return knowing_lengths(
            memory, detail::answer<specified, With>(attend, in_one_piece(memory), projected, given, state, mask));
    } else if constexpr (composed) {
        return answer_of<With>(
            step<plain_family, true, With>(attend, memory, projected, given, state, mask, unchanged{}, known_of(state)),
            state);
    } else {
        const as_transient bring;
        return owned_answer<With>(step<transient_family, false, With>(
                                      map_parameters(attend, bring), memory, transient_query(projected),
                                      transient_query(given), state_in(state, bring), mask, bring, known_of(state)),
                                  state, memory);
    }
}

/// `step` and `read`.
template <class With, class Attention, class Mask>
auto answer_query(const Attention& attend, const auto& memory, const auto& query, const auto& state, const Mask& mask)
{
    if constexpr (on_a_tape<Attention, decltype(memory), decltype(query), decltype(state), Mask>() ||
                  !reachable_state<std::remove_cvref_t<decltype(state)>>) {
        const auto& projected = attend.project(query);
        return detail::answer<false, With>(attend, memory, projected, query, state, mask);
    } else {
        const scratch here;
        const as_transient bring;
        const auto shown = map_parameters(attend, bring);
        const auto& asked = transient_query(query);
        return owned_answer<With>(
            step<transient_family, false, With>(shown, memory, transient_query(shown.project(asked)), asked,
                                                state_in(state, bring), mask, bring, known_of(state)),
            state, memory);
    }
}

/// The same into results that the caller keeps; `shown` as above.
template <class Result>
void answer_into(const auto& shown, Result& result, const auto& memory, const auto& projected, const auto& given,
                 const auto& state, const auto& mask)
{
    constexpr bool weights = requires { result.weights; };
    using wanted = std::conditional_t<weights, weights_too, context_only>;
    const as_transient bring;
    assign_answer(result,
                  step<transient_family, false, wanted>(shown, memory, transient_query(projected),
                                                        transient_query(given), state_in(state, bring), mask, bring,
                                                        known_of(state)),
                  state, memory);
}

}  // namespace heed::detail
