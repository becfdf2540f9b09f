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

/// Compiler messages for calls with wrong arguments, one sentence for each mistake (see core/diagnostics.hpp).
namespace heed::inline HEED_TARGET {

namespace detail {

/// The tensor that should have been passed: elements of type T (void: any) and R axes. Declared only.
template <class T, std::size_t R>
struct meant_with_axes {
    array<std::conditional_t<std::is_void_v<T>, float, T>, R> operator()(const auto& x) const;
    template <tensor X>
        requires(std::is_void_v<T>)
    array<element_of<X>, R>
    operator()(const X& x) const;
};

/// Does a query, or each of its parts, have R axes? A custom query type may have any number.
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

/// Checks and returns a query: a tensor [B,Q] if R = 2, many queries [B,S,Q] if R = 3, or several such parts. T: the
/// required element type; void accepts any.
template <std::size_t R, class T, class Query>
decltype(auto) query_of_axes(const Query& query)
{
    constexpr bool lazy = lazy_expression<Query>, vector = is_vector<Query>, fits = has_axes<R, Query>();
    constexpr bool numbers_differ = tensor<Query> && !std::is_void_v<T> && !numbers_are<T, Query>;
    static_assert(!lazy, HEED_SAYS_LAZY);
    static_assert(!vector, HEED_SAYS_VECTOR);
    static_assert(!numbers_differ,
                  "heed: the query and the memory have different element types, such as double and float: use one type "
                  "for query, annotations and parameters; `heed::array<float, 2> x = query;` converts");
    static_assert(fits || R != 2,
                  "heed: one query is [B,Q], a row for each sentence, as is each part of a state_and_word ([1,Q] for "
                  "one sentence); for many queries, [B,S,Q], call `attend(memory, queries)` or `read_all`");
    static_assert(fits || R != 3, "heed: attention of many queries takes queries [B,S,Q], also as parts of a "
                                  "state_and_word; for one query, [B,Q], call `step` or `read`; projected heads, "
                                  "[B,H,S,d], need a memory of heads, `attend.on(k, v)` with [B,H,T,d]");
    constexpr bool taken = fits && !lazy && !vector && !numbers_differ;
    using meant = meant_with_axes<T, R>;
    if constexpr (!taken && requires { query.map(meant{}); }) {
        return query.map(meant{});
    } else {
        return meant_unless<taken, decltype(meant{}(query))>(query);
    }
}

/// Checks and returns a query of this memory.
template <std::size_t R, class Memory, class Query>
decltype(auto) asked(const Memory&, const Query& query)
{
    return query_of_axes<R, typename numbers_in<std::remove_cvref_t<decltype(Memory::keys)>>::type>(query);
}

/// Checks and returns the memory of one attention, not of several heads.
template <class Memory>
decltype(auto) memory_of_one(const Memory& memory)
{
    constexpr bool of_one = requires { memory.keys, memory.values; };
    constexpr bool of_several = requires { memory.of; };
    static_assert(of_one || !of_several,
                  "heed: this memory belongs to several heads or hops: pass it to the mechanism whose `on` made it");
    static_assert(of_one || of_several,
                  "heed: this is not the memory of an attention: pass a memory that this mechanism's `on` made");
    if constexpr (!of_one && of_several) {
        return first_of(memory.of);
    } else {
        return (memory);
    }
}

/// Do two states hold the same tensors, of any family and rank? Also true if neither state has a `map` to compare by.
template <class A, class B>
concept alike_in_state = (!mappable_state<A> && !mappable_state<B>) ||
                         (mappable_state<A> && mappable_state<B> &&
                          std::is_same_v<replaced_by_visited<A>, replaced_by_visited<B>>);

#define HEED_SAYS_ANOTHER_STATE                                                                                        \
    "heed: this state belongs to another mechanism: continue from a state that this mechanism's `start`, `step` or "   \
    "`read_all` returned"

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
            throw_error(
                {"attention: row ", b, " of this memory has dropped its oldest ", number_of{dropped[b], "position"},
                 ", but the ",
                 score        ? "score"
                 : normalizer ? "normalizer"
                              : "combiner",
                 " needs all (needs_all_positions): it reads position numbers, or carries values from one position to "
                 "the next; keep all positions and hide the oldest with a mask, causal{} & sliding_window{n}"});
        }
    }
}

/// Checks and returns a state of this attention. Throws heed::error if the memory has dropped positions that it needs.
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

/// Checks and returns the memory of several heads.
template <class Memory>
decltype(auto) memory_of_several(const Memory& memory)
{
    constexpr bool of_several = requires { memory.of; };
    static_assert(of_several,
                  "heed: this is not a memory of several heads: pass a memory that this mechanism's `on` made");
    return meant_unless<of_several, memory_list<std::vector<Memory>>>(memory);
}

/// Checks and returns the states of several heads.
template <class State>
decltype(auto) states_of_several(const auto& mechanism, const auto& memory, const State& state)
{
    constexpr bool of_several = requires { state.of; };
    static_assert(of_several, HEED_SAYS_ANOTHER_STATE);
    return meant_unless<of_several, decltype(mechanism.start(memory))>(state);
}

/// Arguments that `on` rejects with a specific message: lazy expressions and std::vector.
template <class X>
inline constexpr bool no_source = lazy_expression<X> || is_vector<X>;

/// Arguments of `on` and `extend`: annotations or values, with or without heads, and lengths or a mask.
template <class X>
concept source = tensor<X> || tensor_of_heads<X> || source_limit<std::remove_cvref_t<X>>;

/// The argument that should have been passed.
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
                  "heed: pass the numbers of real positions as `lengths`: `attend.on(annotations, lengths(counts))` "
                  "with a std::vector<std::size_t>, or `lengths{7, 5}`");
    return {};
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
