// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <heed/core/cache_tensor.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/ops/by_rows.hpp>

/// The positions of queries, for scores that read them.
///
/// The position of a query is a member of the state. If the sentences of a KV cache differ in length, it applies to the
/// longest sentence; in a sentence that is n positions shorter, it is smaller by n. So the query after the last word is
/// at that word in every sentence:
///
///     auto state = from_query(attend.start(memory), memory.next_position() - 1);
///
/// Dropped positions of a KV cache count.
namespace heed::inline HEED_TARGET {

/// Do several rows of queries share a sentence of this memory?
template <class Memory>
concept shared_by_rows = requires(const Memory& memory)
{
    memory.sentence;
};

namespace detail {

/// Are these the keys of a KV cache, as a step reads them?
template <class Keys>
concept keys_grow = shares_rows<Keys> && is_cache<std::remove_cvref_t<decltype(Keys::of)>>;

/// The row of the keys that row b of the queries attends to.
std::size_t row_asked(const auto&, std::size_t b) { return b; }
template <class X>
std::size_t row_asked(const shared_rows<X>& keys, std::size_t b)
{
    return keys.sentence[b];
}

/// The position of the query in a sentence with next position `next`, if the longest sentence has next position
/// `longest`. 0 if the sentence has no positions, since nothing is compared.
inline std::size_t number_in_sentence(std::size_t number, std::size_t next, std::size_t longest)
{
    if (next == 0 || next == longest) return next == 0 ? 0 : number;
    if (number + next < longest) {
        throw_shape_error({"attention: query ", number, " of a KV cache, whose longest sentence has ", longest,
                           " positions, would have the number -", longest - next - number, " in a sentence of ", next,
                           "; number queries by the longest sentence: begin with from_query(attend.start(memory), "
                           "memory.next_position() - 1)"});
    }
    return number + next - longest;
}

/// The next position of row b of a memory, including dropped positions.
std::size_t next_position_of(const auto& memory, std::size_t b)
{
    return memory.real[b] + (lengths_view(memory.dropped).batch() == 0 ? 0 : memory.dropped[b]);
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
