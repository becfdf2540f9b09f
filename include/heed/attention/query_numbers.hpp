// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <heed/attention/growing.hpp>
#include <heed/core/errors.hpp>
#include <heed/ops/by_rows.hpp>

/// The number of the query that each sentence is asked, for scores that read it: that of the state.
///
/// Where the sentences of a growing memory differ in length, the state has the number for the longest one, and a
/// sentence that is n positions shorter is asked a query with a number n smaller. So the query after the last word of
/// each stands at that word in all of them:
///
///     auto state = from_query(attend.start(memory), memory.positions() - 1);
namespace heed::detail {

/// Are these the keys of a growing memory, as a step reads them?
template <class Keys>
concept keys_grow = shares_rows<Keys> && is_growing<std::remove_cvref_t<decltype(Keys::of)>>;

/// Which row of the keys row b of the queries asks.
std::size_t row_asked(const auto& keys, std::size_t b)
{
    if constexpr (requires { keys.sentence; }) {
        return keys.sentence[b];
    } else {
        return b;
    }
}

/// The number of the query of a sentence with `real` positions where the longest one has `longest`. 0 without any
/// position, since there nothing is compared.
inline std::size_t number_in_sentence(std::size_t number, std::size_t real, std::size_t longest)
{
    if (real == 0 || real == longest) return real == 0 ? 0 : number;
    if (number + real < longest) {
        throw shape_error("attention: query " + std::to_string(number) + " of a growing memory, whose longest " +
                          "sentence has " + std::to_string(longest) + " positions, would have the number -" +
                          std::to_string(longest - real - number) + " in a sentence of " + std::to_string(real) +
                          "; number queries by the longest one: begin with from_query(attend.start(memory), " +
                          "memory.positions() - 1)");
    }
    return number + real - longest;
}

/// Do the sentences of this memory differ in length?
inline bool differ_in_length(const lengths_view& real)
{
    for (std::size_t b = 1; b < real.batch(); ++b) {
        if (real[b] != real[0]) return true;
    }
    return false;
}

/// The same, of a score that reads the number of a query: there are several numbers then.
template <class Score, class Memory>
bool numbers_differ(const Memory& memory)
{
    if constexpr (counts_queries_of<Score>() && grows<Memory>) {
        return differ_in_length(memory.real);
    } else {
        return false;
    }
}

/// Throws heed::error if queries have different numbers in this memory, for calls that take one for all sentences.
template <class Score>
void require_one_number(const auto& memory)
{
    if (detail::numbers_differ<Score>(memory)) {
        throw error("attention: this call asks all sentences of a memory in one piece, but those of this growing one "
                    "differ in length, and so do the numbers of their queries, which the score reads; call step, read "
                    "or read_all, or let sentences of one length grow side by side");
    }
}

}  // namespace heed::detail
