// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/core/several.hpp>
#include <heed/ops/parts.hpp>

/// The memory that the rows of a search attend to: that of the sentence each row translates.
namespace heed::seq2seq::detail {

/// The rows of a memory, for any kind of attention. heed's memories have a member `rows`, and so has a user's own; that
/// of `fixed_context` has a summary of each sentence.
template <class Memory>
    requires requires(const Memory& memory) { memory.summary; }
auto rows_of_memory(const Memory& from, std::span<const std::size_t> rows)
{
    return Memory{ops::rows_of(from.summary, rows)};
}
template <class Memory>
    requires requires(const Memory& memory, std::span<const std::size_t> rows) { memory.rows(rows); }
auto rows_of_memory(const Memory& from, std::span<const std::size_t> rows) { return from.rows(rows); }

template <class Memories>
auto rows_of_memory(const several_memories<Memories>& from, std::span<const std::size_t> rows)
{
    auto all = heed::detail::each_of(
        from.of, [&](auto i) { return detail::rows_of_memory(heed::detail::nth(from.of, i), rows); });
    return several_memories{std::move(all)};
}

/// The memory for the rows of a search: copies of their sentences' memories, or the originals, shared, if the attention
/// accepts that.
template <class Attention, class Memory>
struct memory_for_rows {
    using type = Memory;
    static type make(const Memory& from, const std::vector<std::size_t>& rows)
    {
        return detail::rows_of_memory(from, std::span<const std::size_t>(rows));
    }
};
template <class Score, class Normalize, class Combine, class Values, class Keys>
struct memory_for_rows<attention<Score, Normalize, Combine>, memory<Values, Keys, no_mask>> {
    using type = shared_memory<Values, Keys>;
    static type make(const memory<Values, Keys, no_mask>& from, const std::vector<std::size_t>& rows)
    {
        return type(from, rows);
    }
};
/// An attention in each layer of a decoder.
template <class Score, class Normalize, class Combine, class Values, class Keys>
struct memory_for_rows<std::vector<attention<Score, Normalize, Combine>>,
                       several_memories<std::vector<memory<Values, Keys, no_mask>>>> {
    using type = several_memories<std::vector<shared_memory<Values, Keys>>>;
    static type make(const several_memories<std::vector<memory<Values, Keys, no_mask>>>& from,
                     const std::vector<std::size_t>& rows)
    {
        type shared;
        for (const auto& each : from.of) shared.of.emplace_back(each, rows);
        return shared;
    }
};

}  // namespace heed::seq2seq::detail
