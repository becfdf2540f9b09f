// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>

/// Calls of a score's hooks, with a default for each hook that it lacks.
///
/// A score that wraps another (`with_coverage{additive{…}, …}`) adds something to the projected query or to
/// the keys, and the innermost score compares. So a kernel for the innermost score serves every score over it.
namespace heed::score::over {

/// The innermost score: the one that compares.
template <class Score>
const auto& innermost(const Score& score)
{
    return detail::below(score, []<class Layer>(const Layer&) { return std::bool_constant<hook::adapts<Layer>>{}; });
}

/// The base's state. A score without one of its own passes it on.
const auto& past_of_base(const auto&, const auto& past) { return past.base; }
const auto& past_of_base(const hook::passes_state auto&, const auto& past) { return past; }

/// The type of the base's state.
template <class Score, class Past>
using base_past =
    std::remove_cvref_t<decltype(over::past_of_base(std::declval<const Score&>(), std::declval<const Past&>()))>;

/// The state of the innermost score.
const auto& innermost_past(const auto&, const auto& past) { return past; }
const auto& innermost_past(const hook::adapts auto& score, const auto& past)
{
    return over::innermost_past(score.base, over::past_of_base(score, past));
}

/// x after what each adapting score makes of it, the outermost first: `add(score, its state, x)`. `name`: what x is,
/// for errors.
template <class Score, class X>
auto through_layers(const Score& score, const auto& past, X&& x, const char* name, const auto& add)
try {
    if constexpr (hook::adapts<Score>) {
        return over::through_layers(score.base, over::past_of_base(score, past), add(score, past, x), name, add);
    } else {
        return std::remove_cvref_t<X>(std::forward<X>(x));
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, score, {detail::named(name, x)});
}

/// The projected query with what each adapting score adds to it: [B,A].
auto query(const auto& score, const auto& projected, const auto& past)
{
    return over::through_layers(score, past, projected, "the projected query",
                                [](const auto& layer, const auto& state, const auto& x) -> decltype(auto) {
                                    return detail::call_query(layer, x, x, state);
                                });
}

/// The keys with what each adapting score adds to them: [B,T,A].
auto keys(const auto& score, const auto& plain_keys, const auto& past)
{
    return over::through_layers(score, past, plain_keys, "the keys",
                                [](const auto& layer, const auto& state, const auto& x) -> decltype(auto) {
                                    return detail::call_keys(layer, x, x, state);
                                });
}

/// Does any score on the way add something to the keys?
template <class Score, class Keys, class Past>
consteval bool changes_keys()
{
    if constexpr (hook::adapts<Score>)
        return hook::keys<Score, const Keys&, const Past&> ||
               over::changes_keys<typename Score::wraps, Keys, base_past<Score, Past>>();
    return false;
}

/// Does `advance` of this score read the context that its weights produced? Yes, if it has an `advance`, unless its
/// traits say `.ignores_context = true`.
template <class Score>
consteval bool reads_context()
{
    return detail::has_advance<Score> && !score_traits_of<Score>().ignores_context;
}

/// Does this score, or one that it wraps, read the embedding of the previous target word? Its query is a
/// state_and_word.
template <class Score>
consteval bool reads_word()
{
    return score_traits_of<Score>().reads_word;
}

/// e = score(query, keys) of an innermost score, with its state if it has one.
template <class Score>
auto compare(const Score& score, const auto& query, const auto& keys, const auto& past)
{
    if constexpr (hook::match<Score, decltype(query), decltype(keys), decltype(past)>) {
        return score.match(query, keys, past);
    } else if constexpr (hook::match<Score, decltype(query), decltype(keys)>) {
        static_assert(!remembers<Score>, "heed: a score policy that remembers must take its state: declare `auto match("
                                         "const auto& projected, const auto& keys, const auto& past) const`");
        return score.match(query, keys);
    } else {
        HEED_MAY_LACK(Score, match);
        constexpr bool callable = hook::call<Score, decltype(query), decltype(keys)>;
        static_assert(callable || (detail::has_match<Score> && !detail::leaves_out<Score>("match")),
                      "heed: this score cannot be called with this query and these keys: declare its `auto "
                      "operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const`, with the "
                      "`const` and for tensors of any kind, and ask with what it takes");
        if constexpr (callable) {
            return score(query, keys);
        } else {
            constexpr std::size_t rank = Score::traits.weights == weight_kind::per_position ? 2 : 3;
            return constant_like(keys, shape_of_rank<rank>{}, 0.0);
        }
    }
}

/// e = score(query, keys) of any score: the additions on the way, then the innermost score.
template <class Score>
auto match(const Score& score, const auto& projected, const auto& plain_keys, const auto& past)
{
    return over::compare(over::innermost(score), over::query(score, projected, past),
                         over::keys(score, plain_keys, past), over::innermost_past(score, past));
}

/// The keys that a score makes of annotations, once per batch; the annotations themselves, if it prepares nothing.
/// `first`: the position of the first annotation, for scores that read it.
template <class Score>
auto prepare(const Score& score, const tensor auto& annotations, std::size_t first = 0)
try {
    if constexpr (hook::prepare<Score, decltype(annotations), std::size_t>) {
        return score.prepare(annotations, first);
    } else {
        return detail::call_prepare(score, annotations, annotations);
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, score, {detail::named("the annotations", annotations)});
}

/// The keys of later annotations, after those before them, of a score that carries something on from key to key.
template <class Score>
auto follow(const Score& score, const tensor auto& keys, const tensor auto& before)
{
    if constexpr (wraps_another<Score> && !hook::follow<Score, decltype(keys), decltype(before)>) {
        HEED_MAY_LACK(Score, follow);
        return over::follow(score.base, keys, before);
    } else {
        return detail::call_follow(score, keys, keys, before);
    }
}

/// Does this score, or one that it wraps, carry something on from key to key?
template <class Score, class Keys>
consteval bool follows()
{
    if constexpr (wraps_another<Score> && !hook::follow<Score, const Keys&, const Keys&>)
        return over::follows<typename Score::wraps, Keys>();
    return hook::follow<Score, const Keys&, const Keys&>;
}

/// Which queries are answered at once: the number of the first, the head that asks, the positions of each row, and the
/// number of the first sentence.
struct queries_from {
    std::size_t first = 0, head = 0;
    lengths_view real{};
    std::size_t sentence = 0;
};

/// Can this score compare all queries with all keys at once?
template <class Score, class Queries, class Keys>
concept matches_all = hook::match_all<Score, const Queries&, const Keys&, const queries_from&> ||
    hook::match_all<Score, const Queries&, const Keys&>;

/// Scores [B·S,T] of all queries.
template <class Score>
auto match_all(const Score& score, const tensor auto& queries, const tensor auto& keys, const queries_from& from)
try {
    if constexpr (hook::match_all<Score, decltype(queries), decltype(keys), const queries_from&>) {
        return score.match_all(queries, keys, from);
    } else {
        return score.match_all(queries, keys);
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, score,
                        {detail::named("the projected queries", queries), detail::named("the keys", keys)});
}

/// The query as a score compares it: the query itself, not a copy, if the score makes nothing of it.
template <class Score>
decltype(auto) projected(const Score& score, const auto& query)
try {
    if constexpr (hook::project<Score, decltype(query)>) {
        return score.project(query);
    } else {
        static_assert(
            !detail::has_project<Score> || detail::leaves_out<Score>("project"),
            "heed: this score has a member `project`, which heed cannot call with this query: ask with what it takes, "
            "or declare it `auto project(const heed::tensor auto& query) const`; score::with_word lets any "
            "score take a state_and_word");
        return (query);
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, score, {detail::named("the query", query)});
}

/// Lets this score, and those that it wraps, refuse a state of type Past by a static assertion in
/// `check_past<Past>()`, before a step on a tape brings the state there.
template <class Score, class Past>
consteval bool check_past()
{
    if constexpr (requires { Score::template check_past<Past>(); }) Score::template check_past<Past>();
    if constexpr (hook::adapts<Score>) over::check_past<typename Score::wraps, base_past<Score, Past>>();
    return true;
}

/// Does this score project the words of all steps at once?
template <class Score, class Words>
consteval bool projects_words()
{
    HEED_MAY_LACK(Score, project_words, const Words&);
    return hook::project_words<Score, const Words&>;
}

/// The state before the first query.
auto start(const auto& score, const auto& memory) { return detail::call_start(score, no_past{}, memory); }

/// The state, updated with what only the new query tells, the word that was emitted; by a score that also reads the
/// memory, its keys and lengths, or by one that does not.
template <class Score>
auto recall(const Score& score, const auto& past, const auto& at, const auto&... memory)
try {
    if constexpr (hook::recall<Score, decltype(past), decltype(at), decltype(memory)...>) {
        return score.recall(past, at, memory...);
    } else {
        return detail::call_recall(score, past, past, at);
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, score, {detail::named("the state", past)});
}

/// The state after a step, given its weights and its context.
template <class Score, class Past>
auto advance(const Score& score, Past&& past, const tensor auto& weights, const tensor auto& context, const auto& at)
try {
    if constexpr (hook::advance<Score, Past, decltype(weights), decltype(context), decltype(at)>) {
        return score.advance(std::forward<Past>(past), weights, context, at);
    } else {
        return detail::call_advance(score, std::forward<Past>(past), std::forward<Past>(past), weights, at);
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, score, {detail::named("the weights", weights), detail::named("the context", context)});
}

/// The state of a score that wraps another: the members of Own, and the base's state.
template <class Own, class Inner>
struct past;

/// The part of `grow` that is a score's own.
template <class Score>
auto grow_own(const Score& score, const auto& past, const auto& begun, const auto& join, const auto& at)
{
    if constexpr (hook::grow<Score, decltype(past), decltype(begun), decltype(join), decltype(at)>) {
        return score.grow(past, begun, join, at);
    } else {
        HEED_MAY_LACK(Score, grow);
        return past.map(join, begun);
    }
}

/// The state of a memory that has grown: `past` remembers some positions and knows the query at `at`, `begun` is the
/// state that `start` makes for the memory, and join(x, y) has the positions of x that are remembered, and the others
/// of y. A score whose state of a position depends on its neighbours makes it anew.
template <class Score, class Past>
auto grow(const Score& score, const Past& past, const auto& begun, const auto& join, const auto& at)
{
    if constexpr (hook::passes_state<Score>) {
        return over::grow(score.base, past, begun, join, at);
    } else if constexpr (requires { score.base, past.base, past.own(); }) {
        auto own = over::grow_own(score, past.own(), begun.own(), join, at);
        auto inner = over::grow(score.base, past.base, begun.base, join, at);
        return over::past<decltype(own), decltype(inner)>{std::move(own), std::move(inner)};
    } else {
        return over::grow_own(score, past, begun, join, at);
    }
}

/// Does the state of this score change with the weights of a step?
template <class Score>
consteval bool advances()
{
    if constexpr (hook::passes_state<Score>) return over::advances<typename Score::wraps>();
    return detail::has_advance<Score>;
}

}  // namespace heed::score::over
