// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>

/// What the compiler says of a policy that lacks something, or of three that make no attention: one sentence for each
/// requirement of the table in attention/concepts.hpp.
namespace heed {

// A static assertion takes a literal.
#define HEED_CHECK_SPELLING(hook)                                                                                      \
    static_assert(detail::lists_hooks<P> || !detail::misspells_##hook<P>(),                                            \
                  "heed: this policy has a member whose name is almost `" #hook                                        \
                  "`, a hook, and heed would never use it: correct the name (or, if it is no hook, list those that "   \
                  "are: `using hooks = heed::hooks<...>;`)");
// clang-format off
#define HEED_HOOKS_OF_SCORES(X)                                                                                        \
    X(prepare) X(project) X(match) X(match_all) X(start) X(recall) X(advance) X(grow) X(project_words) X(check_past)   \
    X(reads_word) X(reads_context) X(reads_length) X(in_kernels) X(never_negative) X(prepares_alike) X(follow)         \
    X(asked_all) X(widens_keys) X(counts_queries)
#define HEED_HOOKS_OF_SCORES_OVER_OTHERS(X) X(query) X(query_all) X(keys) X(begin) X(arrive) X(after)
#define HEED_HOOKS_OF_NORMALIZERS(X)                                                                                   \
    X(start) X(advance) X(weigh_and_advance) X(thin) X(focus) X(inside) X(cuts) X(row_by_row) X(by_tiles) X(by_sums)   \
    X(asks_never_negative) X(differentiable) X(random) X(ages) X(reads_length) X(ignores_offset) X(wraps) X(in_kernels)
#define HEED_HOOKS_OF_COMBINERS(X) X(combine_all) X(finish_all) X(commutes_with_matrices) X(in_kernels)
// clang-format on
#define HEED_SAYS_PARAMETERS(kind)                                                                                     \
    "heed: a " kind " policy must show its parameters: make it a template of their types and add `static auto "        \
    "parameters(auto& self, auto&& visit) { return mine::policy{visit(\"W\", self.W), ...}; }`, with the namespace "   \
    "before its name (inside the class the bare name means this very type)"

namespace detail {

/// Requires that a policy has every hook that it lists.
template <class P>
consteval void check_listed_hooks()
{
    if constexpr (lists_hooks<P>) {
        static_assert(P::hooks::template all<P>(hook_found::missing),
                      "heed: `using hooks = heed::hooks<...>;` of this policy lists a name that is no hook: all hooks "
                      "are in <heed/attention/concepts.hpp>");
        static_assert(P::hooks::template all<P>(hook_found::present),
                      "heed: `using hooks = heed::hooks<...>;` of this policy lists a hook that it does not have: is "
                      "the member misspelled?");
    }
}

}  // namespace detail

/// Asserts that P is a score; one sentence per requirement.
template <class P>
consteval bool check_score_policy()
{
    if constexpr (!detail::placeholder<P>) {
        static_assert(
            detail::declares_weights<P>,
            "heed: a score policy must say what it gives scores to: add `static constexpr heed::weight_kind weights "
            "= heed::weight_kind::per_position;` (or per_dimension, per_group)");
        static_assert(
            detail::has_call<P>,
            "heed: a score policy must be callable: add `auto operator()(const heed::tensor auto& query, const "
            "heed::tensor auto& keys) const`, from [B,Q] and [B,T,A] to scores [B,T] (or [B,T,D])");
        HEED_HOOKS_OF_SCORES(HEED_CHECK_SPELLING)
        if constexpr (hook::laid_over<P>) {
            HEED_HOOKS_OF_SCORES_OVER_OTHERS(HEED_CHECK_SPELLING)
            static_assert(hook::hands_past_on<P> || (detail::has_begin<P> && detail::has_after<P>),
                          "heed: a score that is laid over another one and has a state of its own must have "
                          "`begin(memory)` and `after(past, weights, context, at)` (is one of them misspelled?); one "
                          "without derives from score::over::another<Self, Base, score::over::base_remembers>");
        }
        if constexpr (detail::declares_weights<P> && detail::shows_names<P>) {
            static_assert(P::weights != weight_kind::per_group || detail::has_groups<P>,
                          "heed: a score policy per group must have `std::size_t groups() const`, the number of groups "
                          "(is it misspelled?)");
        }
        detail::check_listed_hooks<P>();
        static_assert(!detail::has_project<P> || detail::has_match<P>,
                      "heed: a score policy with `project` must have `match` as well (is it misspelled?): add `auto "
                      "match(const heed::tensor auto& projected, const heed::tensor auto& keys) const`, which is given "
                      "what project made of the query");
        static_assert(!detail::has_start<P> ||
                          (detail::has_match<P> && (detail::has_advance<P> || detail::has_recall<P>)),
                      "heed: a score policy with `start` remembers: it must have `match(projected, keys, past)`, and "
                      "`advance(past, weights, at)` or `recall(past, at)` (is one of them misspelled?)");
        static_assert(
            detail::has_start<P> || !(detail::has_advance<P> || detail::has_recall<P>),
            "heed: a score policy with `advance` or `recall` must have `start` (is it misspelled?): add `auto "
            "start(const auto& memory) const`, what is remembered before the first query");
        static_assert(parameterised<P>, HEED_SAYS_PARAMETERS("score"));
    }
    return true;
}

/// Asserts that P is a normalizer; one sentence per requirement.
template <class P>
consteval bool check_normalize_policy()
{
    if constexpr (!detail::placeholder<P>) {
        static_assert(
            detail::has_call<P>,
            "heed: a normalize policy must be callable: add `auto operator()(const heed::tensor auto& scores, const "
            "auto& state, const auto& at) const` (or without the state), from scores to weights of the same shape");
        HEED_HOOKS_OF_NORMALIZERS(HEED_CHECK_SPELLING)
        static_assert(hook::by_tiles<P> || detail::may_lack<P>("by_tiles"),
                      HEED_SAYS_HOOK("by_tiles", "auto by_tiles() const"));
        static_assert(hook::by_sums<P> || detail::may_lack<P>("by_sums"),
                      HEED_SAYS_HOOK("by_sums", "heed::ops::rule_of_sums by_sums() const"));
        detail::check_listed_hooks<P>();
        static_assert(detail::has_start<P> == detail::has_advance<P> || (detail::has_advance<P> && hook::wraps<P>),
                      "heed: a normalize policy that remembers must have both `start(blank)` and `advance(scores, "
                      "weights, state, at)` (is one of them misspelled?)");
        static_assert(
            !hook::wraps<P> || requires(const P& normalize) { normalize.inner; },
            "heed: a normalize policy with `wraps` must have the normalizer that it wraps as its member "
            "`inner` (is it misspelled?)");
        static_assert(detail::has_focus<P> == detail::has_inside<P>,
                      "heed: a normalize policy that looks at a window must have both `focus(at, positions)` and "
                      "`inside(found)` (is one of them misspelled?)");
        static_assert(parameterised<P>, HEED_SAYS_PARAMETERS("normalize"));
    }
    return true;
}

/// Asserts that P is a combiner; one sentence per requirement.
template <class P>
consteval bool check_combine_policy()
{
    if constexpr (!detail::placeholder<P>) {
        static_assert(
            detail::declares_weights<P>,
            "heed: a combine policy must say which weights it takes: add `static constexpr heed::weight_kind weights "
            "= heed::weight_kind::per_position;` (or per_dimension, per_group)");
        static_assert(
            detail::has_call<P>,
            "heed: a combine policy must be callable: add `auto operator()(const heed::tensor auto& weights, const "
            "heed::tensor auto& values) const`, from weights and values [B,T,D] to contexts [B,D]");
        HEED_HOOKS_OF_COMBINERS(HEED_CHECK_SPELLING)
        detail::check_listed_hooks<P>();
        static_assert(!hook::finishes<P> || detail::has_finish<P>,
                      "heed: a combine policy that is laid over another one must have `finish(context, positions, at)` "
                      "(is it misspelled?)");
        static_assert(parameterised<P>, HEED_SAYS_PARAMETERS("combine"));
    }
    return true;
}

namespace detail {

/// Copies tensors, whatever is beside them.
struct copy_probe {
    auto operator()(const auto& x, const auto&...) const { return x; }
};

}  // namespace detail

/// Says what `map` of a state, or of a query of several parts, lacks. None at all is allowed.
template <class P>
consteval bool check_map()
{
    if constexpr (!tensor<P>) {
        HEED_CHECK_SPELLING(map)
        static_assert(hook::map<P, const detail::copy_probe&> || detail::may_lack<P>("map"),
                      HEED_SAYS_HOOK("map", "auto map(auto&& f, const auto&... others) const"));
    }
    return true;
}
#undef HEED_SAYS_PARAMETERS
#undef HEED_CHECK_SPELLING

/// Why a score, a normalizer and a combiner make no attention.
enum class composition_fault { none, no_score, no_normalizer, no_combiner, different_weights, negative_scores };

// A static assertion takes a literal, and docs/composition.md the same words.
#define HEED_SAYS_DIFFERENT_WEIGHTS                                                                                    \
    "heed: this score and this combiner do not fit: a score per position goes with combine::weighted_sum, a score "    \
    "per dimension with combine::elementwise_sum, a score per group with combine::grouped_sum; combine::attentional "  \
    "and combine::gated take one of these inside"

#define HEED_SAYS_NEGATIVE_SCORES                                                                                      \
    "heed: this normalizer divides by the sum of the scores, so that no score may be negative: it goes with "          \
    "score::kernel, or with a score that declares `static constexpr bool never_negative = true;`"

/// Whether attention<Score, Normalize, Combine> is legal, and if not why.
template <class Score, class Normalize, class Combine>
consteval composition_fault fault_of()
{
    if constexpr (detail::declares_weights<Score> && detail::declares_weights<Combine>) {
        if (Score::weights != Combine::weights) return composition_fault::different_weights;
    }
    if (!scorer<Score>) return composition_fault::no_score;
    if (!normalizer<Normalize>) return composition_fault::no_normalizer;
    if (!combiner<Combine>) return composition_fault::no_combiner;
    if constexpr (!detail::placeholder<Score>) {
        if (detail::asks_never_negative_of<Normalize>() && !detail::never_negative<Score>)
            return composition_fault::negative_scores;
    }
    return composition_fault::none;
}

}  // namespace heed
