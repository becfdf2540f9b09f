// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/core/tensor.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/ops/heads.hpp>
#include <heed/ops/shape.hpp>

/// Heads that are already projected: queries [B,H,S,d], keys [B,G,T,d] and values [B,G,T,D], G a divisor of H. Head h
/// of the queries reads head h · G / H of the keys.
///
///     auto memory = attend.on(k, v);
///     auto contexts = attend(memory, q, causal{});     // [B,H,S,D]
///
/// Each head of each sentence is a row of the attention's batch. Masks and functions of scores read the indices of
/// sentence and head. All heads share the parameters; for separate parameters use multi_head.
namespace heed::inline HEED_TARGET {

/// The keys and values of heads: a memory with a row for each head of each sentence.
template <class Memory>
struct heads_memory {
    Memory each;        // B·G rows
    std::size_t heads;  // G

    std::size_t batch() const { return each.batch() / heads; }          // sentences
    std::size_t positions() const { return each.positions(); }          // T
    std::size_t next_position() const { return each.next_position(); }  // see memory
    std::size_t width() const { return each.width(); }                  // D of the values

    /// A copy of the keys as the score compares them, [B,G,T,d]; for a KV cache, with zeros after each row.
    auto keys() const { return of_heads(each.keys); }
    /// A copy of the values, [B,G,T,D].
    auto values() const { return of_heads(each.values); }

    /// The memory with these sentences, in this order; a sentence may be repeated.
    heads_memory rows(std::span<const std::size_t> which) const
    {
        std::vector<std::size_t> all;
        for (const std::size_t b : which)
            for (std::size_t h = 0; h < heads; ++h) all.push_back(b * heads + h);
        return {each.rows(all), heads};
    }

    /// The KV cache without the n oldest positions of each sentence: see memory.
    heads_memory without_oldest(const lengths& n) const { return with(each.without_oldest(n.for_heads(heads)), heads); }
    heads_memory without_oldest(std::size_t n) const { return with(each.without_oldest(n), heads); }

    /// The memory of these rows; `heads` consecutive rows are the heads of one sentence.
    static heads_memory with(Memory rows, std::size_t heads)
    {
        rows.real = rows.real.rows_of_heads(heads);
        return {std::move(rows), heads};
    }

private:
    auto of_heads(const tensor auto& x) const
    {
        const auto [rows, T, width] = shape_of(x);
        return ops::reshaped(detail::in_one_piece(x), shape_of_rank<4>{rows / heads, heads, T, width});
    }
};

/// The memory as a KV cache: see attention/memory.hpp.
template <class Memory>
auto with_cache(const heads_memory<Memory>& from)
{
    auto each = heed::with_cache(from.each);
    return heads_memory<decltype(each)>::with(std::move(each), from.heads);
}
/// A copy of a KV cache that no longer grows.
template <class Memory>
auto gathered(const heads_memory<Memory>& from)
{
    auto each = heed::gathered(from.each);
    return heads_memory<decltype(each)>{std::move(each), from.heads};
}

/// Keys and values with concatenated heads, [B,T,G·d] and [B,T,G·D], for many queries at once. For one query after
/// another, use `with_cache`, which stores each head in separate rows.
template <class Memory>
struct split_memory {
    Memory joined;
    std::size_t heads;  // G

    std::size_t batch() const { return joined.batch(); }          // sentences
    std::size_t positions() const { return joined.positions(); }  // T
    std::size_t width() const { return joined.width() / heads; }  // D of the values

