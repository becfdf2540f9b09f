// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/concepts.hpp>
#include <heed/core/family.hpp>
#include <heed/memory.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/shape.hpp>
#include <heed/score/hooks.hpp>
#include <heed/score/with_word.hpp>

namespace heed::score {

/// What a score remembers that reads k numbers about each position.
template <class Features, class Inner = no_past>
struct features_past {
    Features features;  // [B,T,k]
    Inner base;

    auto map(auto&& f, const auto&... others) const
    {
        return score::features_past{f(features, others.features...), base.map(f, others.base...)};
    }
};
template <class Features, class Inner>
features_past(Features, Inner) -> features_past<Features, Inner>;

}  // namespace heed::score

/// What a score that is laid over another one asks of it, whether the one below has that hook or not. A score over
/// another one keeps the lower one's state beside its own: so they can be laid over each other in any order.
namespace heed::score::over {

/// The query as the base takes it: of a query of several parts, the decoder's state if that is all the base knows.
template <class Base, class Query>
auto project(const Base& base, const Query& query)
{
    if constexpr (requires { base.project(query); }) {
        return base.project(query);
    } else if constexpr (requires { query.state; }) {
        return over::project(base, query.state);
    } else {
        return query;
    }
}

/// The decoder's state [B,Q] of a query, which may have further parts.
template <class Query>
const auto& state_of(const Query& query)
{
    if constexpr (tensor<Query>) {
        return query;
    } else {
        static_assert(
            requires { query.state; }, "heed: this score reads the decoder's state: ask with a tensor [B,Q], or with a "
                                       "query that has it as `state`, as heed::state_and_word has");
        return over::state_of(query.state);
    }
}

/// Has this query only Y y, and the embedding y no longer?
template <class Query>
inline constexpr bool word_is_projected = false;
template <class State, class Word>
inline constexpr bool word_is_projected<state_and_projected_word<State, Word>> = true;
template <class Query>
inline constexpr bool word_is_projected<const Query&> = word_is_projected<Query>;

/// One number a position: weights [B,T] as they are, of [B,T,N] the mean over the last axis.
template <tensor Weights>
auto per_position(const Weights& weights)
{
    if constexpr (rank_of<Weights> == 2) {
        return weights;
    } else {
        const double n = static_cast<double>(shape_of(weights)[2]);
        return ops::scale(ops::sum_last(weights), n > 0 ? 1 / n : 0);
    }
}

/// x [B,T] or [B,T,N] with zeros wherever a memory has nothing to attend to.
auto cleared(const tensor auto& x, const auto& memory)
{
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(memory.mask)>, no_mask>) {
        return ops::clear_padding(x, memory.real);
    } else {
        return ops::clear_hidden(x, memory.mask);
    }
}

/// The first of these that is taped; the first if none is. What a state is made beside, so that its type stays the same
/// from step to step.
template <tensor First, tensor... Rest>
const auto& taped_among(const First& first, const Rest&... rest)
{
    if constexpr (plain_tensor<First> && (!plain_tensor<Rest> || ...)) {
        return over::taped_among(rest...);
    } else {
        return first;
    }
}

}  // namespace heed::score::over
