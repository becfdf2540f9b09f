// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/attention/place.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/mistakes.hpp>

/// What the compiler says of a call of an attention with something else than it takes: one sentence for each mistake.
/// See core/mistakes.hpp.
namespace heed::detail {

/// The query, where it is one. `Memory`: the memory that is asked.
template <class Memory, class Query>
decltype(auto) asked(const Memory&, const Query& query)
{
    using T = typename numbers_in<std::remove_cvref_t<decltype(Memory::keys)>>::type;
    constexpr bool lazy = lazy_expression<Query>, vector = is_vector<Query>;
    constexpr bool numbers_differ = tensor<Query> && !std::is_void_v<T> && !numbers_are<T, Query>;
    static_assert(!lazy, HEED_SAYS_LAZY);
    static_assert(!vector, HEED_SAYS_VECTOR);
    static_assert(
        !numbers_differ,
        "heed: the query holds numbers of another type than the memory, such as double and float: give query, "
        "annotations and parameters one type; `heed::array<float, 2> x = query;` converts");
    if constexpr (lazy || numbers_differ || vector_of_numbers<Query>) {
        return detail::as_meant<T>(query);
    } else {
        return (query);
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
    constexpr bool one_value = std::is_arithmetic_v<Mask>;
    static_assert(!raw_mask<Mask>, HEED_SAYS_RAW_MASK);
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

/// What `on` cannot take, and what is likely to be given to it.
template <class X>
inline constexpr bool no_source = lazy_expression<X> || is_vector<X>;

/// Says so, and returns what was meant.
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
