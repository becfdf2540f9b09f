// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <heed/attention/concepts.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/diagnostics.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/simd/score_index.hpp>

/// What the compiler says, one sentence for each mistake: a policy lacks something of the table in
/// attention/hooks.hpp, three policies make no attention, or a call has arguments that do not fit (see
/// core/diagnostics.hpp).
namespace heed::inline HEED_TARGET {

#define HEED_SAYS_PARAMETERS(kind)                                                                                     \
    "heed: a " kind " policy must show its parameters: make it a template of their types and add `static auto "        \
    "parameters(auto& self, auto&& visit) { return mine::policy{visit(\"W\", self.W), ...}; }`, with the namespace "   \
    "before its name (inside the class the bare name means this very type)"

namespace detail {

// The constants by which policies of heed 0.2 said what traits say now.
// clang-format off
#define HEED_CONSTANTS_OF_0_2(X)                                                                                       \
    X(reads_word) X(adds_word) X(reads_context) X(reads_length) X(widens_keys) X(counts_queries) X(prepares_alike)     \
    X(never_negative) X(row_by_row) X(ignores_offset) X(asks_never_negative) X(ages) X(random) X(differentiable)       \
    X(cuts) X(commutes_with_matrices)
// clang-format on
#define HEED_IS_CONSTANT(name)                                                                                         \
    || requires { typename std::bool_constant<P::name>; }
template <class P>
concept written_for_0_2 = requires
{
    typename std::integral_constant<weight_kind, P::weights>;
}
HEED_CONSTANTS_OF_0_2(HEED_IS_CONSTANT);
#undef HEED_IS_CONSTANT
#undef HEED_CONSTANTS_OF_0_2

/// What holds for policies of all kinds.
template <class P>
consteval void check_any_policy()
{
    static_assert(!std::is_final_v<P>, "heed: a policy must not be final: heed asks a derived class for its hooks");
    static_assert(!written_for_0_2<P>,
                  "heed: since 0.3 a policy says what it is by its traits, not by constants of their own: in place of "
                  "`weights`, `reads_word`, `row_by_row` and so on declare `static constexpr heed::score_traits "
                  "traits{.weights = heed::weight_kind::per_position};` (or normalizer_traits, combiner_traits); "
                  "CHANGELOG.md has a table of the names");
    static_assert(listed_hooks<P>::exist(),
                  "heed: `using hooks = heed::hooks<...>;` of this policy lists a name that is no hook: all hooks "
                  "are in <heed/attention/hooks.hpp>");
    static_assert(listed_hooks<P>::template are_members<P>(),
                  "heed: `using hooks = heed::hooks<...>;` of this policy lists a hook that it does not have: is "
                  "the member misspelled?");
}

}  // namespace detail

/// Asserts that P is a score.
template <class P>
consteval bool check_score_policy()
{
    static_assert(detail::declares_traits<P, score_traits> || detail::written_for_0_2<P>,
                  "heed: a score policy must say what it gives scores to: add `static constexpr heed::score_traits "
                  "traits{.weights = heed::weight_kind::per_position};` (or per_dimension, per_group)");
    static_assert(detail::has_call<P>,
                  "heed: a score policy must be callable: add `auto operator()(const heed::tensor auto& query, const "
                  "heed::tensor auto& keys) const`, from [B,Q] and [B,T,A] to scores [B,T] (or [B,T,D])");
    static_assert(!hook::adapts<P> || hook::passes_state<P> ||
                      (detail::has_init_state<P> && detail::has_update_state<P>),
                  "heed: a score that wraps another and has a state of its own must have "
                  "`init_state(memory)` and `update_state(state, weights, context, at)` (is a name misspelled?); one "
                  "without derives from score::over::score_adaptor<Self, Base, score::over::base_remembers>");
    static_assert(score_traits_of<P>().weights != weight_kind::per_group || detail::has_groups<P>,
                  "heed: a score policy per group must have `std::size_t groups() const`, the number of groups "
                  "(is it misspelled?)");
    detail::check_any_policy<P>();
    static_assert(!detail::has_project<P> || detail::has_match<P>,
                  "heed: a score policy with `project` must have `match` as well (is it misspelled?): add `auto "
                  "match(const heed::tensor auto& projected, const heed::tensor auto& keys) const`, which is given "
                  "what project made of the query");
    static_assert(!detail::has_start<P> ||
                      (detail::has_match<P> && (detail::has_advance<P> || detail::has_observe_memory<P>)),
                  "heed: a score policy with `start` remembers: it must have `match(projected, keys, state)`, and "
                  "`advance(state, weights, at)` or `observe_memory(state, at)` (is a name misspelled?)");
    static_assert(
        detail::has_start<P> || !(detail::has_advance<P> || detail::has_observe_memory<P>),
        "heed: a score policy with `advance` or `observe_memory` must have `start` (is it misspelled?): add `auto "
        "start(const auto& memory) const`, what is remembered before the first query");
    static_assert(parameterised<P>, HEED_SAYS_PARAMETERS("score"));
    return true;
}
template <>
consteval bool check_score_policy<visited>()  // while somebody only looks
{
    return true;
}

/// Asserts that P is a normalizer.
template <class P>
consteval bool check_normalize_policy()
{
    static_assert(
        detail::has_call<P>,
        "heed: a normalize policy must be callable: add `auto operator()(const heed::tensor auto& scores, const "
        "auto& state, const auto& at) const` (or without the state), from scores to weights of the same shape");
    static_assert(
        !requires { P::traits; } || detail::declares_traits<P, normalizer_traits>,
        "heed: the traits of a normalize policy are `static constexpr heed::normalizer_traits traits{...};`");
    HEED_MAY_LACK(P, tile_rule);
    HEED_MAY_LACK(P, linear_rule);
    detail::check_any_policy<P>();
    static_assert(detail::has_start<P> == detail::has_advance<P> || (detail::has_advance<P> && wraps_another<P>),
                  "heed: a normalize policy that remembers must have both `start(blank)` and `advance(scores, "
                  "weights, state, at)` (is a name misspelled?)");
    static_assert(
        !wraps_another<P> || requires(const P& normalize) { normalize.inner; },
        "heed: a normalize policy with `wraps` must have the normalizer that it wraps as its member "
        "`inner` (is it misspelled?)");
    static_assert(detail::has_window<P> == detail::has_inner_in_window<P>,
                  "heed: a normalize policy that looks at a window must have both `window(at, positions)` and "
                  "`inner_in_window(found)` (is a name misspelled?)");
    static_assert(parameterised<P>, HEED_SAYS_PARAMETERS("normalize"));
    return true;
}
template <>
consteval bool check_normalize_policy<visited>()  // while somebody only looks
{
    return true;
}

/// Asserts that P is a combiner.
template <class P>
consteval bool check_combine_policy()
{
    static_assert(detail::declares_traits<P, combiner_traits> || detail::written_for_0_2<P>,
                  "heed: a combine policy must say which weights it takes: add `static constexpr heed::combiner_traits "
                  "traits{.weights = heed::weight_kind::per_position};` (or per_dimension, per_group)");
    static_assert(
        detail::has_call<P>,
        "heed: a combine policy must be callable: add `auto operator()(const heed::tensor auto& weights, const "
        "heed::tensor auto& values) const`, from weights and values [B,T,D] to contexts [B,D]");
    detail::check_any_policy<P>();
    static_assert(!wraps_another<P> || detail::has_finish<P>,
                  "heed: a combine policy that wraps another must have `finish(context, positions, at)` "
                  "(is it misspelled?)");
    static_assert(parameterised<P>, HEED_SAYS_PARAMETERS("combine"));
    return true;
}
template <>
consteval bool check_combine_policy<visited>()  // while somebody only looks
{
    return true;
}

/// Says what `map` of a state, or of a query of several parts, lacks. None at all is allowed.
template <class P>
consteval bool check_map()
{
    if constexpr (!tensor<P>) HEED_MAY_LACK(P, map, const detail::any_map&);
    return true;
}
#undef HEED_SAYS_PARAMETERS

/// Why a score, a normalizer and a combiner make no attention.
enum class composition_fault { none, no_score, no_normalizer, no_combiner, different_weights, negative_scores };

// A static assertion takes a literal, and docs/composition.md the same words.
#define HEED_SAYS_DIFFERENT_WEIGHTS                                                                                    \
    "heed: this score and this combiner do not fit: a score per position goes with combine::weighted_sum, a score "    \
    "per dimension with combine::elementwise_sum, a score per group with combine::grouped_sum; combine::attentional "  \
    "and combine::gated take one of these inside"

#define HEED_SAYS_NEGATIVE_SCORES                                                                                      \
    "heed: this normalizer divides by the sum of the scores, so that no score may be negative: it goes with "          \
    "score::kernel, or with a score whose traits say `.nonnegative = true`"

/// Whether attention<Score, Normalize, Combine> is legal, and if not why.
template <class Score, class Normalize, class Combine>
consteval composition_fault fault_of()
{
    if (detail::declares_traits<Score, score_traits> && detail::declares_traits<Combine, combiner_traits> &&
        score_traits_of<Score>().weights != combiner_traits_of<Combine>().weights)
        return composition_fault::different_weights;
    if (!scorer<Score>) return composition_fault::no_score;
    if (!normalizer<Normalize>) return composition_fault::no_normalizer;
    if (!combiner<Combine>) return composition_fault::no_combiner;
    if (normalizer_traits_of<Normalize>().requires_nonnegative && !score_traits_of<Score>().nonnegative)
        return composition_fault::negative_scores;
    return composition_fault::none;
}

namespace detail {

/// A tensor of numbers of type T with R axes, where one with others was given; T is void where any will do. Declared
/// only.
template <class T, std::size_t R>
struct meant_with_axes {
    array<std::conditional_t<std::is_void_v<T>, float, T>, R> operator()(const auto& x) const;
    template <tensor X>
        requires(std::is_void_v<T>)
    array<element_of<X>, R>
    operator()(const X& x) const;
};

/// Has a query, or each part of it, R axes? A query of another kind, a user's own, may have any.
template <std::size_t R, class Query>
consteval bool has_axes()
{
    if constexpr (tensor<Query>) {
        return rank_of<Query> == R;
    } else if constexpr (requires(const Query& query) { query.state, query.word, query.map(any_map{}); }) {
        return has_axes<R, std::remove_cvref_t<decltype(Query::state)>>() &&
               has_axes<R, std::remove_cvref_t<decltype(Query::word)>>();
    } else {
        return true;
    }
}

/// The query, where it is one: a tensor [B,Q] with R = 2, or many, [B,S,Q] with R = 3; or several such parts. T: the
/// numbers that it must have, void if any will do.
template <std::size_t R, class T, class Query>
decltype(auto) query_of_axes(const Query& query)
{
    constexpr bool lazy = lazy_expression<Query>, vector = is_vector<Query>, fits = has_axes<R, Query>();
    constexpr bool numbers_differ = tensor<Query> && !std::is_void_v<T> && !numbers_are<T, Query>;
    static_assert(!lazy, HEED_SAYS_LAZY);
    static_assert(!vector, HEED_SAYS_VECTOR);
    static_assert(
        !numbers_differ,
        "heed: the query holds numbers of another type than the memory, such as double and float: give query, "
        "annotations and parameters one type; `heed::array<float, 2> x = query;` converts");
    static_assert(fits || R != 2,
                  "heed: one query is [B,Q], a row for each sentence, and so is each part of a state_and_word: of one "
                  "sentence [1,Q]; many queries, [B,S,Q], are for `attend(memory, queries)` and `read_all`");
    static_assert(fits || R != 3,
                  "heed: attention of many queries takes queries [B,S,Q], and each part of a state_and_word so; one "
                  "query, [B,Q], is for `step` and `read`; heads that are projected, [B,H,S,d], ask a memory of heads, "
                  "`attend.on(k, v)` of [B,H,T,d]");
    constexpr bool taken = fits && !lazy && !vector && !numbers_differ;
    using meant = meant_with_axes<T, R>;
    if constexpr (!taken && requires { query.map(meant{}); }) {
        return query.map(meant{});
    } else {
        return meant_unless<taken, decltype(meant{}(query))>(query);
    }
}

/// The same for what asks this memory.
template <std::size_t R, class Memory, class Query>
decltype(auto) asked(const Memory&, const Query& query)
{
    return query_of_axes<R, typename numbers_in<std::remove_cvref_t<decltype(Memory::keys)>>::type>(query);
}

/// The memory of one attention, where it is one, and not that of several heads.
template <class Memory>
decltype(auto) memory_of_one(const Memory& memory)
{
    constexpr bool of_one = requires { memory.keys, memory.values; };
    constexpr bool of_several = requires { memory.of; };
    static_assert(of_one || !of_several,
                  "heed: this is the memory of several heads or hops: ask the mechanism whose `on` made it");
    static_assert(of_one || of_several,
                  "heed: this is no memory of an attention: give what the `on` of this mechanism made");
    if constexpr (!of_one && of_several) {
        return first_of(memory.of);
    } else {
        return (memory);
    }
}

/// Do two states hold the same tensors, of any family and rank, where they can be compared?
template <class A, class B>
concept alike_in_state = (!mappable_state<A> && !mappable_state<B>) ||
                         (mappable_state<A> && mappable_state<B> &&
                          std::is_same_v<replaced_by_visited<A>, replaced_by_visited<B>>);

#define HEED_SAYS_ANOTHER_STATE                                                                                        \
    "heed: this state is that of another mechanism: go on from what `start`, `step` or `read_all` of this one "        \
    "returned"

/// Does this combiner, or one that it wraps, need all positions?
template <class Combine>
consteval bool combiner_needs_all_positions()
{
    if constexpr (wraps_another<Combine>)
        if (combiner_needs_all_positions<typename Combine::wraps>()) return true;
    return combiner_traits_of<Combine>().needs_all_positions;
}

/// Throws heed::error if a KV cache has dropped positions that a policy needs.
template <class Attention>
void require_positions(const auto& memory)
{
    constexpr bool score = score_traits_of<decltype(Attention::score)>().needs_all_positions,
                   normalizer = normalizer_traits_of<decltype(Attention::normalize)>().needs_all_positions,
                   combiner = combiner_needs_all_positions<decltype(Attention::combine)>();
    if constexpr (score || normalizer || combiner) {
        const lengths_view dropped = memory.dropped;
        for (std::size_t b = 0; b < dropped.batch(); ++b) {
            if (dropped[b] == 0) continue;
            throw error("attention: row " + std::to_string(b) + " of this memory is without its oldest " +
                        counted(dropped[b], "position") + ", and the " +
                        (score        ? "score"
                         : normalizer ? "normalizer"
                                      : "combiner") +
                        " needs all (needs_all_positions): it reads where a position stands, or passes something on "
                        "from one to the next; keep them, and hide them by a mask, causal{} & sliding_window{n}");
        }
    }
}

/// The state, where it is one of this attention. Throws heed::error if the memory has dropped what the attention needs.
template <class Attention, class Memory, class State>
decltype(auto) own_state(const Attention&, const Memory& memory, const State& state)
{
    require_positions<Attention>(memory);
    using first = decltype(std::declval<const Attention&>().start(std::declval<const Memory&>()));
    constexpr bool own = requires
    {
        requires alike_in_state<decltype(first::normalize), decltype(State::normalize)>;
        requires alike_in_state<decltype(first::score), decltype(State::score)>;
        state.step;
    };
    static_assert(own, HEED_SAYS_ANOTHER_STATE);
    return meant_unless<own, first>(state);
}

/// The memory of several heads, where it is one.
template <class Memory>
decltype(auto) memory_of_several(const Memory& memory)
{
    constexpr bool of_several = requires { memory.of; };
    static_assert(of_several, "heed: this is no memory of several heads: give what the `on` of this mechanism made");
    return meant_unless<of_several, memory_list<std::vector<Memory>>>(memory);
}

/// The states of several heads, where they are states of so many.
template <class State>
decltype(auto) states_of_several(const auto& mechanism, const auto& memory, const State& state)
{
    constexpr bool of_several = requires { state.of; };
    static_assert(of_several, HEED_SAYS_ANOTHER_STATE);
    return meant_unless<of_several, decltype(mechanism.start(memory))>(state);
}

/// Numbers or truth values that are to be made a mask first.
template <class Mask>
inline constexpr bool raw_mask = tensor<Mask> || lazy_expression<Mask> || is_vector<Mask>;

/// What a call takes as a mask, of a user's or of a mechanism's.
template <class Mask>
concept any_mask_type = std::is_same_v<Mask, no_mask> || marked_mask<Mask> || bare_mask<Mask> || has_bias<Mask> ||
    std::is_convertible_v<const Mask&, lengths_view> || std::is_convertible_v<const Mask&, boolean_mask_view<2>> ||
    requires(const Mask& mask)
{
    requires tensor<decltype(mask.bias)>;
};

#define HEED_SAYS_RAW_MASK                                                                                             \
    "heed: this is no mask yet: of truth values (true = attend) make a boolean_mask{x}, of numbers that are added to " \
    "the scores an additive_mask{x}, of the numbers of positions lengths{...}"

/// The mask for keys of these numbers, where it is one; a function of an index becomes one.
template <class Mask, class... Keys>
decltype(auto) mask_given(const Mask& mask, const Keys&...)
{
    static_assert(!raw_mask<Mask>, HEED_SAYS_RAW_MASK);
    constexpr bool one_value = std::is_arithmetic_v<Mask>;
    static_assert(!one_value,
                  "heed: one truth value is no mask; C++ makes one of `!f` where f is a lambda: write `!mask_mod{f}`");
    constexpr bool known = any_mask_type<Mask>;
    static_assert(
        raw_mask<Mask> || one_value || known,
        "heed: this is no mask: give lengths, present, a boolean_mask, an additive_mask, causal{}, or a function "
        "of an index, `[](score_index p) { return p.key <= p.query; }`, joined by `&`, `|` and `!`");
    constexpr bool one_type = one_number_type<Keys..., bias_in<Mask>>;
    static_assert(one_type,
                  "heed: this additive mask holds numbers of another type than queries and keys, such as double "
                  "and float: give it theirs, `heed::array<float, 2> x = bias;` converts");
    constexpr bool refused = !known || !one_type;
    if constexpr (bare_mask<Mask> && !refused) {
        return mask_mod{mask};
    } else {
        return meant_unless<!refused, no_mask>(mask);
    }
}

/// What `on` cannot take, though it is likely to be given.
template <class X>
inline constexpr bool no_source = lazy_expression<X> || is_vector<X>;

/// What was meant.
const auto& source_meant(const auto& x) { return x; }
template <lazy_expression X>
auto source_meant(const X& x)
{
    static_assert(!lazy_expression<X>, HEED_SAYS_LAZY);
    return detail::as_meant<typename X::value_type>(x);
}
template <class T>
lengths source_meant(const std::vector<T>&)
{
    static_assert(!std::floating_point<T>, HEED_SAYS_VECTOR);
    static_assert(std::floating_point<T>,
                  "heed: the numbers of real positions are `lengths`: `attend.on(annotations, lengths(counts))` of a "
                  "std::vector<std::size_t>, or `lengths{7, 5}`");
    return {};
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
