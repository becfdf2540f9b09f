// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/core/tensor.hpp>
#include <heed/ops/shape.hpp>

/// Heads that are projected already: queries [B,H,S,d], keys [B,G,T,d] and values [B,G,T,D], G a divisor of H. Head h
/// of the queries reads head h · G / H of the keys.
///
///     auto memory = attend.on(k, v);
///     auto contexts = attend(memory, q, causal{});     // [B,H,S,D]
///
/// An attention answers each head of each sentence as a row of its batch. Masks and functions of scores read the
/// numbers of sentence and head, and all heads share the parameters; heads with parameters of their own are a
/// multi_head.
namespace heed::inline HEED_TARGET {

/// Heads side by side in the last axis, [B,S,n·d], read as [B,n,S,d]. X is a reference to a tensor that has a name,
/// which is not copied and must live as long; a temporary is kept.
template <class X>
struct split_tensor {
    X joined;
    std::size_t heads;

    shape_of_rank<4> shape() const  // [B,n,S,d]
    {
        const auto [B, S, N] = shape_of(joined);
        return {B, heads, S, N / heads};
    }
    /// The heads as a tensor [B,n,S,d]: a copy.
    auto apart() const
    {
        const auto [B, n, S, d] = shape();
        return ops::permuted(ops::reshaped(joined, shape_of_rank<4>{B, S, n, d}), 0, 2, 1, 3);
    }
};

/// x [B,S,n·d] as heads [B,n,S,d], for an attention's queries, keys and values; its contexts are split in the same way.
template <tensor X>
auto split_heads(X&& x, std::size_t heads)
{
    static_assert(rank_of<X> == 3, "heed: split_heads reads [B,S,n·d] as n heads [B,n,S,d]");
    const auto shape = shape_of(x);
    if (heads == 0 || shape[2] % heads != 0) {
        throw shape_error("split_heads: the last axis of " + shape_text(shape) + " cannot be cut into " +
                          std::to_string(heads) + " heads; its size must be a multiple of their number");
    }
    using kept =
        std::conditional_t<std::is_lvalue_reference_v<X>, const std::remove_cvref_t<X>&, std::remove_cvref_t<X>>;
    return split_tensor<kept>{std::forward<X>(x), heads};
}

/// Heads [B,n,S,d] side by side, [B,S,n·d]: a copy, unless they are split.
template <class X>
X join_heads(split_tensor<X> heads)
{
    return std::forward<X>(heads.joined);
}
template <tensor X>
auto join_heads(const X& heads)
{
    static_assert(rank_of<X> == 4, "heed: join_heads takes heads [B,n,S,d]");
    const auto [B, n, S, d] = shape_of(heads);
    return ops::reshaped(ops::permuted(heads, 0, 2, 1, 3), shape_of_rank<3>{B, S, n * d});
}

/// The keys and values of heads: a memory with a row for each head of each sentence.
template <class Memory>
struct heads_memory {
    Memory each;        // B·G rows
    std::size_t heads;  // G

    std::size_t batch() const { return each.batch() / heads; }          // sentences
    std::size_t positions() const { return each.positions(); }          // T
    std::size_t next_position() const { return each.next_position(); }  // see memory
    std::size_t width() const { return each.width(); }                  // D of the values

    /// Keys as the score compares them, [B,G,T,d], and values [B,G,T,D]: copies, of a KV cache with zeros behind each
    /// row.
    auto keys() const { return of_heads(each.keys); }
    /// See keys.
    auto values() const { return of_heads(each.values); }

    /// The memory of these sentences, in this order, any number of times each.
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

    /// The memory of these rows, each so many of which are the heads of one sentence.
    static heads_memory with(Memory rows, std::size_t heads)
    {
        rows.real = rows.real.rows_of_heads(heads);
        return {std::move(rows), heads};
    }

private:
    template <class X>
    auto of_heads(const X& x) const
    {
        const auto [rows, T, width] = shape_of(x);
        const shape_of_rank<4> shape{rows / heads, heads, T, width};
        if constexpr (is_cache<X>) {
            return ops::reshaped(gathered(x), shape);
        } else {
            return ops::reshaped(x, shape);
        }
    }
};

/// The same with room behind the last positions: see attention/memory.hpp.
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

/// The keys and values of heads that stand side by side, [B,T,G·d] and [B,T,G·D], for many queries at once. For one
/// query after another, `with_cache` gives each head rows of its own.
template <class Memory>
struct split_memory {
    Memory joined;
    std::size_t heads;  // G

