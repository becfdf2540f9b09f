// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/state.hpp>

/// Calls a score's hooks, with a default for each hook that the score does not have.
///
/// A score that wraps another (`with_coverage{additive{…}, …}`) adds a term to the projected query or to the keys, and
/// the innermost score compares them. So a kernel for the innermost score works for every score that wraps it. If
/// tensors do not fit, a call throws shape_error, which names the score.
namespace heed::inline HEED_TARGET::score::over {

/// The innermost score, which compares queries with keys.
const auto& innermost(const auto& score) { return score; }
const auto& innermost(const hook::adapts auto& score) { return over::innermost(score.base); }

/// The base's state. A score without its own state passes it on unchanged.
const auto& state_of_base_of(const auto&, const auto& state) { return state.base; }
const auto& state_of_base_of(const hook::passes_state auto&, const auto& state) { return state; }

/// The type of the base's state.
template <class Score, class State>
using state_of_base =
    std::remove_cvref_t<decltype(over::state_of_base_of(std::declval<const Score&>(), std::declval<const State&>()))>;

/// The state of the innermost score.
const auto& innermost_state(const auto&, const auto& state) { return state; }
const auto& innermost_state(const hook::adapts auto& score, const auto& state)
{
    return over::innermost_state(score.base, over::state_of_base_of(score, state));
}

/// Applies `add(score, its state, x)` for each adapting score, the outermost first. `name`: the role of x, for errors.
template <class Score, class X>
auto through_layers(const Score& score, const auto& state, X&& x, const char* name, const auto& add)
try {
    if constexpr (hook::adapts<Score>) {
        return over::through_layers(score.base, over::state_of_base_of(score, state), add(score, state, x), name, add);
    } else {
        return std::remove_cvref_t<X>(std::forward<X>(x));
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, score, {detail::named(name, x)});
}

/// The projected query plus the terms of all adapting scores: [B,A].
auto query(const auto& score, const auto& projected, const auto& state)
{
    return over::through_layers(score, state, projected, "the projected query",
                                [](const auto& layer, const auto& of_layer, const auto& x) -> decltype(auto) {
                                    return detail::call_query(layer, x, x, of_layer);
                                });
}

/// The keys plus the terms of all adapting scores: [B,T,A].
auto keys(const auto& score, const auto& plain_keys, const auto& state)
{
    return over::through_layers(score, state, plain_keys, "the keys",
                                [](const auto& layer, const auto& of_layer, const auto& x) -> decltype(auto) {
                                    return detail::call_keys(layer, x, x, of_layer);
                                });
}

/// Does any of the adapting scores add a term to the keys?
template <class Score, class Keys, class State>
consteval bool changes_keys()
{
    if constexpr (hook::adapts<Score>)
        return hook::keys<Score, const Keys&, const State&> ||
               over::changes_keys<typename Score::wraps, Keys, state_of_base<Score, State>>();
    return false;
}

/// Does `advance` of this score read the context of its weights? Yes, if the score has `advance`, unless its traits
/// have `.ignores_context = true`.
template <class Score>
consteval bool reads_context()
{
    return detail::has_advance<Score> && !score_traits_of<Score>().ignores_context;
}

/// Does this score, or a score that it wraps, read the embedding of the previous target word? Its query is then a
/// state_and_word.
template <class Score>
consteval bool reads_word()
{
    return score_traits_of<Score>().reads_word;
}

/// e = score(query, keys) of an innermost score, with its state if it has one.
template <class Score>
auto compare(const Score& score, const auto& query, const auto& keys, const auto& state)
{
    if constexpr (hook::match<Score, decltype(query), decltype(keys), decltype(state)>) {
        return score.match(query, keys, state);
    } else if constexpr (hook::match<Score, decltype(query), decltype(keys)>) {
        static_assert(!remembers<Score>, "heed: a score policy with a state must take it: declare `auto match("
                                         "const auto& projected, const auto& keys, const auto& state) const`");
        return score.match(query, keys);
    } else {
        HEED_MAY_LACK(Score, match);
        constexpr bool callable = hook::call<Score, decltype(query), decltype(keys)>;
        static_assert(callable || (detail::has_match<Score> && !detail::leaves_out<Score>("match")),
                      "heed: this score cannot be called with this query and these keys: declare its `auto "
                      "operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const`, with the "
                      "`const` and for tensors of any family, and pass a query of its type");
        if constexpr (callable) {
            return score(query, keys);
        } else {
            constexpr std::size_t rank = Score::traits.weights == weight_kind::per_position ? 2 : 3;
            return constant_like(keys, shape_of_rank<rank>{}, 0.0);
        }
    }
}

/// e = score(query, keys) of any score: adds the terms of the adapting scores, then calls the innermost score.
template <class Score>
auto match(const Score& score, const auto& projected, const auto& plain_keys, const auto& state)
{
    return over::compare(over::innermost(score), over::query(score, projected, state),
                         over::keys(score, plain_keys, state), over::innermost_state(score, state));
}

/// The keys [B,T,A] that a score computes from annotations [B,T,D], once per batch, or the annotations if it has no
/// `prepare`. `first`: the position of the first annotation, for scores that read it.
template <class Score>
auto prepare(const Score& score, const tensor auto& annotations, std::size_t first = 0)
try {
    if constexpr (hook::prepare<Score, decltype(annotations), std::size_t>) {
        return score.prepare(annotations, first);
    } else {
        return detail::call_prepare(score, annotations, annotations);
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, score, {detail::named("the annotations", annotations)});
}

/// The keys [B,t,A] of later annotations, given the earlier keys [B,T,A], for a score that carries values from key to
/// key.
template <class Score>
auto continue_keys(const Score& score, const tensor auto& keys, const tensor auto& before)
{
    if constexpr (wraps_another<Score> && !hook::continue_keys<Score, decltype(keys), decltype(before)>) {
        HEED_MAY_LACK(Score, continue_keys);
        return over::continue_keys(score.base, keys, before);
    } else {
        return detail::call_continue_keys(score, keys, keys, before);
    }
}

/// Does this score, or a score that it wraps, carry values from key to key?
template <class Score, class Keys>
consteval bool follows()
{
    if constexpr (wraps_another<Score> && !hook::continue_keys<Score, const Keys&, const Keys&>)
        return over::follows<typename Score::wraps, Keys>();
    return hook::continue_keys<Score, const Keys&, const Keys&>;
}

/// The queries that are computed at once: the position of the first, the head, and the real positions of each row.
struct queries_from {
    std::size_t first = 0, head = 0;
    lengths_view real{};
};

/// Can this score compare all queries with all keys at once?
template <class Score, class Queries, class Keys>
concept scores_a_matrix = hook::score_matrix<Score, const Queries&, const Keys&, const queries_from&> ||
    hook::score_matrix<Score, const Queries&, const Keys&>;

/// Scores [B·S,T] of all queries.
template <class Score>
auto score_matrix(const Score& score, const tensor auto& queries, const tensor auto& keys, const queries_from& from)
try {
    if constexpr (hook::score_matrix<Score, decltype(queries), decltype(keys), const queries_from&>) {
        return score.score_matrix(queries, keys, from);
    } else {
        return score.score_matrix(queries, keys);
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, score,
                           {detail::named("the projected queries", queries), detail::named("the keys", keys)});
}

/// The query in the form that a score compares: the query itself, not a copy, if the score does not project it.
template <class Score>
decltype(auto) projected(const Score& score, const auto& query)
try {
    if constexpr (hook::project<Score, decltype(query)>) {
        return score.project(query);
    } else {
        static_assert(
            !detail::has_project<Score> || detail::leaves_out<Score>("project"),
            "heed: this score has a member `project`, which heed cannot call with this query: pass a query "
            "of its type, or declare it `auto project(const heed::tensor auto& query) const`; score::with_word "
            "lets any score take a state_and_word");
        return (query);
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, score, {detail::named("the query", query)});
}

/// Calls `check_state<Past>()` of this score and of the scores that it wraps, which may reject a state of type Past by
/// a static assertion before a step on a tape reaches it.
template <class Score, class State>
consteval void check_state()
{
    if constexpr (requires { Score::template check_state<State>(); }) Score::template check_state<State>();
    if constexpr (hook::adapts<Score>) over::check_state<typename Score::wraps, state_of_base<Score, State>>();
}

/// Does this score project the words of all steps at once?
template <class Score, class Words>
consteval bool projects_words()
{
    HEED_MAY_LACK(Score, project_words, const Words&);
    return hook::project_words<Score, const Words&>;
}

/// The state before the first query.
auto start(const auto& score, const auto& memory) { return detail::call_start(score, no_score_state{}, memory); }

/// The state, updated with the word emitted before the new query. A score may also read the memory: its keys and
/// lengths.
template <class Score>
auto observe_memory(const Score& score, const auto& state, const auto& at, const auto&... memory)
try {
    if constexpr (hook::observe_memory<Score, decltype(state), decltype(at), decltype(memory)...>) {
        return score.observe_memory(state, at, memory...);
    } else {
        return detail::call_observe_memory(score, state, state, at);
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, score, {detail::named("the state", state)});
}

/// The state after a step, given its weights [B,T] or [B,T,N] and its context [B,D].
template <class Score, class State>
auto advance(const Score& score, State&& state, const tensor auto& weights, const tensor auto& context, const auto& at)
try {
    if constexpr (hook::advance<Score, State, decltype(weights), decltype(context), decltype(at)>) {
        return score.advance(std::forward<State>(state), weights, context, at);
    } else {
        return detail::call_advance(score, std::forward<State>(state), std::forward<State>(state), weights, at);
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, score,
                           {detail::named("the weights", weights), detail::named("the context", context)});
}

/// The state of a score that wraps another: the members of Own, and the base's state.
template <class Own, class Inner>
struct adaptor_state;

/// The result of `grow` for a score's own state.
template <class Score>
auto grow_own(const Score& score, const auto& state, const auto& begun, const auto& join, const auto& at)
{
    if constexpr (hook::grow<Score, decltype(state), decltype(begun), decltype(join), decltype(at)>) {
        return score.grow(state, begun, join, at);
    } else {
        HEED_MAY_LACK(Score, grow);
        return state.map(join, begun);
    }
}

/// The state after the memory has grown. `state` has the earlier positions and `at` the query. `begun` is the result of
/// `start` for the new memory. join(x, y) takes the earlier positions from x and the others from y. A score whose state
/// of a position depends on neighboring positions recomputes it.
template <class Score, class State>
auto grow(const Score& score, const State& state, const auto& begun, const auto& join, const auto& at)
{
    if constexpr (hook::passes_state<Score>) {
        return over::grow(score.base, state, begun, join, at);
    } else if constexpr (requires { score.base, state.base, state.own(); }) {
        auto own = over::grow_own(score, state.own(), begun.own(), join, at);
        auto inner = over::grow(score.base, state.base, begun.base, join, at);
        return over::adaptor_state<decltype(own), decltype(inner)>{std::move(own), std::move(inner)};
    } else {
        return over::grow_own(score, state, begun, join, at);
    }
}

/// Does the state of this score change with the weights of a step?
template <class Score>
consteval bool advances()
{
    if constexpr (hook::passes_state<Score>) return over::advances<typename Score::wraps>();
    return detail::has_advance<Score>;
}

}  // namespace heed::inline HEED_TARGET::score::over
