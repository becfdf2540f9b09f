// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/sums.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>

namespace heed::inline HEED_TARGET::score {

/// The state of a score that keeps k numbers per position.
template <class Features>
struct position_features {
    Features features;  // [B,T,k]

    auto map(auto&& f, const auto&... others) const
    {
        return score::position_features{f(features, others.features...)};
    }
};
template <class Features>
position_features(Features) -> position_features<Features>;

/// The state of a score that keeps k numbers per row: a window cuts positions and leaves it unchanged.
template <class State>
struct row_state {
    State state;  // [B,k]

    auto map(auto&& f, const auto&... others) const
    {
        if constexpr (spares_rows<decltype(f)>) {
            return *this;
        } else {
            return score::row_state{f(state, others.state...)};
        }
    }
};
template <class State>
row_state(State) -> row_state<State>;

/// The state of a score that keeps the coverage of each position, and a constant of the position.
template <class Coverage, class Known>
struct coverage_and_known {
    Coverage coverage;  // [B,T] or [B,T,N]
    Known known;        // [B,T] or [B,T,K], the same at each step

    auto map(auto&& f, const auto&... others) const
    {
        return score::coverage_and_known{f(coverage, others.coverage...), f(known, others.known...)};
    }
};
template <class Coverage, class Known>
coverage_and_known(Coverage, Known) -> coverage_and_known<Coverage, Known>;

}  // namespace heed::inline HEED_TARGET::score

/// Common parts of scores that wrap another. Such a score stores its base's state next to its own, so that scores can
/// be nested in any order.
namespace heed::inline HEED_TARGET::score::over {

/// The state of a score that wraps another: the members of Own, and the base's state.
template <class Own, class Inner>
struct adaptor_state : Own {
    static constexpr bool holds_no_tensors = detail::holds_no_tensors<Own> && detail::holds_no_tensors<Inner>;

    HEED_NO_UNIQUE_ADDRESS Inner base;

    adaptor_state() = default;
    adaptor_state(Own mine, Inner inner) : Own(std::move(mine)), base(std::move(inner)) {}

    const Own& own() const { return *this; }  // without the base's state

    auto map(auto&& f, const auto&... others) const
    {
        auto own = Own::map(f, others...);
        auto inner = base.map(f, others.base...);
        return over::adaptor_state<decltype(own), decltype(inner)>(std::move(own), std::move(inner));
    }
};

/// The projected query. If the query has several parts and the score takes one tensor, the decoder's state is
/// projected.
template <class Score, class Query>
auto project(const Score& score, const Query& query)
{
    if constexpr (!hook::project<Score, decltype(query)> && requires { query.state; }) {
        return over::project(score, query.state);
    } else {
        return over::projected(score, query);
    }
}

/// Tag: only the base has a state.
struct base_remembers {};

/// Base class of scores that wrap another one, `base`, and store its state next to their own. It may have these
/// members, each for tensors of any family:
///
///     init_state(memory)                          its own state before the first query, a struct with `map`
///     observe_query(state, at)                    its state once the query and its word have arrived; or
///     observe_query(state, at, memory)                if it reads the memory's lengths
///     update_state(state, weights, context, at)   its state after a step
///
/// The kind of weights, key preparation and query projection are the base's.
template <class Self, class Base, class Memory = void>
struct around {
    using wraps = Base;
    Base base;

    around() = default;
    around(Base one) : base(std::move(one)) {}  // not explicit, so that the base needs no braces

    static constexpr bool passes_state = std::is_same_v<Memory, over::base_remembers>;
    static constexpr score_traits traits = traits_around_score<Base>();

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const  // [B,T,D] -> [B,T,A]
    {
        return over::prepare(base, annotations, first);
    }

    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto& memory) const
    {
        if constexpr (passes_state) {
            return over::start(base, memory);
        } else {
            return beside_base(self().init_state(memory), memory);
        }
    }

    auto observe_memory(const auto& now, const auto& at, const auto&... memory) const
    {
        if constexpr (passes_state) {
            return over::observe_memory(base, now, at, memory...);
        } else {
            auto inner = over::observe_memory(base, now.base, at, memory...);
            if constexpr (hook::observe_query<Self, decltype(now), decltype(at), decltype(memory)...>) {
                return joined(self().observe_query(now, at, memory...), std::move(inner));
            } else if constexpr (hook::observe_query<Self, decltype(now), decltype(at)>) {
                return joined(self().observe_query(now, at), std::move(inner));
            } else {
                HEED_MAY_LACK(Self, observe_query);
                return joined(now.own(), std::move(inner));
            }
        }
    }

