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
#include <heed/policy/step_kernel.hpp>

/// Runs an attention for one query, in one of these families of tensors:
///
///     on a tape          if any input is taped; the others are put on the tape
///     in the workspace   plain tensors: allocates only the results
///     composed           if the tensors of the state cannot be reached, and in `compose`
///
/// `attend` is the attention throughout.
namespace heed::inline HEED_TARGET::detail {

/// Checks a memory: the gradient of its keys must reach the parameters that made them, unless all are plain.
template <class Attention, class Memory>
constexpr void require_fits()
{
    using score = decltype(Attention::score);
    using keys = std::remove_cvref_t<decltype(Memory::keys)>;
    using annotations = array<plain_number<element_of<keys>>, 3>;
    if constexpr (plain_tensor<keys> && hook::prepare<score, const annotations&>) {
        static_assert(plain_tensor<decltype(std::declval<const score&>().prepare(std::declval<const annotations&>()))>,
                      HEED_SAYS_KEYS_DO_NOT_TRAIN);
    }
}

/// Is any input of a step on a tape?
template <class Attention, class Memory, class State, class Mask, class... Queries>
consteval bool on_a_tape()
{
    return taped_policy<decltype(Attention::score)> || taped_policy<decltype(Attention::normalize)> ||
           taped_policy<decltype(Attention::combine)> || !plain_tensor<decltype(Memory::keys)> ||
           !plain_tensor<decltype(Memory::values)> || taped_state<State> ||
           (taped_query<std::remove_cvref_t<Queries>> || ...) || requires
    {
        requires !plain_tensor<decltype(std::remove_cvref_t<Mask>::bias)>;
    };
}

/// Rejects a KV cache on a tape: its rows may be gone before the backward pass reads them.
template <class Memory, bool taped>
constexpr void require_no_tape()
{
    static_assert(!grows<Memory> || !taped, "heed: a KV cache takes plain tensors only; on a tape extend the memory "
                                            "that `on` made from annotations on the same tape");
}

/// A query in the family of tensors that computes; a query without `map` is unchanged.
const auto& query_in(const auto& query, const auto&) { return query; }
auto query_in(const mappable_query auto& query, const auto& bring) { return map_query(query, bring); }

/// Tag: the step projects the query itself.
struct not_projected {};
decltype(auto) projected_by(const auto& attend, const not_projected&, const auto& given)
{
    return attend.project(given);
}
const auto& projected_by(const auto&, const auto& projected, const auto&) { return projected; }

/// Tag: writes into an existing result, which may lack weights.
template <class Result>
struct into_result {
    Result& result;
};

/// The result of a step in the form that the caller requested.
auto answer_of(weights_too, auto seen) { return seen; }
auto answer_of(context_only, auto seen) { return context_result{std::move(seen.context), std::move(seen.state)}; }

/// Copies the result out of the workspace. The new state has the caller's type, so that one variable can hold both.
auto leave_workspace(auto with, const auto& seen, const auto& state, const auto& memory)
{
    const owned copy;
    auto history = state.normalize.map(copy, seen.state.normalize);
    auto score_state = state.score.map(copy, seen.state.score);
    attention_state<decltype(history), decltype(score_state)> after{std::move(history), seen.state.step,
                                                                    std::move(score_state), seen.state.head};
    know_positions(after, memory);
    return answer_of(with, step_result{copy(seen.context), copy(seen.weights), std::move(after)});
}
template <class Result>
void leave_workspace(into_result<Result> to, const auto& seen, const auto&, const auto& memory)
{
    Result& result = to.result;
    assign(result.context, seen.context);
    if constexpr (requires { result.weights; }) assign(result.weights, seen.weights);
    assign_state(result.state.normalize, seen.state.normalize);
    assign_state(result.state.score, seen.state.score);
    result.state.step = seen.state.step;
    result.state.head = seen.state.head;
    know_positions(result.state, memory);
}

/// Moves a result into an existing one, which may lack weights.
void keep_answer(auto& result, auto answer)
{
    result.context = std::move(answer.context);
    if constexpr (requires { result.weights; }) result.weights = std::move(answer.weights);
    result.state = std::move(answer.state);
}

/// `step` and `read`; `compose` if `specified`. `given` is the query, `projected` its projection by the score, or
/// not_projected. With: weights_too or context_only. To: With, or into_result.
template <bool specified, class With, class To = With>
struct answering {
    static constexpr bool shares_rows = !specified;  // heads may share rows of keys
    To to{};

    template <class Attention, class Memory, class State, class Mask, class Given, class Projected = not_projected>
    auto operator()(const Attention& attend, const Memory& memory, const Given& given, const State& state,
                    const Mask& given_mask, const Projected& projected = {}) const
    {
        static_assert(!specified || !shared_by_rows<Memory>,
                      "heed: compose needs a memory with a row for each query; for a shared_memory call step, read, "
                      "step_into or many queries at once");
        const scratch here;
        const auto& mask = mask_of_query(given_mask, memory, state);
        constexpr bool reachable = reachable_state<State>, composed = specified || !reachable,
                       taped = on_a_tape<Attention, Memory, State, decltype(mask), Projected, Given>();
        if constexpr (taped) {
            static_assert(
                !shared_by_rows<Memory>,
                "heed: a shared_memory takes plain tensors only; on a tape use a memory with a row for each query");
            require_no_tape<Memory, taped>();
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
            return knowing_positions(
                memory, answer_of(With{}, step<family, specified, With>(
                                              map_parameters(attend, lift), memory, query_in(query, lift),
                                              query_in(given, lift), state_in(state, lift), mask, lift, state.known)));
        } else if constexpr (composed) {
            static_assert(
                reachable || specified || !grows<Memory>,
                "heed: a state whose `map` does not reach every tensor cannot grow with its memory: give it an `auto "
                "map(auto&& f, const auto&... others) const` that does, or pass gathered(memory), a copy that no "
                "longer grows (a state without tensors declares `static constexpr bool holds_no_tensors "
                "= true;`)");
            require_one_number<decltype(Attention::score)>(memory);
            return knowing_positions(
                memory, answer_of(With{}, step<plain_family, true, With>(attend, in_one_piece(memory),
                                                                         projected_by(attend, projected, given), given,
                                                                         state, mask, unchanged{}, state.known)));
        } else {
            const as_workspace_tensor bring;
            const auto shown = map_parameters(attend, bring);
            const auto& asked = query_in(given, bring);
            return leave_workspace(to,
                                   step<workspace_family, false, With>(
                                       shown, memory, query_in(projected_by(shown, projected, asked), bring), asked,
                                       state_in(state, bring), mask, bring, state.known),
                                   state, memory);
        }
    }
};

/// `step` or `read` into an existing result.
template <class Result>
auto answer_into(Result& result)
{
    constexpr bool weights = requires { result.weights; };
    using with = std::conditional_t<weights, weights_too, context_only>;
    return answering<false, with, into_result<Result>>{{result}};
}

}  // namespace heed::inline HEED_TARGET::detail
