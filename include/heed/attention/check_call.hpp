// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/families.hpp>
#include <heed/attention/query.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/mistakes.hpp>
#include <heed/core/several.hpp>
#include <heed/simd/place.hpp>

/// What the compiler says of a call of an attention with something else than it takes: one sentence for each mistake.
/// See core/mistakes.hpp.
namespace heed::detail {

/// A tensor of numbers of type T with R axes, where one with others was given. Declared only.
template <class T, std::size_t R>
struct meant_with_axes {
    array<T, R> operator()(const auto& x) const;
};

/// Has a query R axes, or each part of one of several parts? A query of another kind, a user's own, may have any.
template <std::size_t R, class Query>
consteval bool has_axes()
{
    if constexpr (tensor<Query>) {
        return rank_of<Query> == R;
    } else if constexpr (requires(const Query& query) { query.state, query.word, query.map(any_map{}); }) {
        return has_axes<R, std::remove_cvref_t<decltype(Query::state)>>() &&
               has_axes<R, std::remove_cvref_t<decltype(Query::word)>>();
    } else {
        return true;
    }
}

/// The query, where it is one: a tensor [B,Q] with R = 2, or many, [B,S,Q] with R = 3; or several such parts. T: the
/// numbers that it must have, void if any will do.
template <std::size_t R, class T, class Query>
decltype(auto) query_of_axes(const Query& query)
{
    constexpr bool lazy = lazy_expression<Query>, vector = is_vector<Query>, fits = has_axes<R, Query>();
    constexpr bool numbers_differ = tensor<Query> && !std::is_void_v<T> && !numbers_are<T, Query>;
    static_assert(!lazy, HEED_SAYS_LAZY);
    static_assert(!vector, HEED_SAYS_VECTOR);
    static_assert(
        !numbers_differ,
        "heed: the query holds numbers of another type than the memory, such as double and float: give query, "
        "annotations and parameters one type; `heed::array<float, 2> x = query;` converts");
    static_assert(fits || R != 2,
                  "heed: one query is [B,Q], a row for each sentence, and so is each part of a state_and_word: of one "
                  "sentence [1,Q]; many queries, [B,S,Q], are for `attend(memory, queries)` and `read_all`");
    static_assert(fits || R != 3,
                  "heed: attention of many queries takes queries [B,S,Q], and each part of a state_and_word so; one "
                  "query, [B,Q], is for `step` and `read`");
    if constexpr (lazy || numbers_differ || vector_of_numbers<Query>) {
        using numbers = std::conditional_t<std::is_void_v<T>, float, T>;
        return meant_with_axes<numbers, R>{}(query);
    } else if constexpr (!fits && tensor<Query>) {
        return meant_with_axes<element_of<Query>, R>{}(query);
    } else if constexpr (!fits) {
        return query.map(meant_with_axes<element_of<std::remove_cvref_t<decltype(query.word)>>, R>{});
    } else {
        return (query);
    }
}

/// The same for what asks this memory.
template <std::size_t R, class Memory, class Query>
decltype(auto) asked(const Memory&, const Query& query)
{
    return query_of_axes<R, typename numbers_in<std::remove_cvref_t<decltype(Memory::keys)>>::type>(query);
}

/// The memory of one attention, where it is one, and not that of several heads.
template <class Memory>
decltype(auto) memory_of_one(const Memory& memory)
{
    constexpr bool of_one = requires { memory.keys, memory.values; }
    , of_several = requires { memory.of; };
    static_assert(of_one || !of_several,
                  "heed: this is the memory of several heads or hops: ask the mechanism whose `on` made it");
    static_assert(of_one || of_several,
                  "heed: this is no memory of an attention: give what the `on` of this mechanism made");
    if constexpr (!of_one && of_several) {
        return first_of(memory.of);
    } else {
        return (memory);
    }
}

/// Have two states the same tensors, of whatever family and rank? As far as they can be compared.
template <class A, class B>
consteval bool alike_in_state()
{
    if constexpr (mappable_state<A> && mappable_state<B>) {
        return std::is_same_v<decltype(std::declval<const A&>().map(replace_by_visited{})),
                              decltype(std::declval<const B&>().map(replace_by_visited{}))>;
    } else {
        return mappable_state<A> == mappable_state<B>;
    }
}

#define HEED_SAYS_ANOTHER_STATE                                                                                        \
    "heed: this state is that of another mechanism: go on from what `start`, `step` or `read_all` of this one "        \
    "returned"

/// The state, where it is one of this attention.
template <class Attention, class Memory, class State>
decltype(auto) own_state(const Attention& attend, const Memory& memory, const State& state)
{
    using first = std::remove_cvref_t<decltype(attend.start(memory))>;
    constexpr bool own = [] {
        if constexpr (requires { state.normalize, state.score, state.step; }) {
            return alike_in_state<decltype(first::normalize), decltype(State::normalize)>() &&
                   alike_in_state<decltype(first::score), decltype(State::score)>();
        } else {
            return false;
        }
    }();
    static_assert(own, HEED_SAYS_ANOTHER_STATE);
    if constexpr (own) {
        return (state);
    } else {
        return attend.start(memory);
    }
}

/// The memory of several heads, where it is one.
template <class Memory>
decltype(auto) memory_of_several(const Memory& memory)
{
    constexpr bool of_several = requires { memory.of; };
    static_assert(of_several, "heed: this is no memory of several heads: give what the `on` of this mechanism made");
    if constexpr (of_several) {
        return (memory);
    } else {
        return several_memories<std::vector<Memory>>{};
    }
}

/// The states of several heads, where they are states of so many.
template <class State>
decltype(auto) states_of_several(const auto& mechanism, const auto& memory, const State& state)
{
    constexpr bool of_several = requires { state.of; };
    static_assert(of_several, HEED_SAYS_ANOTHER_STATE);
    if constexpr (of_several) {
        return (state);
    } else {
        return mechanism.start(memory);
    }
}

/// Numbers or truth values that are to be made a mask first.
template <class Mask>
inline constexpr bool raw_mask = tensor<Mask> || lazy_expression<Mask> || is_vector<Mask>;

#define HEED_SAYS_RAW_MASK                                                                                             \
    "heed: this is no mask yet: of truth values (true = attend) make a boolean_mask{x}, of numbers that are added to " \
    "the scores an additive_mask{x}, of the numbers of positions lengths{...}"

/// The mask of one query, where it is one.
template <class Mask>
decltype(auto) mask_of_one(const Mask& mask)
{
    constexpr bool of_many = marked_mask<Mask> || bare_mask<Mask>;
    static_assert(
        !of_many,
        "heed: `causal{}` and other masks of places are for many queries, `attend(memory, queries, causal{})`; "
        "one query sees the positions that the memory has, or as many of each row as `lengths` say: "
        "`attend.step(memory, query, state, lengths{...})`");
    static_assert(!raw_mask<Mask>, HEED_SAYS_RAW_MASK);
    if constexpr (of_many || raw_mask<Mask>) {
        return no_mask{};
    } else {
        return (mask);
    }
}

/// The mask of many queries, where it is one; a function of a place becomes one.
template <class Mask>
decltype(auto) mask_of_many(const Mask& mask)
{
    static_assert(!raw_mask<Mask>, HEED_SAYS_RAW_MASK);
    constexpr bool one_value = std::is_arithmetic_v<Mask>;
    static_assert(!one_value,
                  "heed: one truth value is no mask; C++ makes one of `!f` where f is a lambda: write `!seen_if{f}`");
    if constexpr (raw_mask<Mask> || one_value) {
        return no_mask{};
    } else if constexpr (bare_mask<Mask>) {
        return seen_if{mask};
    } else {
        return (mask);
    }
}

/// What `on` cannot take, though it is likely to be given.
template <class X>
inline constexpr bool no_source = lazy_expression<X> || is_vector<X>;

/// What was meant.
template <class X>
decltype(auto) source_meant(const X& x)
{
    static_assert(!lazy_expression<X>, HEED_SAYS_LAZY);
    static_assert(!vector_of_numbers<X>, HEED_SAYS_VECTOR);
    static_assert(!is_vector<X> || vector_of_numbers<X>,
                  "heed: the numbers of real positions are `lengths`: `attend.on(annotations, lengths(counts))` of a "
                  "std::vector<std::size_t>, or `lengths{7, 5}`");
    if constexpr (lazy_expression<X>) {
        return detail::as_meant<typename X::value_type>(x);
    } else if constexpr (is_vector<X>) {
        return lengths{};
    } else {
        return (x);
    }
}

}  // namespace heed::detail
