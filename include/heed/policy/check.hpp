// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/policy/weigh.hpp>

/// static_assert messages, one for each mistake: a policy lacks a member required by the table in policy/hooks.hpp, or
/// three policies do not form an attention (see core/diagnostics.hpp).
namespace heed::inline HEED_TARGET {

#define HEED_SAYS_PARAMETERS(kind)                                                                                     \
    "heed: a " kind " policy must list its parameters: make it a template of their types and add `static auto "        \
    "parameters(auto& self, auto&& visit) { return mine::policy{visit(\"W\", self.W), ...}; }`, with the namespace "   \
    "before its name (inside the class, the bare name refers to the current instantiation)"

namespace detail {

// The constants that heed 0.2 used instead of traits.
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

/// Requirements on policies of all kinds.
template <class P>
consteval void check_any_policy()
{
    static_assert(!std::is_final_v<P>, "heed: a policy must not be final: heed detects hooks through a derived class");
    static_assert(!written_for_0_2<P>,
                  "heed: since 0.3 a policy declares its properties as traits, not as separate constants: instead of "
                  "`weights`, `reads_word`, `row_by_row` and so on declare `static constexpr heed::score_traits "
                  "traits{.weights = heed::weight_kind::per_position};` (or normalizer_traits, combiner_traits); "
                  "CHANGELOG.md has a table of the names");
    static_assert(listed_hooks<P>::exist(),
                  "heed: `using hooks = heed::hooks<...>;` of this policy lists a name that is not a hook: all hooks "
                  "are in <heed/policy/hooks.hpp>");
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
                  "heed: a score policy must declare the kind of its scores: add `static constexpr heed::score_traits "
                  "traits{.weights = heed::weight_kind::per_position};` (or per_dimension, per_group)");
    static_assert(detail::has_call<P>,
                  "heed: a score policy must be callable: add `auto operator()(const heed::tensor auto& query, const "
                  "heed::tensor auto& keys) const`, from [B,Q] and [B,T,A] to scores [B,T] (or [B,T,D])");
    static_assert(
        !hook::adapts<P> || hook::passes_state<P> || (detail::has_init_state<P> && detail::has_update_state<P>),
        "heed: a score that wraps another and has its own state must have "
        "`init_state(memory)` and `update_state(state, weights, context, at)` (is a name misspelled?); a score "
        "without a state derives from score::over::score_adaptor<Self, Base, score::over::base_remembers>");
    static_assert(score_traits_of<P>().weights != weight_kind::per_group || detail::has_groups<P>,
                  "heed: a score policy per group must have `std::size_t groups() const`, the number of groups "
                  "(is it misspelled?)");
    detail::check_any_policy<P>();
    static_assert(!detail::has_project<P> || detail::has_match<P>,
                  "heed: a score policy with `project` must have `match` as well (is it misspelled?): add `auto "
                  "match(const heed::tensor auto& projected, const heed::tensor auto& keys) const`, which takes "
                  "the result of `project`");
    static_assert(!detail::has_start<P> ||
                      (detail::has_match<P> && (detail::has_advance<P> || detail::has_observe_memory<P>)),
                  "heed: a score policy with `start` has a state: it must have `match(projected, keys, state)`, and "
                  "`advance(state, weights, at)` or `observe_memory(state, at)` (is a name misspelled?)");
    static_assert(
        detail::has_start<P> || !(detail::has_advance<P> || detail::has_observe_memory<P>),
        "heed: a score policy with `advance` or `observe_memory` must have `start` (is it misspelled?): add `auto "
        "start(const auto& memory) const`, which returns the state before the first query");
    static_assert(parameterized<P>, HEED_SAYS_PARAMETERS("score"));
    return true;
}
template <>
consteval bool check_score_policy<visited>()  // instantiated while parameters are visited
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
                  "heed: a normalize policy with a state must have both `start(blank)` and `advance(scores, "
                  "weights, state, at)` (is a name misspelled?)");
    static_assert(
        !wraps_another<P> || requires(const P& normalize) { normalize.inner; },
        "heed: a normalize policy with `wraps` must have the normalizer that it wraps as its member "
        "`inner` (is it misspelled?)");
    static_assert(detail::has_window<P> == detail::has_inner_in_window<P>,
                  "heed: a normalize policy with a window must have both `window(at, positions)` and "
                  "`inner_in_window(found)` (is a name misspelled?)");
    static_assert(parameterized<P>, HEED_SAYS_PARAMETERS("normalize"));
    return true;
}
template <>
consteval bool check_normalize_policy<visited>()  // instantiated while parameters are visited
{
    return true;
}

