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
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>

/// Calls the hooks of normalizers and combiners, with the defaults of the table in policy/hooks.hpp for missing hooks.
///
///     α = weigh(normalize, e, state, at)
///     c = combined(combine, α, values, at)
///
/// If tensors do not fit, they throw shape_error, which names the policy.
namespace heed::inline HEED_TARGET {

/// A normalizer's state before the first query. `blank(x)` returns a tensor of the scores' shape, filled with x.
template <class Normalize>
auto start_of(const Normalize& normalize, const auto& blank)
{
    HEED_MAY_LACK(Normalize, normalizer_start, decltype(blank));
    if constexpr (hook::start<Normalize, decltype(blank)>) {
        return normalize.start(blank);
    } else if constexpr (wraps_another<Normalize>) {
        return start_of(normalize.inner, blank);
    } else {
        return no_state{};
    }
}

/// Converts scores to weights, [B,T] -> [B,T] or [B,T,N] -> [B,T,N]. A normalizer without state may take `(scores,
/// at)`; masked positions of its scores are already -inf.
template <class Normalize>
auto weigh(const Normalize& normalize, const tensor auto& scores, const auto& state, const auto& at)
try {
    if constexpr (hook::call<Normalize, decltype(scores), decltype(state), decltype(at)>) {
        return normalize(scores, state, at);
    } else {
        static_assert(!remembers<Normalize>,
                      "heed: a normalize policy with a state must take it: declare `auto operator()(const "
                      "heed::tensor auto& scores, const auto& state, const auto& at) const`");
        using seen = decltype(at.visible(scores));
        constexpr bool callable = hook::call<Normalize, seen, decltype(at)>;
        static_assert(callable || remembers<Normalize>,
                      "heed: this normalizer cannot be called: declare its `auto operator()(const heed::tensor auto& "
                      "scores, const auto& state, const auto& at) const`, or without the state, with the `const` and "
                      "for tensors of any family");
        if constexpr (callable) {
            return normalize(at.visible(scores), at);
        } else {
            return std::remove_cvref_t<seen>(at.visible(scores));
        }
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, normalize, {detail::named("the scores", scores)});
}

/// A normalizer's state after a query with these scores and weights, [B,T] or [B,T,N].
template <class Normalize>
auto next_of(const Normalize& normalize, const tensor auto& scores, const tensor auto& weights, const auto& state,
             const auto& at)
{
    if constexpr (!remembers<Normalize>) {
        return state;
    } else if constexpr (hook::advance<Normalize, decltype(scores), decltype(weights), decltype(state), decltype(at)>) {
        return normalize.advance(scores, weights, state, at);
    } else {
        HEED_MAY_LACK(Normalize, normalizer_advance);
        return next_of(normalize.inner, scores, weights, state, at);
    }
}

/// The weights of a query and the normalizer's state after it.
template <class Weights, class Next>
struct weights_and_next {
    Weights weights;
    Next next;
};
template <class Weights, class Next>
weights_and_next(Weights, Next) -> weights_and_next<Weights, Next>;

/// Weights and next state at once, from scores [B,T] or [B,T,N]. A normalizer that computes them together declares
/// `weigh_and_advance` in addition to `operator()` and `advance`.
template <class Normalize>
auto weigh_with_next(const Normalize& normalize, const tensor auto& scores, const auto& state, const auto& at)
try {
    if constexpr (hook::weigh_and_advance<Normalize, decltype(scores), decltype(state), decltype(at)>) {
        return normalize.weigh_and_advance(scores, state, at);
    } else {
        HEED_MAY_LACK(Normalize, weigh_and_advance);
        auto weights = weigh(normalize, scores, state, at);
        auto next = next_of(normalize, scores, weights, state, at);
        return weights_and_next{std::move(weights), std::move(next)};
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, normalize, {detail::named("the scores", scores)});
}

/// The weights for the combiner, [B,T] or [B,T,N], after `weights_for_combiner` (dropout on weights).
template <class Normalize>
auto combiner_weights(const Normalize& normalize, const tensor auto& weights, const auto& at)
try {
    if constexpr (wraps_another<Normalize> && !hook::weights_for_combiner<Normalize, decltype(weights), decltype(at)>) {
        HEED_MAY_LACK(Normalize, weights_for_combiner);
        return combiner_weights(normalize.inner, weights, at);
    } else {
        return detail::call_weights_for_combiner(normalize, weights, weights, at);
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, normalize, {detail::named("the weights", weights)});
}

/// The window to which a normalizer restricts attention.
template <cuts_windows Normalize>
auto window_at(const Normalize& normalize, const auto& at, std::size_t positions)
try {
    static_assert(hook::window<Normalize, decltype(at), std::size_t&>, HEED_HOOK_window(HEED_CANNOT_CALL));
    return normalize.window(at, positions);
} catch (const shape_error& found) {
    detail::rethrow_naming(found, normalize, {detail::named("the query", at.query())});
}

/// The normalizer of the positions inside that window.
template <cuts_windows Normalize>
decltype(auto) inside_of(const Normalize& normalize, const auto& found)
{
    static_assert(hook::inner_in_window<Normalize, decltype(found)>, HEED_HOOK_inner_in_window(HEED_CANNOT_CALL));
    return normalize.inner_in_window(found);
}

/// Combines weights [B,T] or [B,T,N] and values [B,T,D] into a context [B,D], with a combiner that takes the step
/// context or with one that does not.
template <class Combine>
auto combined(const Combine& combine, const tensor auto& weights, const tensor auto& values, const auto& at)
try {
    if constexpr (hook::call<Combine, decltype(weights), decltype(values), decltype(at)>) {
        return combine(weights, values, at);
    } else if constexpr (hook::call<Combine, decltype(weights), decltype(values)>) {
        return combine(weights, values);
    } else {
        static_assert(
            hook::call<Combine, decltype(weights), decltype(values)>,
            "heed: this combiner cannot be called: declare its `auto operator()(const heed::tensor auto& "
            "weights, const heed::tensor auto& values) const`, with the `const` and for tensors of any family");
        return constant_like(values, shape_of_rank<2>{}, 0.0);
    }
} catch (const shape_error& found) {
    detail::rethrow_naming(found, combine,
                           {detail::named("the weights", weights), detail::named("the values", values)});
}

/// The combiner that computes the sum: the innermost one, if others wrap it.
const auto& summing(const auto& combine) { return combine; }
const auto& summing(const wraps_another auto& combine) { return heed::summing(combine.inner); }

/// The context [B,.] after the combiners that wrap the innermost one.
template <class Combine>
auto finished(const Combine&, const tensor auto& context, std::size_t, const auto&)
{
    return context;
}
template <wraps_another Combine>
auto finished(const Combine& combine, const tensor auto& context, std::size_t positions, const auto& at)
try {
    return combine.finish(heed::finished(combine.inner, context, positions, at), positions, at);
} catch (const shape_error& found) {
    detail::rethrow_naming(found, combine, {detail::named("the context", context)});
}

/// Can the combiners that wrap the innermost one finish the contexts of many queries at once?
template <class Combine>
consteval bool finishes_a_matrix()
{
    if constexpr (wraps_another<Combine> && detail::has_finish_matrix<Combine>)
        return heed::finishes_a_matrix<typename Combine::wraps>();
    return !wraps_another<Combine>;
}

/// The innermost combiner, if the combiners that wrap it can finish all of its contexts at once.
template <class Combine>
const auto& summing_all(const Combine& combine)
{
    return combine;
}
template <class Combine>
    requires(heed::finishes_a_matrix<Combine>())
const auto& summing_all(const Combine& combine) { return heed::summing(combine); }

/// Contexts [B,S,D] of many queries, after the combiners that wrap the innermost one.
template <class Combine, tensor Contexts>
Contexts finished_matrix(const Combine&, Contexts contexts, const auto&)
{
    return contexts;
}
template <wraps_another Combine, tensor Contexts>
    requires(heed::finishes_a_matrix<Combine>())
auto finished_matrix(const Combine& combine, Contexts contexts, const auto& queries)
try {
    return combine.finish_matrix(heed::finished_matrix(combine.inner, std::move(contexts), queries), queries);
} catch (const shape_error& found) {
    detail::rethrow_naming(found, combine, {detail::named("the contexts", contexts)});
}

namespace detail {

/// Can this combiner sum for all queries at once, with or without the position of the first query?
template <class Combine, class Weights, class Values>
concept combines_a_matrix = hook::combine_matrix<Combine, Weights, Values, const heed::score::over::queries_from&> ||
    hook::combine_matrix<Combine, Weights, Values>;

/// Contexts [B,S,D] of the weights [B·S,T] of all queries.
auto combined_matrix(const auto& combine, const tensor auto& weights, const auto& values, const auto& from)
{
    if constexpr (hook::combine_matrix<decltype(combine), decltype(weights), decltype(values), decltype(from)>) {
        return combine.combine_matrix(weights, values, from);
    } else {
        return combine.combine_matrix(weights, values);
    }
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
