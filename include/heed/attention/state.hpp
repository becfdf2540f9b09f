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

/// What a mechanism remembers between steps, and how that gets onto a tape.
///
/// State is an explicit, copyable value: `step` takes one and returns the next. Its family follows from what it was
/// made of, and one text has to serve all families:
///
///     auto state = attend.start(memory);
///     for (const auto& s : decoder_states) {
///         auto [context, weights, next] = attend.step(memory, s, state);
///         state = next;
///     }
///
/// Where only queries or parameters are on a tape, `start` knows of no tape yet: the first state is plain and the next
/// one is not. A C++ variable cannot change its type, so a plain state keeps the taped one that it is assigned beside
/// its own numbers, and the next step goes on from there.
namespace heed {

/// What a mechanism without memory remembers.
struct no_state {
    no_state map(auto&&, const auto&...) const { return {}; }
};

/// What a score without memory remembers: a type of its own, so that two empty members share an address.
struct no_past {
    no_past map(auto&&, const auto&...) const { return {}; }
};

/// Is f, given to the `map` of a state, for tensors of positions only? A state that keeps a row [B,R] leaves it then as
/// it is.
template <class F>
concept spares_rows = requires
{
    std::remove_cvref_t<F>::spares_rows;
};

namespace detail {

/// What is done with tensors of positions only: a state's `map` leaves out what it keeps without T, a row [B,R] say.
template <class F>
struct along_positions : F {
    static constexpr bool spares_rows = true;
};
template <class F>
along_positions(F) -> along_positions<F>;

/// The numbers of a tensor of either family, without its tape.
struct values_of {
    auto operator()(const tensor auto& x) const { return copy_of(view_of(x)); }
};

/// What a state without tensors has on a tape.
struct nothing_on_tape {};

/// Is `from` what a state of type `To` becomes on a tape: the same tensors, taped?
template <class To, class From>
concept becomes = requires(const From& from)
{
    requires std::is_same_v<decltype(from.map(values_of{})), To>;
};

}  // namespace detail

/// What a mechanism remembers between steps; an ordinary value.
///
/// `start` makes it of what is known before the first query. Where parameters and memory are plain, so is the first
/// state; with queries on a tape, the states after it are not. `state = next` holds both: the numbers, and the state
/// on the tape, with which the next step goes on, so that gradients flow through all steps.
template <class History, class Past = no_past>
struct attention_state {
    static constexpr bool has_tensors = !std::is_empty_v<History> || !std::is_empty_v<Past>;

    [[no_unique_address]] History normalize;  // the normalizer's own state; an empty struct where there is none
    std::size_t step = 0;                     // how many queries were answered
    [[no_unique_address]] Past score{};       // the score's own state
    // The same on a tape, an attention_state of variables; empty unless `operator=` below has been given one.
    [[no_unique_address]] std::conditional_t<has_tensors, std::any, detail::nothing_on_tape> on_tape{};

    /// Takes the numbers of a taped state and remembers where it is on the tape.
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

    /// The same with f applied to every tensor: how a beam selects hypotheses. Throws heed::error for a state of plain
    /// type that is on a tape: f would reach its numbers alone.
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

/// x as a `To`, on the tape of the state's tensors.
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

/// What the first step found before anything taped reached it, in the types of the later ones.
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

/// What a state of plain type is on a tape, as a `Taped`; null where it is on none.
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

/// answer(state) for a step from `state`, or from what that is on a tape.
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

/// The state itself as a `To`, which is its own type or that on the tape of `beside`.
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