/// Asserts that P is a combiner.
template <class P>
consteval bool check_combine_policy()
{
    static_assert(
        detail::declares_traits<P, combiner_traits> || detail::written_for_0_2<P>,
        "heed: a combine policy must declare the kind of its weights: add `static constexpr heed::combiner_traits "
        "traits{.weights = heed::weight_kind::per_position};` (or per_dimension, per_group)");
    static_assert(
        detail::has_call<P>,
        "heed: a combine policy must be callable: add `auto operator()(const heed::tensor auto& weights, const "
        "heed::tensor auto& values) const`, from weights and values [B,T,D] to contexts [B,D]");
    detail::check_any_policy<P>();
    static_assert(!wraps_another<P> || detail::has_finish<P>,
                  "heed: a combine policy that wraps another must have `finish(context, positions, at)` "
                  "(is it misspelled?)");
    static_assert(parameterized<P>, HEED_SAYS_PARAMETERS("combine"));
    return true;
}
template <>
consteval bool check_combine_policy<visited>()  // instantiated while parameters are visited
{
    return true;
}

/// Checks `map` of a state or of a query with several parts. The type may have no `map`.
template <class P>
consteval bool check_map()
{
    if constexpr (!tensor<P>) HEED_MAY_LACK(P, map, const detail::any_map&);
    return true;
}
#undef HEED_SAYS_PARAMETERS

/// Why a score, a normalizer and a combiner do not form an attention.
enum class composition_fault {
    none,
    no_score,
    no_normalizer,
    no_combiner,
    different_weights,
    negative_scores,
    no_products
};

// A static assertion requires a literal; docs/explanation/composition.md has the same text.
#define HEED_SAYS_DIFFERENT_WEIGHTS                                                                                    \
    "heed: this score and this combiner do not fit: a score per position goes with combine::weighted_sum, a score "    \
    "per dimension with combine::elementwise_sum, a score per group with combine::grouped_sum; combine::attentional "  \
    "and combine::gated take one of these inside"

#define HEED_SAYS_NEGATIVE_SCORES                                                                                      \
    "heed: this normalizer divides by the sum of the scores, so that no score may be negative: it goes with "          \
    "score::kernel, or with a score whose traits have `.nonnegative = true`"

#define HEED_SAYS_NO_PRODUCTS                                                                                          \
    "heed: combine::delta_rule corrects values by inner products of keys: it goes with a score that is one, such as "  \
    "score::cosine, optionally in score::gated_decay, and with normalize::retention"

namespace detail {

/// Is this score an inner product, optionally with keys that decay by gates?
template <class Score>
consteval bool multiplies_keys()
{
    if constexpr (known_to_kernels_as<Score, kernels::gated_decay_score>) {
        return multiplies_keys<typename Score::wraps>();
    } else {
        return known_to_kernels_as<Score, kernels::inner_product_score>;
    }
}

}  // namespace detail

/// Whether attention<Score, Normalize, Combine> is valid, and if not, why.
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
    if (combiner_traits_of<Combine>().needs_products &&
        !(detail::multiplies_keys<Score>() && hook::linear_rule<Normalize> &&
          !normalizer_traits_of<Normalize>().requires_nonnegative))
        return composition_fault::no_products;
    return composition_fault::none;
}

namespace detail {

/// Rejects a `score_matrix` or `combine_matrix` that cannot be called.
template <class Score, class Combine, class Projected, class Memory>
consteval bool check_at_once()
{
    using keys = decltype((std::declval<const Memory&>().keys));
    using values = decltype((std::declval<const Memory&>().values));
    if constexpr (heed::score::over::scores_a_matrix<Score, Projected, std::remove_cvref_t<keys>>) {
        using scores =
            decltype(heed::score::over::score_matrix(std::declval<const Score&>(), std::declval<const Projected&>(),
                                                     std::declval<keys>(), heed::score::over::queries_from{}));
        static_assert(combines_a_matrix<Combine, const scores&, values> || !has_combine_matrix<Combine> ||
                          leaves_out<Combine>("combine_matrix"),
                      HEED_HOOK_combine_matrix(HEED_CANNOT_CALL));
    } else if constexpr (!wraps_another<Score>) {  // a wrapping score needs its base's
        HEED_MAY_LACK(Score, score_matrix);
    }
    return true;
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
