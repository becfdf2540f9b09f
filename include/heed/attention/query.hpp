// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/attention/memory.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query_numbers.hpp>

/// The numbers of the queries of a call, and the results of queries.
namespace heed::inline HEED_TARGET {

namespace detail {

/// The number of a query as masks read it, `score_index::query`. Keys and queries count from the first position that a
/// memory still has.
std::size_t query_of_masks(const auto& memory, std::size_t number)
{
    return number - std::min(number, memory.next_position() - memory.positions());
}

/// Do the sentences of this memory differ in length?
inline bool differ_in_length(const lengths_view& real)
{
    for (std::size_t b = 1; b < real.batch(); ++b)
        if (real[b] != real[0]) return true;
    return false;
}

/// Does the score read query numbers, and do they differ between the sentences?
template <class Score, class Memory>
bool numbers_differ(const Memory& memory)
{
    if (!grows<Memory> || !score_traits_of<Score>().reads_query_position) return false;
    for (std::size_t b = 1; b < memory.batch(); ++b)
        if (next_position_of(memory, b) != next_position_of(memory, 0)) return true;
    return false;
}

/// Throws heed::error if query numbers differ between the sentences of this memory, for calls that need one number.
template <class Score>
void require_one_number(const auto& memory)
{
    if (detail::numbers_differ<Score>(memory)) {
        throw error("attention: this call needs one query number for all sentences, but the sentences of this KV cache "
                    "differ in length, and the score reads query numbers; call step, read or read_all, or batch "
                    "sentences of the same length");
    }
}

}  // namespace detail

/// The result of one query.
template <class Context, class Weights, class State>
struct step_result {
    Context context;  // [B,D]
    Weights weights;  // [B,T], or [B,T,D] per dimension, [B,T,G] per group
    State state;      // for the next step
};
template <class Context, class Weights, class State>
step_result(Context, Weights, State) -> step_result<Context, Weights, State>;

/// The result of one query, without the weights.
template <class Context, class State>
struct context_result {
    Context context;  // [B,D]
    State state;      // for the next step
};
template <class Context, class State>
context_result(Context, State) -> context_result<Context, State>;

/// The results of many queries, without the weights.
template <class Contexts, class State>
struct sequence_result {
    Contexts contexts;  // [B,S,D]
    State state;        // after the last query
};
template <class Contexts, class State>
sequence_result(Contexts, State) -> sequence_result<Contexts, State>;

}  // namespace heed::inline HEED_TARGET
