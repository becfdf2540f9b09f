// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <any>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/family.hpp>
#include <heed/core/tensor.hpp>

/// The state of a mechanism between steps, and how it gets onto a tape.
///
/// State is an explicit, copyable value: `step` takes one and returns the next. Its family follows from the tensors
/// that it was made of, and the same source serves all families:
///
///     auto state = attend.start(memory);
///     for (const auto& s : decoder_states) {
///         auto [context, weights, next] = attend.step(memory, s, state);
///         state = next;
///     }
///
/// If only queries are on a tape, `start` sees no tape: the first state is plain, and the next one is taped. A C++
/// variable cannot change its type. So a plain state that is assigned a taped one keeps it beside its own numbers, and
/// the next step continues from there.
namespace heed {

/// The state of a normalizer without one.
struct no_state {
    no_state map(auto&&, const auto&...) const { return {}; }
};

/// The state of a score without one. A type of its own, so that two empty members can share an address.
struct no_past {
    no_past map(auto&&, const auto&...) const { return {}; }
};

/// Does f, which is given to the `map` of a state, apply to tensors with positions only? Then the state leaves a tensor
/// without positions, such as [B,R], as it is.
template <class F>
concept spares_rows = requires
{
    std::remove_cvref_t<F>::spares_rows;
};

namespace detail {

/// f, for tensors with positions only.
template <class F>
struct along_positions : F {
    static constexpr bool spares_rows = true;
};
template <class F>
along_positions(F) -> along_positions<F>;

/// A plain copy of a tensor of any family.
struct values_of {
    auto operator()(const tensor auto& x) const { return copy_of(view_of(x)); }
};

/// The taped counterpart of a state without tensors.
struct nothing_on_tape {};

/// Does `from` hold the tensors of a `To`, but taped?
template <class To, class From>
concept becomes = requires(const From& from)
{
    requires std::is_same_v<decltype(from.map(values_of{})), To>;
};

}  // namespace detail

/// The state of a mechanism between steps; an ordinary value.
///
/// `start` makes the first one. If parameters and memory are plain, it is plain; with queries on a tape, later states
/// are taped. `state = next` then holds both: the numbers, and the taped state with which the next step continues, so
/// that gradients flow through all steps.
template <class History, class Past = no_past>
struct attention_state {
    static constexpr bool has_tensors = !std::is_empty_v<History> || !std::is_empty_v<Past>;

    [[no_unique_address]] History normalize;  // the normalizer's state; an empty struct if it has none
    std::size_t step = 0;                     // the number of queries answered
    [[no_unique_address]] Past score{};       // the score's own state
    // The taped counterpart, an attention_state of variables; empty until `operator=` below sets it.
    [[no_unique_address]] std::conditional_t<has_tensors, std::any, detail::nothing_on_tape> on_tape{};

    /// Copies the numbers of a taped state and keeps the taped state itself.
    template <class H, class P>
        requires(!std::is_same_v<attention_state<H, P>, attention_state> && detail::becomes<History, H> &&
                 detail::becomes<Past, P>)
    attention_state& operator=(const attention_state<H, P>& taped)
    {
        normalize = taped.normalize.map(detail::values_of{});
        step = taped.step;
        score = taped.score.map(detail::values_of{});
        on_tape = taped;
        return *this;
    }

    /// The state with f applied to every tensor; a beam selects hypotheses this way. Throws heed::error if the type is
    /// plain and the state is on a tape: f would reach only the numbers.
    auto map(auto&& f) const
    {
        if constexpr (has_tensors) {
            if (on_tape.has_value()) {
                throw error(
                    "attention_state::map: this state was assigned one that is on a tape, and map would lose its "
                    "gradient; map the state that `step` returned");
            }
        }
        return attention_state<decltype(normalize.map(f)), decltype(score.map(f))>{normalize.map(f), step,
                                                                                   score.map(f)};
    }
};

namespace detail {

/// x as a `To`, on the tape that the state's tensors are on.
template <class To>
To beside_state(const auto& state, const tensor auto& x)
{
    std::optional<To> y;
    (void)state.map([&](const auto& remembered) {
        if constexpr (!plain_tensor<decltype(remembered)>) {
            if (!y) y = same_family(remembered, x);
        }
        return remembered;
    });
    return *std::move(y);
}

/// The result of a first step that no taped tensor has reached, in the types of the results of later steps.
template <class Later>
Later as_later(auto first)
{
    static_assert(
        std::is_same_v<decltype(first.state), decltype(Later::state)>,
        "heed: the state of this mechanism takes more than one step to get onto the tape: put all parts of the "
        "queries there, or the annotations");
    auto context = beside_state<decltype(Later::context)>(first.state, first.context);
    if constexpr (requires { first.weights; }) {
        auto weights = beside_state<decltype(Later::weights)>(first.state, first.weights);
        return {std::move(context), std::move(weights), std::move(first.state)};
    } else {
        return {std::move(context), std::move(first.state)};
    }
}

/// The taped counterpart of a state of plain type, as a `Taped`; null if there is none.
template <class Taped, class State>
const Taped* on_tape_of(const State& state)
{
    const Taped* const taped = std::any_cast<Taped>(&state.on_tape);
    if (taped == nullptr && state.on_tape.has_value()) {
        throw error("attention: the state is on a tape, but this step has other parts on the tape than the step that "
                    "made it, so the state's gradient would be lost; put the same parts on the tape at each step");
    }
    return taped;
}

/// answer(state), or answer of the state's taped counterpart if it has one.
template <class State, class Answer>
auto going_on(const State& state, const Answer& answer)
{
    using first = decltype(answer(state));
    using next = decltype(first::state);
    if constexpr (!State::has_tensors || std::is_same_v<next, State>) {
        return answer(state);
    } else {
        using later = decltype(answer(std::declval<const next&>()));
        if (const next* const taped = on_tape_of<next>(state)) return answer(*taped);
        if constexpr (std::is_same_v<first, later>) {
            return answer(state);
        } else {
            return as_later<later>(answer(state));
        }
    }
}

/// The state as a `To`: its own type, or the taped one on the tape of `beside`.
template <class To, class State>
To in_family_of(const tensor auto& beside, const State& state)
{
    const auto lift = [&beside](const auto& x) { return same_family(beside, x); };
    if constexpr (std::is_same_v<To, State>) {
        return state;
    } else if constexpr (std::is_same_v<To, decltype(state.map(lift))>) {
        const To* const taped = on_tape_of<To>(state);
        return taped != nullptr ? *taped : state.map(lift);
    } else {
        throw shape_error("attention of many queries: there is none, and the state cannot be brought onto the tape "
                          "without one; give at least one query");
    }
}

}  // namespace detail

}  // namespace heed
