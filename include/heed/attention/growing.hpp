// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/attention/memory.hpp>
#include <heed/core/growing.hpp>
#include <heed/core/several.hpp>
#include <heed/core/shared_tensor.hpp>

/// Memories that grow, for a decoder that attends to its own words:
///
///     auto memory = growing(attend.on(prompt));           // [B,T,D]
///     while (…) {
///         memory = attend.extend(memory, word);           // [B,1,D]: copies the word, not what was before
///         auto [context, weights, next] = attend.step(memory, query, state);
///         memory = memory.rows(chosen);                   // in a beam: the hypotheses that go on, none copied
///     }
///
/// Copies that grow do not see each other's words (core/growing.hpp). Sentences may differ in length; scores that read
/// the number of the query, such as score::rotary, then have one for each (attention/query.hpp).
namespace heed {

/// The memory with room behind its last positions, so that `extend` need not copy it. A memory on a tape is returned as
/// it is: there `extend` copies, so that gradients flow.
template <class Values, class Keys>
auto growing(const memory<Values, Keys>& from)
{
    if constexpr (plain_tensor<Values> && plain_tensor<Keys> && !is_growing<Keys>) {
        using keys = growing_tensor<element_of<Keys>>;
        using values = growing_tensor<element_of<Values>>;
        return memory<values, keys>{values(view_of(from.values), from.real), keys(view_of(from.keys), from.real),
                                    from.real};
    } else {
        return from;
    }
}

/// A memory of another kind, such as a user's own, grows as it can.
template <class Memory>
Memory growing(const Memory& from)
{
    return from;
}

/// The same of each of several memories, as multi_head makes them.
template <class Memories>
auto growing(const several_memories<Memories>& from)
{
    return several_memories{detail::each_of(from.of, [&](auto i) { return heed::growing(detail::nth(from.of, i)); })};
}

/// A copy of a growing memory that no longer grows: all its sentences in arrays [B,T,.], with zeros in the padding.
template <class T>
auto gathered(const memory<growing_tensor<T>, growing_tensor<T>>& from)
{
    return memory<array<T, 3>, array<T, 3>>{gathered(from.values), gathered(from.keys), from.real};
}

namespace detail {

/// Does this memory grow?
template <class Memory>
inline constexpr bool grows = false;
template <class T>
inline constexpr bool grows<memory<growing_tensor<T>, growing_tensor<T>>> = true;

/// The positions [begin, end) of a memory of one sentence.
template <class T>
auto positions_of(const memory<growing_tensor<T>, growing_tensor<T>>& from, std::size_t begin, std::size_t end)
{
    const auto part = [=](const growing_tensor<T>& x) {
        const std::size_t width = x.shape()[2];
        return tensor_view<const T, 3>{x.row(0) + begin * width, {1, end - begin, width}};
    };
    using view = tensor_view<const T, 3>;
    return memory<view, view>{part(from.values), part(from.keys), lengths{end - begin}};
}

/// In one piece, for what does not run by rows: several sentences are copied.
template <class T>
shared_tensor<T, 3> in_one_piece(const growing_tensor<T>& x)
{
    if (x.shape()[0] <= 1) return x.view();
    return gathered(x);
}
template <class T>
auto in_one_piece(const memory<growing_tensor<T>, growing_tensor<T>>& from)
{
    using kept = shared_tensor<T, 3>;
    return memory<kept, kept>{in_one_piece(from.values), in_one_piece(from.keys), from.real};
}

}  // namespace detail

}  // namespace heed
