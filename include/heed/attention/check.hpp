// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/core/diagnostics.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/ops/heads.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/state.hpp>
#include <heed/simd/score_index.hpp>

/// What the compiler says if a call has arguments that do not fit, one sentence for each mistake (see
/// core/diagnostics.hpp).
namespace heed::inline HEED_TARGET {

namespace detail {

/// A tensor of numbers of type T with R axes, where one with others was given; T is void where any will do. Declared
/// only.
template <class T, std::size_t R>
struct meant_with_axes {
    array<std::conditional_t<std::is_void_v<T>, float, T>, R> operator()(const auto& x) const;
    template <tensor X>
        requires(std::is_void_v<T>)
    array<element_of<X>, R>
    operator()(const X& x) const;
};

/// Has a query, or each part of it, R axes? A query of another kind, a user's own, may have any.
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
                  "query, [B,Q], is for `step` and `read`; heads that are projected, [B,H,S,d], ask a memory of heads, "
                  "`attend.on(k, v)` of [B,H,T,d]");
    constexpr bool taken = fits && !lazy && !vector && !numbers_differ;
    using meant = meant_with_axes<T, R>;
    if constexpr (!taken && requires { query.map(meant{}); }) {
        return query.map(meant{});
    } else {
        return meant_unless<taken, decltype(meant{}(query))>(query);
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
    constexpr bool of_one = requires { memory.keys, memory.values; };
    constexpr bool of_several = requires { memory.of; };
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

/// Do two states hold the same tensors, of any family and rank, where they can be compared?
template <class A, class B>
concept alike_in_state = (!mappable_state<A> && !mappable_state<B>) ||
                         (mappable_state<A> && mappable_state<B> &&
                          std::is_same_v<replaced_by_visited<A>, replaced_by_visited<B>>);

#define HEED_SAYS_ANOTHER_STATE                                                                                        \
    "heed: this state is that of another mechanism: go on from what `start`, `step` or `read_all` of this one "        \
    "returned"

/// Throws heed::error if a KV cache has dropped positions that a policy needs.
template <class Attention>
void require_positions(const auto& memory)
{
    constexpr bool score = score_traits_of<decltype(Attention::score)>().needs_all_positions,
                   normalizer = normalizer_traits_of<decltype(Attention::normalize)>().needs_all_positions,
                   combiner = combiner_traits_of<decltype(Attention::combine)>().needs_all_positions;
    const lengths_view dropped = memory.dropped;
    for (std::size_t b = 0; b < dropped.batch(); ++b) {
        if (dropped[b] > 0 && (score || normalizer || combiner)) {
            throw_error({"attention: row ", b, " of this memory is without its oldest ",
                         number_of{dropped[b], "position"}, ", and the ",
                         score        ? "score"
                         : normalizer ? "normalizer"
                                      : "combiner",
                         " needs all (needs_all_positions): it reads where a position stands, or passes something on "
                         "from one to the next; keep them, and hide them by a mask, causal{} & sliding_window{n}"});
        }
    }
}

/// The state, where it is one of this attention. Throws heed::error if the memory has dropped what the attention needs.
template <class Attention, class Memory, class State>
decltype(auto) own_state(const Attention&, const Memory& memory, const State& state)
{
    require_positions<Attention>(memory);
    using first = decltype(std::declval<const Attention&>().start(std::declval<const Memory&>()));
    constexpr bool own = requires
    {
        requires alike_in_state<decltype(first::normalize), decltype(State::normalize)>;
        requires alike_in_state<decltype(first::score), decltype(State::score)>;
        state.step;
    };
    static_assert(own, HEED_SAYS_ANOTHER_STATE);
    return meant_unless<own, first>(state);
}

/// The memory of several heads, where it is one.
template <class Memory>
decltype(auto) memory_of_several(const Memory& memory)
{
    constexpr bool of_several = requires { memory.of; };
    static_assert(of_several, "heed: this is no memory of several heads: give what the `on` of this mechanism made");
    return meant_unless<of_several, memory_list<std::vector<Memory>>>(memory);
}

/// The states of several heads, where they are states of so many.
template <class State>
decltype(auto) states_of_several(const auto& mechanism, const auto& memory, const State& state)
{
    constexpr bool of_several = requires { state.of; };
    static_assert(of_several, HEED_SAYS_ANOTHER_STATE);
    return meant_unless<of_several, decltype(mechanism.start(memory))>(state);
}

/// What `on` cannot take, though it is likely to be given.
template <class X>
inline constexpr bool no_source = lazy_expression<X> || is_vector<X>;

/// What `on` and `extend` take: annotations or values, of heads or not, and lengths or a mask.
template <class X>
concept source = tensor<X> || tensor_of_heads<X> || source_limit<std::remove_cvref_t<X>>;

/// What was meant.
const auto& source_meant(const auto& x) { return x; }
template <lazy_expression X>
auto source_meant(const X& x)
{
    static_assert(!lazy_expression<X>, HEED_SAYS_LAZY);
    return detail::as_meant<typename X::value_type>(x);
}
template <class T>
lengths source_meant(const std::vector<T>&)
{
    static_assert(!std::floating_point<T>, HEED_SAYS_VECTOR);
    static_assert(std::floating_point<T>,
                  "heed: the numbers of real positions are `lengths`: `attend.on(annotations, lengths(counts))` of a "
                  "std::vector<std::size_t>, or `lengths{7, 5}`");
    return {};
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