    template <class State>
    auto advance(State&& now, const tensor auto& seen, const tensor auto& context, const auto& at) const
    {
        if constexpr (passes_state) {
            return over::advance(base, std::forward<State>(now), seen, context, at);
        } else {
            auto inner = over::advance(base, now.base, seen, context, at);
            return joined(self().update_state(std::forward<State>(now), seen, context, at), std::move(inner));
        }
    }

    template <class State = no_score_state>
        requires(passes_state || !std::is_same_v<State, no_score_state>)
    auto operator()(const auto& query, const tensor auto& plain_keys, const State& now = {}) const  // [B,T]
    {
        return self().match(self().project(query), plain_keys, now);
    }

protected:
    const Self& self() const { return static_cast<const Self&>(*this); }

    /// This score's own state, joined with the base's state before the first query.
    auto beside_base(auto own, const auto& memory) const { return joined(std::move(own), over::start(base, memory)); }

    template <class Own, class Inner>
    static over::adaptor_state<Own, Inner> joined(Own own, Inner inner)
    {
        return {std::move(own), std::move(inner)};
    }
};

/// Base class of scores that wrap another: `struct with_x : over::score_adaptor<with_x<Base, …>, Base>` remains an
/// aggregate whose first member is the base, `with_x{base, x}`. In addition to the members of over::around it may have:
///
///     keys(keys, state)                       the keys [B,T,A] plus the term of this score
///     query(projected, state)                 the projected query [B,A] plus the term of this score
///
/// A score without its own state is an over::score_adaptor<Self, Base, over::base_remembers>. The base compares.
template <class Self, class Base, class Memory = void>
struct score_adaptor : over::around<Self, Base, Memory> {
    using over::around<Self, Base, Memory>::around;
    static constexpr bool adapts = true;
    static_assert(!score_traits_of<Base>().extends_keys,
                  "heed: this score adds to keys or queries, and its base's keys have extra columns: wrap it in "
                  "score::forgetting or score::gated_decay instead");

    std::size_t groups() const { return this->base.groups(); }

    template <class State = no_score_state>
        requires(score_adaptor::passes_state || !std::is_same_v<State, no_score_state>)
    auto match(const tensor auto& projected, const tensor auto& plain_keys, const State& now = {}) const
    {
        return over::match(this->self(), projected, plain_keys, now);
    }
};

/// Is the query's word the product Y y instead of the embedding y?
template <class Query>
inline constexpr bool word_is_projected = false;
template <class State, class Word>
inline constexpr bool word_is_projected<state_and_projected_word<State, Word>> = true;

/// The word of the query, for a score that reads it: an embedding [B,E].
template <class Query>
const auto& word_of(const Query& query)
{
    static_assert(
        requires { query.word; }, "heed: this score reads the word that was emitted last (`reads_word`): give "
                                  "heed::state_and_word{state, word}");
    static_assert(!word_is_projected<Query>,
                  "heed: this score reads the embedding of the word that was emitted last (`reads_word`), and a "
                  "state_and_projected_word has only Y y: give heed::state_and_word{state, word}");
    return query.word;
}

/// One number per position: weights [B,T] unchanged, the mean of [B,T,N] over the last axis.
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

/// x [B,T] or [B,T,N] with zeros at positions that are masked in the memory.
auto cleared(const tensor auto& x, const auto& memory)
{
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(memory.mask)>, no_mask>) {
        return ops::clear_padding(x, memory.real);
    } else {
        return ops::zero_masked(x, memory.mask);
    }
}

/// The values [B,T,D] of a memory; for a KV cache (noncontiguous rows), a copy.
decltype(auto) values_in_one_piece(const auto& memory)
{
    if constexpr (is_cache<std::remove_cvref_t<decltype(memory.values)>>) {
        return gathered(memory.values);
    } else {
        return (memory.values);
    }
}

using heed::detail::state_of;
using heed::detail::taped_among;

}  // namespace heed::inline HEED_TARGET::score::over
