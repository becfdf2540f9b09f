// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/sums.hpp>

/// Queries of one part and of several, and how one of many is found.
namespace heed {

namespace detail {

/// Of queries for all steps, in one tensor [B,S,.] or in parts: the one of step s. Zeros where there are no steps.
template <class Queries>
auto part_of_step(const Queries& queries, std::size_t s)
{
    if constexpr (tensor<Queries>) {
        const auto shape = shape_of(queries);
        if (shape[1] == 0) return constant_like(queries, shape_of_rank<2>{shape[0], shape[2]}, 0.0);
        return ops::step_of(queries, s);
    } else {
        return queries.step(s);
    }
}

/// f of a tensor, or of every tensor that a query of several parts has.
template <class Query, class F>
auto map_query(const Query& query, const F& f)
{
    if constexpr (tensor<Query>) {
        return f(query);
    } else {
        return query.map([&f](const auto& part) { return map_query(part, f); });
    }
}

struct any_map {
    auto operator()(const auto& x) const { return x; }
};

/// Can the tensors of a query be reached one by one? A query of the user's own needs `map` for that, see
/// state_and_word.
template <class Query>
concept mappable_query = tensor<Query> || requires(const Query& query)
{
    query.map(any_map{});
};

}  // namespace detail

/// A query of two parts: the decoder's state s [B,Q] and the embedding y of the previous target word [B,E].
template <class State, class Word>
struct state_and_word {
    State state;
    Word word;

    /// Of queries for all steps, [B,S,.] each: the one of step s.
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

    /// Of queries for all steps, [B,S,.] each: the one of step s.
    auto step(std::size_t s) const
    {
        return heed::state_and_projected_word{detail::part_of_step(state, s), detail::part_of_step(word, s)};
    }

    /// The same with f applied to each part.
    auto map(auto&& f) const { return heed::state_and_projected_word{f(state), f(word)}; }
};
template <class State, class Word>
state_and_projected_word(State, Word) -> state_and_projected_word<State, Word>;

namespace detail {

/// How a policy gets at the query itself. Named types, not lambdas: what step, read and compose call, and what
/// attentions with other scores call, is then compiled once.
template <class Query>
struct given_query {
    const Query& query;

    const Query& operator()() const { return query; }
};
template <class Query>
given_query(const Query&) -> given_query<Query>;

template <class Queries>
struct given_query_of_step {
    const Queries& queries;
    std::size_t step;

    auto operator()() const { return part_of_step(queries, step); }
};
template <class Queries>
given_query_of_step(const Queries&, std::size_t) -> given_query_of_step<Queries>;

}  // namespace detail

}  // namespace heed