    /// The memory with these sentences.
    split_memory rows(std::span<const std::size_t> which) const { return {joined.rows(which), heads}; }
};

/// Heads in separate rows, as a KV cache.
template <class Memory>
auto with_cache(const split_memory<Memory>& from);

namespace detail {

template <class Memory>
inline constexpr bool has_heads = false;
template <class Memory>
inline constexpr bool has_heads<heads_memory<Memory>> = true;
template <class Memory>
inline constexpr bool has_heads<split_memory<Memory>> = true;

/// The memory of rows in a memory of heads; any other memory is returned unchanged.
const auto& rows_in(const auto& memory) { return memory; }
template <class Memory>
const Memory& rows_in(const heads_memory<Memory>& memory)
{
    return memory.each;
}
template <class Memory>
const Memory& rows_in(const split_memory<Memory>& memory)
{
    return memory.joined;
}

/// Heads in separate rows; concatenated heads are copied.
template <class Memory>
const heads_memory<Memory>& apart(const heads_memory<Memory>& memory)
{
    return memory;
}
template <class Memory>
auto apart(const split_memory<Memory>& memory)
{
    const auto rows_of = [&](const auto& x) { return detail::rows_of_heads(heed::split_heads(x, memory.heads)); };
    auto values = rows_of(memory.joined.values);
    auto keys = rows_of(memory.joined.keys);
    using rows = heed::memory<decltype(values), decltype(keys)>;
    return heads_memory<rows>{{std::move(values), std::move(keys), memory.joined.real.for_heads(memory.heads)},
                              memory.heads};
}

/// Keys or values of heads as rows of a memory; the limits of a batch, repeated for each head.
template <tensor_of_heads X>
auto for_heads(X&& x, std::size_t)
{
    return detail::rows_of_heads(std::forward<X>(x));
}
inline lengths for_heads(const lengths& limit, std::size_t heads) { return limit.for_heads(heads); }
template <std::size_t N>
boolean_mask<N> for_heads(const boolean_mask<N>& limit, std::size_t heads)
{
    return detail::rows_of_mask(limit, detail::repeated(limit.shape()[0], heads));
}
inline no_mask for_heads(const no_mask&, std::size_t) { return {}; }

/// Keys or values with concatenated heads, as stored; limits, unchanged.
template <class X>
decltype(auto) joined(X&& x)
{
    return std::forward<X>(x);
}
template <class X>
    requires(is_split<std::remove_cvref_t<X>>)
decltype(auto) joined(X&& x) { return (std::forward<X>(x).joined); }

/// A memory without shared rows. Its type does not depend on whether rows are copied.
auto with_own_rows(const auto& given, std::size_t heads)
{
    const auto& of = detail::in_one_piece(given);
    const std::size_t times = heads / of.real.heads();
    const auto which = detail::repeated(of.batch(), times);
    const auto rows = [&]<class X>(const X& x) {
        using kept = std::conditional_t<plain_tensor<X>, shared_tensor<element_of<X>, rank_of<X>>, X>;
        return times == 1 ? kept(detail::read_in_place(x)) : kept(ops::rows_of(x, which));
    };
    auto values = rows(of.values);
    auto keys = rows(of.keys);
    return memory<decltype(values), decltype(keys), std::remove_cvref_t<decltype(of.mask)>>{
        std::move(values),
        std::move(keys),
        of.real.rows(which).rows_of_heads(heads),
        detail::for_heads(of.mask, times),
        of.values_given,
        of.dropped.batch() == 0 ? lengths() : of.dropped.rows(which)};
}

/// The state for all query heads, from the state for the key heads: each row is repeated `times` times.
template <class State>
State state_for_heads(const State& state, std::size_t rows, std::size_t times)
{
    if (times == 1) return state;
    return state.map([&]<class X>(const X& x) {
        return shape_of(x)[0] == rows ? X(ops::rows_of(x, detail::repeated(rows, times))) : X(x);
    });
}

/// The mask of H heads of each sentence, as their rows read it. The result refers to the given mask.
decltype(auto) mask_in_rows(const auto& mask, const asked_queries& queries, const lengths_view& real)
{
    return detail::mask_for(mask, queries, real);
}
inline lengths mask_in_rows(const lengths& mask, const asked_queries& queries, const lengths_view&)
{
    mask.require("attention: the mask", queries.sentences, queries.positions);
    return mask.for_heads(queries.heads);
}

/// Throws shape_error unless these queries fit this memory.
template <std::size_t R>
void require_groups(const shape_of_rank<R>& queries, const auto& memory)
{
    if (queries[0] == memory.batch() && queries[1] > 0 && queries[1] % memory.heads == 0) return;
    throw_shape_error({"attention: queries ", queries, " with ", number_of{queries[1], "head"}, " do not fit keys of ",
                       number_of{memory.batch(), "sentence"}, " with ", number_of{memory.heads, "head"},
                       "; the number of sentences must be the same, and the number of query heads a multiple of the "
                       "number of key heads"});
}

/// Calls f(memory, query, state, mask) with heads as rows: one query per head, [B,H,d], if R = 2, or many, [B,H,S,d],
/// if R = 3. The results have a row for each head. `grouped`: f can read shared rows of keys.
template <std::size_t R, bool grouped, class Memory, class Query>
auto asked_by_rows(const heads_memory<Memory>& memory, const Query& query, const auto& state, const auto& mask,
                   const auto& f)
{
    static_assert(tensor_with_axes<Query, R + 1> || (R == 3 && is_split<Query>),
                  "heed: this is a memory of heads: `step` and `read` take one query per head, [B,H,d]; "
                  "`attend(memory, queries)` and `read_all` take many, [B,H,S,d]");
    const auto shape = detail::shape_of_heads(query);
    const std::size_t B = shape[0], H = shape[1], G = memory.heads, S = R == 2 ? 1 : shape[2];
    detail::require_groups(shape, memory);
    const auto& asked = detail::seen_as_rows(query);
    const auto now = detail::state_for_heads(state, B * G, H / G);
    const auto answer = [&](const auto& of) {
        const asked_queries queries{query_of_masks(memory.each, state.step), S, B, H, memory.positions(), R == 2, true};
        return f(of, asked, now, detail::mask_in_rows(mask, queries, of.real));
    };
    if constexpr (!grouped || !std::is_same_v<std::remove_cvref_t<decltype(memory.each.mask)>, no_mask>) {
        return answer(with_own_rows(memory.each, H));
    } else {
        if constexpr (R == 2)
            if (H == G) return answer(memory.each);
        return answer(grouped_memory(memory.each, H));
    }
}

/// Throws shape_error unless a tensor has the sentences and heads of keys [B,G,T,d], or limits fit the sentences.
void require_heads(const char* where, const tensor_of_heads auto& x, const shape_of_rank<4>& keys)
{
    const auto is = detail::shape_of_heads(x);
    if (is[0] == keys[0] && is[1] == keys[1]) return;
    throw_shape_error({where, ": keys of ", number_of{keys[0], "sentence"}, " with ", number_of{keys[1], "head"},
                       ", but ", is, " has ", number_of{is[0], "sentence"}, " with ", number_of{is[1], "head"},
                       "; these numbers must be the same"});
}
void require_heads(const char* where, const source_limit auto& limit, const shape_of_rank<4>& keys)
{
    limit.require(where, {keys[0], keys[2]});
}

/// Reshapes results of rows, [B·H,...], to results of heads, [B,H,...].
auto results_of_heads(tensor auto x, std::size_t heads) { return detail::heads_of_rows(std::move(x), heads); }
template <class Context, class Weights, class State>
auto results_of_heads(step_result<Context, Weights, State> of, std::size_t heads)
{
    return step_result{detail::results_of_heads(std::move(of.context), heads),
                       detail::results_of_heads(std::move(of.weights), heads), std::move(of.state)};
}
template <class Context, class State>
auto results_of_heads(context_result<Context, State> of, std::size_t heads)
{
    return context_result{detail::results_of_heads(std::move(of.context), heads), std::move(of.state)};
}
template <class Contexts, class State>
auto results_of_heads(sequence_result<Contexts, State> of, std::size_t heads)
{
    return sequence_result{detail::results_of_heads(std::move(of.contexts), heads), std::move(of.state)};
}

/// The results; if the queries have concatenated heads, so do the contexts.
auto beside_queries(const auto&, auto results) { return results; }
template <class X, class Contexts, class State>
auto beside_queries(const split_tensor<X>& queries, sequence_result<Contexts, State> of)
{
    return sequence_result{heed::split_heads(heed::join_heads(of.contexts), queries.heads), std::move(of.state)};
}

/// A memory of concatenated heads, as tiles read it: nothing is copied.
template <class Values, class Keys>
struct side_by_side_memory {
    const Values& values;  // [B,T,G·D]
    const Keys& keys;      // [B,T,G·d]
    const lengths& real;
    std::size_t heads, groups;  // of the queries, and of keys and values
    HEED_NO_UNIQUE_ADDRESS no_mask mask{};
    lengths dropped{};

    std::size_t batch() const { return shape_of(values)[0]; }
    std::size_t positions() const { return shape_of(values)[1]; }
    std::size_t next_position() const { return positions(); }
    std::size_t width() const { return shape_of(values)[2]; }
};
template <class Values, class Keys>
side_by_side_memory(const Values&, const Keys&, const lengths&, std::size_t, std::size_t)
    -> side_by_side_memory<Values, Keys>;

}  // namespace detail

template <class Memory>
auto with_cache(const split_memory<Memory>& from)
{
    return heed::with_cache(detail::apart(from));
}

}  // namespace heed::inline HEED_TARGET
