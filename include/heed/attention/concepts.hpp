// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>

#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>

/// What a score, a normalizer and a combiner must have. The concepts are short; the sentences that explain what is
/// missing are in check_score_policy and its siblings, one for each requirement.
namespace heed {

/// What a score gives a weight to. A score and a combiner that disagree cannot be put together.
enum class weight_kind {
    per_position,   // one number for each source position: scores and weights [B,T]
    per_dimension,  // one for each dimension of each position: scores and weights [B,T,D]
    per_group,      // one for each group of dimensions of each position: scores and weights [B,T,G]
};

namespace detail {

template <class P>
concept declares_weights = requires
{
    {
        P::weights
        } -> std::convertible_to<weight_kind>;
};

// An operator() or match that is a template cannot be asked for without arguments; that it exists by name can.
struct call_probe {
    void operator()() const;
};
template <class P>
struct with_call_probe : P, call_probe {};
template <class P>
concept has_call = std::is_class_v<P> && !std::is_final_v<P> && !requires
{
    &with_call_probe<P>::operator();
};

// The same for the hooks: one that is misspelled would never be called, and one of a pair would be called alone.
#define HEED_HAS_HOOK(name)                                                                                            \
    struct name##_probe {                                                                                              \
        void name() const;                                                                                             \
    };                                                                                                                 \
    template <class P>                                                                                                 \
    struct with_##name##_probe : P, name##_probe {};                                                                   \
    template <class P>                                                                                                 \
    concept has_##name = std::is_class_v<P> && !std::is_final_v<P> && !requires                                        \
    {                                                                                                                  \
        &with_##name##_probe<P>::name;                                                                                 \
    }
HEED_HAS_HOOK(project);
HEED_HAS_HOOK(match);
HEED_HAS_HOOK(start);
HEED_HAS_HOOK(recall);
HEED_HAS_HOOK(advance);
#undef HEED_HAS_HOOK

template <class P>
inline constexpr bool placeholder = std::same_as<P, visited>;  // parameters() while somebody only looks

}  // namespace detail

/// e = score(query, keys): how well does this query match that source position?
template <class P>
concept scorer = detail::declares_weights<P> && detail::has_call<P> && parameterised<P>;

/// α = normalize(e, at): how do scores become weights?
template <class P>
concept normalizer = detail::has_call<P> && parameterised<P>;

/// c = combine(α, values): how do weights and values become one context?
template <class P>
concept combiner = detail::declares_weights<P> && detail::has_call<P> && parameterised<P>;

/// Says, one sentence a requirement, what P lacks to be a score.
template <class P>
consteval bool check_score_policy()
{
    if constexpr (detail::placeholder<P>) {
        return true;
    } else {
        static_assert(
            detail::declares_weights<P>,
            "heed: a score policy must say what it gives scores to: add `static constexpr heed::weight_kind weights "
            "= heed::weight_kind::per_position;` (or per_dimension, per_group)");
        static_assert(
            detail::has_call<P>,
            "heed: a score policy must be callable: add `auto operator()(const heed::tensor auto& query, const "
            "heed::tensor auto& keys) const`, from [B,Q] and [B,T,A] to scores [B,T] (or [B,T,D])");
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
        static_assert(
            parameterised<P>,
            "heed: a score policy must show its parameters: make it a template of their types and add `static auto "
            "parameters(auto& self, auto&& visit) { return mine::policy{visit(\"W\", self.W), ...}; }`, with the "
            "namespace before its name (inside the class the bare name means this very type)");
        return true;
    }
}

/// Says, one sentence a requirement, what P lacks to be a normalizer.
template <class P>
consteval bool check_normalize_policy()
{
    if constexpr (detail::placeholder<P>) {
        return true;
    } else {
        static_assert(
            detail::has_call<P>,
            "heed: a normalize policy must be callable: add `auto operator()(const heed::tensor auto& scores, const "
            "auto& at) const` (with state: scores, state, at), from scores to weights of the same shape");
        static_assert(detail::has_start<P> == detail::has_advance<P>,
                      "heed: a normalize policy that remembers must have both `start(blank)` and `advance(scores, "
                      "weights, state, at)` (is one of them misspelled?)");
        static_assert(
            parameterised<P>,
            "heed: a normalize policy must show its parameters: make it a template of their types and add `static auto "
            "parameters(auto& self, auto&& visit) { return mine::policy{visit(\"W\", self.W), ...}; }`, with the "
            "namespace before its name (inside the class the bare name means this very type)");
        return true;
    }
}

/// Says, one sentence a requirement, what P lacks to be a combiner.
template <class P>
consteval bool check_combine_policy()
{
    if constexpr (detail::placeholder<P>) {
        return true;
    } else {
        static_assert(
            detail::declares_weights<P>,
            "heed: a combine policy must say which weights it takes: add `static constexpr heed::weight_kind weights "
            "= heed::weight_kind::per_position;` (or per_dimension, per_group)");
        static_assert(
            detail::has_call<P>,
            "heed: a combine policy must be callable: add `auto operator()(const heed::tensor auto& weights, const "
            "heed::tensor auto& values) const`, from weights and values [B,T,D] to contexts [B,D]");
        static_assert(
            parameterised<P>,
            "heed: a combine policy must show its parameters: make it a template of their types and add `static auto "
            "parameters(auto& self, auto&& visit) { return mine::policy{visit(\"W\", self.W), ...}; }`, with the "
            "namespace before its name (inside the class the bare name means this very type)");
        return true;
    }
}

/// Why a score, a normalizer and a combiner make no attention.
enum class composition_fault { none, no_score, no_normalizer, no_combiner, different_weights };

// A static assertion takes a literal, and docs/composition.md the same words.
#define HEED_SAYS_DIFFERENT_WEIGHTS                                                                                    \
    "heed: this score and this combiner do not fit: a score per position goes with combine::weighted_sum, a score "    \
    "per dimension with combine::elementwise_sum, a score per group with combine::grouped_sum; combine::attentional "  \
    "and combine::gated take one of these inside"

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
    return composition_fault::none;
}

}  // namespace heed
