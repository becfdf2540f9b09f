// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/parameters.hpp>

/// Several mechanisms in parallel: of one kind in a std::vector, or of different kinds in a std::tuple.
namespace heed::inline HEED_TARGET {

namespace detail {

constexpr std::size_t count_of(const auto& several)
{
    if constexpr (requires { several.size(); }) {
        return several.size();
    } else {
        return std::tuple_size_v<std::remove_cvref_t<decltype(several)>>;
    }
}

auto& nth(auto& several, std::size_t i) { return several[i]; }
template <std::size_t i>
auto& nth(auto& several, std::integral_constant<std::size_t, i>)
{
    return std::get<i>(several);
}

/// The index of the first mechanism: a constant for a tuple.
auto first_index(const auto& several)
{
    if constexpr (requires { several.size(); }) {
        return std::size_t{0};
    } else {
        return std::integral_constant<std::size_t, 0>{};
    }
}

const auto& first_of(const auto& several) { return nth(several, first_index(several)); }

/// f(i) for each index in order: a std::vector of the results, or a std::tuple. For a tuple, i is a constant.
template <class M, class F>
auto each_of(const std::vector<M>& several, F&& f)
{
    std::vector<decltype(f(std::size_t{0}))> results;
    results.reserve(several.size());
    for (std::size_t i = 0; i < several.size(); ++i) results.push_back(f(i));
    return results;
}
template <class... M, class F>
auto each_of(const std::tuple<M...>&, F&& f)
{
    return [&f]<std::size_t... i>(std::index_sequence<i...>)
    {
        return std::tuple<decltype(f(std::integral_constant<std::size_t, i>{}))...>{
            f(std::integral_constant<std::size_t, i>{})...};
    }
    (std::index_sequence_for<M...>{});
}

/// get(x) of the first mechanism on a tape, or of the first if none is: the common family. Copies nothing.
template <class M>
const auto& tensor_beside(const std::vector<M>& several, const auto& get)
{
    return get(several.front());
}
template <class... M>
const auto& tensor_beside(const std::tuple<M...>& several, const auto& get)
{
    return std::apply(
        [&get](const auto&... x) -> const auto& { return taped_among(get(x)...); }, several);
}

/// get(x) of each mechanism, as a std::vector of tensors of one family.
template <class M, class Get>
auto collect(const std::vector<M>& several, Get&& get)
{
    std::vector<std::remove_cvref_t<decltype(get(several[0]))>> all;
    all.reserve(several.size());
    for (const M& x : several) all.push_back(get(x));
    return all;
}
template <class... M, class Get>
auto collect(const std::tuple<M...>& several, Get&& get)
{
    return std::apply(
        [&get](const auto&... x) {
            const auto& beside = taped_among(get(x)...);
            return std::vector{same_family(beside, get(x))...};
        },
        several);
}

/// The part of a result to collect.
inline constexpr auto context_of = [](const auto& answer) -> const auto& { return answer.context; };
inline constexpr auto contexts_of = [](const auto& answer) -> const auto& { return answer.contexts; };
inline constexpr auto values_of_memory = [](const auto& memory) -> const auto& { return memory.values; };
inline constexpr auto weights_of = [](const auto& answer) -> const auto& { return answer.weights; };

inline void require_some(const char* where, std::size_t count)
{
    if (count == 0) throw_error({where, ": the list is empty; give at least one"});
}

/// Throws shape_error unless `given`, a memory or state of several mechanisms, has one for each of `mechanisms`.
void require_one_per_mechanism(const char* where, const char* what, const auto& given, const auto& mechanisms)
{
    const std::size_t is = count_of(given.of), must = count_of(mechanisms);
    if (is != must) {
        throw_shape_error({where, ": ", what, " is for ", is, " mechanisms but there are ", must,
                           "; pass one that this mechanism made"});
    }
}

}  // namespace detail

/// The states of several mechanisms between steps; an ordinary value.
template <class States>
struct several_states {
    States of;             // one state for each
    std::size_t step = 0;  // the number of processed queries

    /// Assigns each state from its taped counterpart, see attention_state. Throws shape_error if their numbers differ.
    template <class Taped>
        requires(!std::is_same_v<Taped, States>)
    several_states& operator=(const several_states<Taped>& taped)
    {
        detail::require_one_per_mechanism("the states", "the assigned list", taped, of);
        (void)detail::each_of(of, [&](auto i) {
            detail::nth(of, i) = detail::nth(taped.of, i);
            return i;
        });
        step = taped.step;
        return *this;
    }

    /// The states with f applied to every tensor: this is how a beam selects hypotheses.
    auto map(auto&& f) const
    {
        auto mapped = detail::each_of(of, [&](auto i) { return detail::nth(of, i).map(f); });
        return several_states<decltype(mapped)>{std::move(mapped), step};
    }
};
template <class States>
several_states(States, std::size_t) -> several_states<States>;

/// The state with n as the index of the next query, counted from 0: for queries to a memory that has grown, such as a
/// decoder's self-attention. The state's record of other queries is kept.
///
///     auto state = from_query(attend.start(memory), memory.next_position() - 1);
template <class State>
State from_query(State state, std::size_t n)
{
    state.step = n;
    if constexpr (requires { state.of; }) {
        (void)detail::each_of(state.of, [&](auto i) {
            detail::nth(state.of, i) = from_query(detail::nth(state.of, i), n);
            return i;
        });
    }
    return state;
}

namespace detail {

/// The states in several results, after `step` queries.
auto states_of(const auto& answers, std::size_t step)
{
    return several_states{detail::each_of(answers, [&](auto i) { return detail::nth(answers, i).state; }), step};
}

}  // namespace detail

/// One batch, as a memory for each of several mechanisms.
template <class Memories>
struct memory_list {
    Memories of;  // one memory for each

    std::size_t batch() const { return detail::first_of(of).batch(); }
    std::size_t positions() const { return detail::first_of(of).positions(); }  // T

    /// The index of the next position in the longest sentence: see heed::memory.
    std::size_t next_position() const { return detail::first_of(of).next_position(); }

    /// The memories of these rows, in this order.
    memory_list rows(std::span<const std::size_t> which) const
    {
        return {detail::each_of(of, [&](auto i) { return detail::nth(of, i).rows(which); })};
    }

    /// KV caches without the n oldest positions of each row, or without n[b] of row b (lengths): see heed::memory.
    memory_list without_oldest(const lengths& n) const
    {
        return {detail::each_of(of, [&](auto i) { return detail::nth(of, i).without_oldest(n); })};
    }
    memory_list without_oldest(std::size_t n) const { return without_oldest(lengths::full(batch(), n)); }
};
template <class Memories>
memory_list(Memories) -> memory_list<Memories>;

}  // namespace heed::inline HEED_TARGET
