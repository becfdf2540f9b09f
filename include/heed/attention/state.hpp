// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <any>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/state.hpp>

/// The state of a mechanism between steps, and how it is put on a tape.
///
/// State is an explicit, copyable value: `step` takes one and returns the next. If only queries are on a tape, `start`
/// sees no tape: the first state is plain, and the next one is taped. Since a variable cannot change its type, a plain
/// state that is assigned a taped one stores it next to its numbers, and the next step continues from it.
namespace heed::inline HEED_TARGET {

namespace detail {

/// A plain copy of a tensor of any family.
struct values_of {
    auto operator()(const tensor auto& x) const { return copy_of(view_of(x)); }
};

/// The taped counterpart of a state without tensors.
struct nothing_on_tape {
    static bool has_value() { return false; }
};
/// The positions that a state remembers: in row b, counts[b] positions after the dropped[b] that the memory had
/// dropped. Empty: all positions of its tensors, from the first on.
struct known_positions {
    std::vector<std::size_t> counts{}, dropped{};

    std::size_t batch() const { return counts.size(); }
};
/// The known positions of a state without tensors: none are stored.
struct nothing_known {};

/// The numbers of a state of type `To`, or of its taped counterpart.
template <class To, std::same_as<To> From>
To numbers_of_state(const From& from)
{
    return from;
}
template <class To, class From>
    requires(!std::is_same_v<To, From> && std::is_same_v<decltype(std::declval<const From&>().map(values_of{})), To>)
To numbers_of_state(const From& from) { return from.map(values_of{}); }

}  // namespace detail

/// The state of a mechanism between steps; an ordinary value.
///
/// `start` makes the first one. `state = next` also stores a taped state, so that gradients flow through all steps.
template <class History, class State = no_score_state>
struct attention_state {
    static constexpr bool has_tensors = !std::is_empty_v<History> || !std::is_empty_v<State>;

    HEED_NO_UNIQUE_ADDRESS History normalize;  // the normalizer's state; an empty struct for a normalizer without state
    std::size_t step = 0;                      // the number of queries answered
    HEED_NO_UNIQUE_ADDRESS State score{};      // the score's own state
    std::size_t head = 0;                      // the index of this head in a multi_head
    // The taped counterpart, an attention_state of variables; empty until `operator=` below sets it.
    HEED_NO_UNIQUE_ADDRESS std::conditional_t<has_tensors, std::any, detail::nothing_on_tape> on_tape{};
    // Empty unless the rows of a KV cache differ in length, or have dropped positions.
    HEED_NO_UNIQUE_ADDRESS std::conditional_t<has_tensors, detail::known_positions, detail::nothing_known> known{};

    /// Copies the numbers of a taped state and keeps the taped state itself.
    template <class H, class P>
        requires(!std::is_same_v<attention_state<H, P>, attention_state> && requires(const H& history, const P& own) {
            detail::numbers_of_state<History>(history);
            detail::numbers_of_state<State>(own);
        })
    attention_state& operator=(const attention_state<H, P>& taped)
    {
        normalize = detail::numbers_of_state<History>(taped.normalize);
        step = taped.step;
        score = detail::numbers_of_state<State>(taped.score);
        head = taped.head;
        on_tape = taped;
        known = taped.known;
        return *this;
    }