    std::size_t batch() const { return joined.batch(); }          // sentences
    std::size_t positions() const { return joined.positions(); }  // T
    std::size_t width() const { return joined.width() / heads; }  // D of the values

    /// The memory of these sentences.
    split_memory rows(std::span<const std::size_t> which) const { return {joined.rows(which), heads}; }
};

/// Heads with rows of their own, and room behind the last positions.
template <class Memory>
auto with_cache(const split_memory<Memory>& from);

namespace detail {

template <class X>
inline constexpr bool is_split = false;
template <class X>
inline constexpr bool is_split<split_tensor<X>> = true;

/// Queries, keys or values of heads.
template <class X>
concept tensor_of_heads = is_split<std::remove_cvref_t<X>> ||(tensor<X>&& rank_of<X> == 4);

template <class X, std::size_t N>
concept tensor_with_axes = tensor<X> &&(rank_of<X> == N);

/// x with another shape of as many numbers, itself if it is given away.
template <std::size_t N, class T, std::size_t R>
array<T, N> reshaped_in_place(array<T, R> x, const shape_of_rank<N>& shape)
{
    array<T, N> y;
    y.storage() = std::move(x.storage());
    y.resize(shape);
    return y;
}
template <std::size_t N, tensor X>
auto reshaped_in_place(const X& x, const shape_of_rank<N>& shape)
{
    return ops::reshaped(x, shape);
}

/// Heads [B,n,S,d] as rows [B·n,S,d] that a memory keeps: an array is copied, unless it is given away; a view refers.
template <class X>
auto rows_of_heads(X&& x)
{
    using type = std::remove_cvref_t<X>;
    if constexpr (is_split<type>) {
        const auto [B, n, S, d] = x.shape();
        return detail::reshaped_in_place(x.apart(), shape_of_rank<3>{B * n, S, d});
    } else {
        const auto [B, n, S, d] = shape_of(x);
        const shape_of_rank<3> shape{B * n, S, d};
        if constexpr (is_array<type>) {
            return detail::reshaped_in_place(type(std::forward<X>(x)), shape);
        } else {
            return detail::seen_as(x, shape);
        }
    }
}

/// The shape of heads, [B,H,d] or [B,H,S,d].
template <class X>
auto shape_of_heads(const X& x)
{
    if constexpr (is_split<X>) {
        return x.shape();
    } else {
        return shape_of(x);
    }
}

/// Heads that stood side by side, with rows of their own: a copy.
template <class Memory>
auto heads_apart(const split_memory<Memory>& memory)
{
    const auto apart = [&](const auto& x) { return detail::rows_of_heads(heed::split_heads(x, memory.heads)); };
    auto values = apart(memory.joined.values);
    auto keys = apart(memory.joined.keys);
    using rows = heed::memory<decltype(values), decltype(keys)>;
    return heads_memory<rows>{{std::move(values), std::move(keys), memory.joined.real.for_heads(memory.heads)},
                              memory.heads};
}

template <class Memory>
inline constexpr bool has_heads = false;
template <class Memory>
inline constexpr bool has_heads<heads_memory<Memory>> = true;
template <class Memory>
inline constexpr bool has_heads<split_memory<Memory>> = true;
template <class Memory>
concept memory_with_heads = has_heads<Memory>;

/// Heads with rows of their own; those that stand side by side are copied.
template <class Memory>
const heads_memory<Memory>& apart(const heads_memory<Memory>& memory)
{
    return memory;
}
template <class Memory>
auto apart(const split_memory<Memory>& memory)
{
    return detail::heads_apart(memory);
}

/// The limits of a batch, for each of its heads.
inline lengths limit_of_heads(const lengths& limit, std::size_t heads) { return limit.for_heads(heads); }
inline boolean_mask<2> limit_of_heads(const boolean_mask<2>& limit, std::size_t heads)
{
    const auto [B, T] = limit.shape();
    boolean_mask<2> all(shape_of_rank<2>{B * heads, T});
    for (std::size_t i = 0; i < B * heads * T; ++i) all[i] = limit[i / T / heads * T + i % T];
    return all;
}

/// Rows of a memory, each so many times. One type, whether or not any is copied.
template <class X>
auto repeated_rows(const X& x, std::size_t times)
{
    std::vector<std::size_t> which(shape_of(x)[0] * times);
    for (std::size_t row = 0; row < which.size(); ++row) which[row] = row / times;
    if constexpr (is_cache<X>) {
        using kept = shared_tensor<element_of<X>, 3>;
        return kept(ops::rows_of(gathered(x), which));
    } else if constexpr (plain_tensor<X>) {
        using kept = shared_tensor<element_of<X>, rank_of<X>>;
        return times == 1 ? kept(view_of(x)) : kept(ops::rows_of(x, which));
    } else {
        return times == 1 ? x : ops::rows_of(x, which);
    }
}
/// A memory in which no row is shared.
template <class Values, class Keys, class Mask>
auto with_own_rows(const memory<Values, Keys, Mask>& of, std::size_t heads)
{
    const std::size_t times = heads / of.real.heads();
    auto values = detail::repeated_rows(of.values, times);
    auto keys = detail::repeated_rows(of.keys, times);
    std::vector<std::size_t> real(of.batch() * times);
    for (std::size_t row = 0; row < real.size(); ++row) real[row] = of.real[row / times];
    Mask mask{};
    if constexpr (!std::is_same_v<Mask, no_mask>) mask = detail::limit_of_heads(of.mask, times);
    lengths dropped;
    if (of.dropped.batch() > 0) {
        std::vector<std::size_t> before(real.size());
        for (std::size_t row = 0; row < before.size(); ++row) before[row] = of.dropped[row / times];
        dropped = lengths(std::move(before));
    }
    return memory<decltype(values), decltype(keys), Mask>{
        std::move(values), std::move(keys), lengths(std::move(real)).rows_of_heads(heads),
        std::move(mask),   of.values_given, std::move(dropped)};
}

/// The state for so many heads of each sentence, from that for the heads of the keys.
template <class State>
State state_for_heads(const State& state, std::size_t rows, std::size_t times)
{
    if constexpr (!State::has_tensors) {
        return state;
    } else {
        if (times == 1) return state;
        return state.map([&](const auto& x) {
            using type = std::remove_cvref_t<decltype(x)>;
            if (shape_of(x)[0] != rows) return type(x);
            std::vector<std::size_t> which(rows * times);
            for (std::size_t row = 0; row < which.size(); ++row) which[row] = row / times;
            return type(ops::rows_of(x, which));
        });
    }
}

/// The mask of H heads of each sentence, as their rows read it: refers to the mask.
template <class Mask>
decltype(auto) mask_of_rows_of_heads(const Mask& mask, const asked_queries& queries, const lengths_view& real)
{
    if constexpr (std::is_same_v<Mask, lengths>) {
        mask.require("attention: the mask", queries.sentences, queries.positions);
        return mask.for_heads(queries.heads);
    } else {
        return detail::mask_for(mask, queries, real);
    }
}

/// Throws shape_error unless these queries can ask this memory.
template <std::size_t R>
void require_groups(const shape_of_rank<R>& queries, const auto& memory)
{
    if (queries[0] == memory.batch() && queries[1] > 0 && queries[1] % memory.heads == 0) return;
    throw shape_error("attention: queries " + shape_text(queries) + " of " + counted(queries[1], "head") +
                      " ask the keys of " + counted(memory.batch(), "sentence") + " with " +
                      counted(memory.heads, "head") +
                      "; there must be as many sentences, and a multiple of the keys' heads");
}

/// Queries of heads as rows, without a copy where they are rows.
template <class Query>
auto queries_by_rows(const Query& query)
{
    if constexpr (is_split<Query>) {
        return detail::rows_of_heads(query);
    } else {
        const auto shape = shape_of(query);
        shape_of_rank<rank_of<Query> - 1> rows;
        rows[0] = shape[0] * shape[1];
        for (std::size_t axis = 2; axis < shape.size(); ++axis) rows[axis - 1] = shape[axis];
        return detail::seen_as(query, rows);
    }
}

/// f(memory, query, state, mask), which answers by rows, of one query of each head, [B,H,d] with R = 2, or of many,
/// [B,H,S,d] with R = 3; and the same with rows of heads' results. `grouped`: can it read rows of keys that are shared?
template <std::size_t R, bool grouped, class Memory, class Query>
auto asked_by_rows(const heads_memory<Memory>& memory, const Query& query, const auto& state, const auto& mask,
                   const auto& f)
{
    static_assert(
        tensor_with_axes<Query, R + 1> || (R == 3 && is_split<Query>),
        "heed: this memory is that of heads: one query of each is [B,H,d], for `step` and `read`, and many are "
        "[B,H,S,d], for `attend(memory, queries)` and `read_all`");
    const auto shape = detail::shape_of_heads(query);
    const std::size_t B = shape[0], H = shape[1], G = memory.heads, S = R == 2 ? 1 : shape[2];
    detail::require_groups(shape, memory);
    const auto& asked = detail::queries_by_rows(query);
    const auto now = detail::state_for_heads(state, B * G, H / G);
    const auto answer = [&](const auto& of) {
        const asked_queries queries{query_of_masks(memory.each, state.step), S, B, H, memory.positions(), R == 2, true};
        return f(of, asked, now, detail::mask_of_rows_of_heads(mask, queries, of.real));
    };
    constexpr bool hides = !std::is_same_v<std::remove_cvref_t<decltype(memory.each.mask)>, no_mask>;
    if constexpr (R == 2 && grouped && !hides) {
        return H == G ? answer(memory.each) : answer(grouped_memory(memory.each, H));
    } else if constexpr (grouped && !hides) {
        return answer(grouped_memory(memory.each, H));
    } else {
        return answer(detail::with_own_rows(memory.each, H));
    }
}

/// Throws shape_error unless tensors have as many sentences and heads as keys [B,G,T,d], and limits fit the sentences.
template <class X>
void require_heads(const char* where, const X& x, const shape_of_rank<4>& keys)
{
    if constexpr (tensor_of_heads<X>) {
        const auto is = detail::shape_of_heads(x);
        if (is[0] == keys[0] && is[1] == keys[1]) return;
        throw shape_error(std::string(where) + ": keys of " + counted(keys[0], "sentence") + " with " +
                          counted(keys[1], "head") + " beside " + shape_text(is) + " of " + counted(is[0], "sentence") +
                          " with " + counted(is[1], "head") + "; there must be as many");
    } else if constexpr (std::is_same_v<X, lengths>) {
        x.require(where, keys[0], keys[2]);
    } else {
        x.require(where, {keys[0], keys[2]});
    }
}

/// Keys and values as rows, without a copy where they are rows, and limits for each row.
auto rows_or_limit(const auto& x, std::size_t) { return detail::queries_by_rows(x); }
inline lengths rows_or_limit(const lengths& limit, std::size_t heads) { return limit.for_heads(heads); }

/// The same of what a memory keeps.
template <class X>
auto rows_of_heads_or_limit(X&& x, std::size_t heads)
{
    if constexpr (tensor_of_heads<X>) {
        return detail::rows_of_heads(std::forward<X>(x));
    } else {
        return detail::limit_of_heads(x, heads);
    }
}
/// Heads side by side, as they are; limits as they are.
template <class X>
decltype(auto) joined_or_limit(X&& x)
{
    if constexpr (is_split<std::remove_cvref_t<X>>) {
        return (std::forward<X>(x).joined);
    } else {
        return std::forward<X>(x);
    }
}
/// Results of rows, [B·H,...], as those of heads, [B,H,...].
template <tensor X>
auto results_of_heads(X x, std::size_t heads)
{
    const auto rows = shape_of(x);
    shape_of_rank<rank_of<X> + 1> shape;
    shape[0] = rows[0] / heads;
    shape[1] = heads;
    for (std::size_t axis = 1; axis < rank_of<X>; ++axis) shape[axis + 1] = rows[axis];
    return detail::reshaped_in_place(std::move(x), shape);
}
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

/// The contexts of queries that stand side by side do so, too.
auto beside_queries(const auto&, auto results) { return results; }
template <class X, class Contexts, class State>
auto beside_queries(const split_tensor<X>& queries, sequence_result<Contexts, State> of)
{
    return sequence_result{heed::split_heads(heed::join_heads(of.contexts), queries.heads), std::move(of.state)};
}

/// Heads that stand side by side, as tiles read them: nothing is copied.
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
    return heed::with_cache(detail::heads_apart(from));
}

}  // namespace heed::inline HEED_TARGET
