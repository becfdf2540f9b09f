// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/attention/memory.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/family.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/shape.hpp>

/// Queries of one part and of several, their numbers, and their results.
///
/// The number of a query is that of the state. Where the sentences of a KV cache differ in length, it is the
/// number for the longest one, and a sentence that is n positions shorter is asked a query with a number n smaller. So
/// the query after the last word of each stands at that word in all of them:
///
///     auto state = from_query(attend.start(memory), memory.next_position() - 1);
///
/// Positions that a KV cache has dropped are counted.
namespace heed::inline HEED_TARGET {

namespace detail {

/// The query of step s, from queries for all steps: one tensor [B,S,.], or several parts. Zeros if there are no steps.
auto part_of_step(const auto& queries, std::size_t s) { return queries.step(s); }
auto part_of_step(const tensor auto& queries, std::size_t s)
{
    const auto shape = shape_of(queries);
    if (shape[1] == 0) return constant_like(queries, shape_of_rank<2>{shape[0], shape[2]}, 0.0);
    return ops::step_of(queries, s);
}

/// f of a query that is a tensor, or of every tensor in a query of several parts.
auto map_query(const tensor auto& query, const auto& f) { return f(query); }
template <class Query, class F>
auto map_query(const Query& query, const F& f)
{
    if constexpr (lazy_expression<Query>) {
        static_assert(tensor<Query>, HEED_SAYS_LAZY);
        return f(detail::as_meant<typename Query::value_type>(query));
    } else {
        return query.map([&f](const auto& part) { return map_query(part, f); });
    }
}

struct any_map {
    auto operator()(const auto& x, const auto&...) const { return x; }
};

/// Can the tensors of a query be visited one by one? A user's own query needs `map` for that.
template <class Query>
concept mappable_query = tensor<Query> || hook::map<Query, any_map>;

}  // namespace detail

/// A query of two parts: the decoder's state s [B,Q] and the embedding y of the previous target word [B,E].
template <class State, class Word>
struct state_and_word {
    State state;
    Word word;

    /// The query of step s, from queries for all steps, [B,S,.] each.
    auto step(std::size_t s) const
    {
        return heed::state_and_word{detail::part_of_step(state, s), detail::part_of_step(word, s)};
    }

    /// The same with f applied to each part.
    auto map(auto&& f) const { return heed::state_and_word{f(state), f(word)}; }
};
template <class State, class Word>
state_and_word(State, Word) -> state_and_word<State, Word>;

/// The same with Y y [B,A] already computed, see score::with_word::project_words.
template <class State, class Word>
struct state_and_projected_word {
    State state;
    Word word;

    auto step(std::size_t s) const
    {
        return heed::state_and_projected_word{detail::part_of_step(state, s), detail::part_of_step(word, s)};
    }
    auto map(auto&& f) const { return heed::state_and_projected_word{f(state), f(word)}; }
};
template <class State, class Word>
state_and_projected_word(State, Word) -> state_and_projected_word<State, Word>;

namespace detail {

/// The decoder's state [B,Q] of a query, which may have further parts.
const auto& state_of(const tensor auto& query) { return query; }
const auto& state_of(const auto& query)
{
    static_assert(
        requires { query.state; }, "heed: this policy reads the decoder's state: ask with a tensor [B,Q], or with a "
                                   "query that has it as `state`, as heed::state_and_word has");
    return detail::state_of(query.state);
}

/// The same query of two parts, with another state.
auto with_state(const auto& query, auto state) { return state_and_word{std::move(state), query.word}; }
template <class State, class Word>
auto with_state(const state_and_projected_word<State, Word>& query, auto state)
{
    return state_and_projected_word{std::move(state), query.word};
}

/// Are these the keys of a KV cache, as a step reads them?
template <class Keys>
concept keys_grow = shares_rows<Keys> && is_cache<std::remove_cvref_t<decltype(Keys::of)>>;

/// Which row of the keys row b of the queries asks.
std::size_t row_asked(const auto&, std::size_t b) { return b; }
template <class X>
std::size_t row_asked(const shared_rows<X>& keys, std::size_t b)
{
    return keys.sentence[b];
}

/// The number of the query of a sentence whose next position has the number `next`, where that of the longest one is
/// `longest`. 0 before any position, since there nothing is compared.
inline std::size_t number_in_sentence(std::size_t number, std::size_t next, std::size_t longest)
{
    if (next == 0 || next == longest) return next == 0 ? 0 : number;
    if (number + next < longest) {
        throw shape_error("attention: query " + std::to_string(number) + " of a KV cache, whose longest " +
                          "sentence has " + std::to_string(longest) + " positions, would have the number -" +
                          std::to_string(longest - next - number) + " in a sentence of " + std::to_string(next) +
                          "; number queries by the longest one: begin with from_query(attend.start(memory), " +
                          "memory.next_position() - 1)");
    }
    return number + next - longest;
}

/// The number of the next position of row b of a memory, dropped ones counted.
std::size_t next_position_of(const auto& memory, std::size_t b)
{
    return memory.real[b] + (lengths_view(memory.dropped).batch() == 0 ? 0 : memory.dropped[b]);
}

/// The number of a query as masks read it, `score_index::query`: keys count from the first position that a memory still
/// has, and so do queries.
std::size_t query_of_masks(const auto& memory, std::size_t number)
{
    return number - std::min(number, memory.next_position() - memory.positions());
}

/// Do the sentences of this memory differ in length?
inline bool differ_in_length(const lengths_view& real)
{
    for (std::size_t b = 1; b < real.batch(); ++b) {
        if (real[b] != real[0]) return true;
    }
    return false;
}

/// Do queries have several numbers, of a score that reads them?
template <class Score, class Memory>
bool numbers_differ(const Memory& memory)
{
    if constexpr (grows<Memory> && score_traits_of<Score>().reads_query_position) {
        for (std::size_t b = 1; b < memory.batch(); ++b) {
            if (next_position_of(memory, b) != next_position_of(memory, 0)) return true;
        }
    }
    return false;
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

/// Tags: return the weights too, or the context alone. A kernel per dimension then makes no weights [B,T,D].
struct weights_too {};
/// The context without the weights.
struct context_only {};

}  // namespace heed::inline HEED_TARGET
