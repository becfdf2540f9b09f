// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/core/tensor.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/state.hpp>

/// Queries that consist of one tensor or of several parts.
namespace heed::inline HEED_TARGET {

namespace detail {

/// The query of step s, from the queries of all steps: one tensor [B,S,.], or several parts. Zeros if there are no
/// steps.
auto part_of_step(const auto& queries, std::size_t s) { return queries.step(s); }
auto part_of_step(const tensor auto& queries, std::size_t s)
{
    const auto shape = shape_of(queries);
    if (shape[1] == 0) return constant_like(queries, shape_of_rank<2>{shape[0], shape[2]}, 0.0);
    return ops::step_of(queries, s);
}

/// Applies f to a query that is a tensor, or to every tensor of a query with several parts.
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

/// Can the tensors of a query be visited one by one? A custom query type needs `map` for that.
template <class Query>
concept mappable_query = tensor<Query> || hook::map<Query, any_map>;

}  // namespace detail

/// A query of two parts: the decoder's state s [B,Q] and the embedding y of the previous target word [B,E].
template <class State, class Word>
struct state_and_word {
    State state;
    Word word;

    /// The query of step s, from the queries of all steps, [B,S,.] each.
    auto step(std::size_t s) const
    {
        return heed::state_and_word{detail::part_of_step(state, s), detail::part_of_step(word, s)};
    }

    /// Applies f to each part.
    auto map(auto&& f) const { return heed::state_and_word{f(state), f(word)}; }
};
template <class State, class Word>
state_and_word(State, Word) -> state_and_word<State, Word>;

/// As above, with Y y [B,A] already computed; see score::with_word::project_words.
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

/// The decoder's state [B,Q] of a query, which may have other parts.
const auto& state_of(const tensor auto& query) { return query; }
const auto& state_of(const auto& query)
{
    static_assert(
        requires { query.state; }, "heed: this policy reads the decoder's state: pass a tensor [B,Q], or a "
                                   "query with a member `state`, such as heed::state_and_word");
    return detail::state_of(query.state);
}

/// A query of two parts with its state replaced.
auto with_state(const auto& query, auto state) { return state_and_word{std::move(state), query.word}; }
template <class State, class Word>
auto with_state(const state_and_projected_word<State, Word>& query, auto state)
{
    return state_and_projected_word{std::move(state), query.word};
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