    /// The state with f applied to every tensor; a beam selects hypotheses this way. Throws heed::error if a plain
    /// state was assigned a taped one: f would reach only the numbers.
    auto map(auto&& f) const
    {
        if (on_tape.has_value()) {
            throw error("attention_state::map: a state on a tape was assigned to this plain state, and map would lose "
                        "its gradient; map the state that `step` returned");
        }
        using mapped = attention_state<decltype(normalize.map(f)), decltype(score.map(f))>;
        if constexpr (has_tensors && mapped::has_tensors && !spares_rows<decltype(f)>) {
            // f is also applied to the known positions, as a tensor [B,2,…] with the rank of the first tensor: a beam
            // that selects rows also selects these numbers.
            detail::known_positions selected;
            bool done = known.batch() == 0;
            const auto with_known = [&]<tensor X>(const X& x) -> decltype(auto) {
                if constexpr (owning_tensor<X> && (rank_of<X>) > 1) {
                    if (!std::exchange(done, true)) {
                        shape_of_rank<rank_of<X>> shape;
                        shape.fill(1);
                        shape[0] = known.batch();
                        shape[1] = 2;
                        auto numbers = uninitialized<element_of<X>>(shape);
                        for (std::size_t b = 0; b < known.batch(); ++b) {
                            numbers.data()[2 * b] = static_cast<element_of<X>>(known.counts[b]);
                            numbers.data()[2 * b + 1] = static_cast<element_of<X>>(known.dropped[b]);
                        }
                        const auto some = f(numbers);
                        if constexpr (plain_tensor<decltype(some)>) {
                            const auto number = [&](std::size_t i) {
                                return static_cast<std::size_t>(value_of(view_of(some).data[i]));
                            };
                            for (std::size_t b = 0; b < shape_of(some)[0]; ++b) {
                                selected.counts.push_back(number(2 * b));
                                selected.dropped.push_back(number(2 * b + 1));
                            }
                        }
                    }
                }
                return f(x);
            };
            mapped next{normalize.map(with_known), step, score.map(with_known), head};
            next.known = std::move(selected);
            return next;
        } else {
            return mapped{normalize.map(f), step, score.map(f), head};
        }
    }
};

namespace detail {

/// The taped counterpart of a state of plain type, as a `Taped`; null if there is none.
template <class Taped, class State>
const Taped* on_tape_of(const State& state)
{
    const Taped* const taped = std::any_cast<Taped>(&state.on_tape);
    if (taped == nullptr && state.on_tape.has_value()) {
        throw error("attention: the taped state is not of the type that this mechanism makes, so its gradient would be "
                    "lost; continue from a state that this mechanism's `start` or `step` returned");
    }
    return taped;
}

/// The state as a `To`: unchanged, or on the tape of `beside`.
template <class To>
To in_family_of(const tensor auto&, const To& state)
{
    return state;
}
template <class To, class State>
    requires(!std::is_same_v<To, State>)
To in_family_of(const tensor auto& beside, const State& state)
{
    const auto lift = [&beside](const auto& x) { return same_family(beside, x); };
    if constexpr (std::is_same_v<To, decltype(state.map(lift))>) {
        const To* const taped = on_tape_of<To>(state);
        return taped != nullptr ? *taped : state.map(lift);
    } else {
        throw shape_error("attention of many queries: there are 0 queries, and the state cannot be put on the tape "
                          "without one; give at least one query");
    }
}

/// A tensor's plain counterpart.
struct untaped {
    template <tensor X>
    auto operator()(const X&) const
    {
        return array<element_of<X>, rank_of<X>>{};
    }
    auto operator()(const plain_tensor auto& x) const { return x; }
};

template <class Policy>
inline constexpr bool taped_policy =
    !std::is_same_v<Policy, decltype(map_parameters(std::declval<const Policy&>(), untaped{}))>;

/// Can the tensors of both parts of an attention_state be reached one by one?
template <class State>
concept reachable_state = mappable_state<decltype(State::normalize)> && mappable_state<decltype(State::score)>;

template <class State>
concept taped_state =
    reachable_state<State> && !std::is_same_v<State, decltype(std::declval<const State&>().map(untaped{}))>;
template <class Query>
concept taped_query =
    mappable_query<Query> && !std::is_same_v<Query, decltype(map_query(std::declval<const Query&>(), untaped{}))>;

/// An owning copy of the last argument.
struct owned {
    auto operator()(const plain_tensor auto& x) const { return copy_of(view_of(x)); }
    auto operator()(const plain_tensor auto&, const plain_tensor auto& x) const { return copy_of(view_of(x)); }
};

/// Copies a tensor into an existing array.
template <class T, std::size_t N>
void assign(array<T, N>& to, const plain_tensor auto& from)
{
    fit(to, shape_of(from));
    const auto view = view_of(from);
    if (to.data() == view.data) return;
    // Each thread copies the part that is still in its cache.
    parallel_for(view.size(), std::size_t{1} << 13, [&](std::size_t begin, std::size_t end, std::size_t) {
        std::copy(view.data + begin, view.data + end, to.data() + begin);
    });
}

/// Copies every tensor of a state into an existing one. `map` passes members as const; the state itself is not const.
void assign_state(auto& to, const auto& from)
{
    (void)to.map(
        []<class X>(const X& x, const plain_tensor auto& y) {
            assign(const_cast<X&>(x), y);
            return visited{};
        },
        from);
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
