// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/tensor.hpp>

/// Calls of a normalizer's hooks, with a default for each hook that it lacks. One that wraps another one declares
/// `using wraps = Inner;` and has a member `inner`, whose hooks `start`, `advance` and `thin` and whose traits stand
/// in for those that it lacks.
namespace heed {

/// A normalizer's state before the first query. `blank(x)` returns a tensor of the scores' shape, filled with x.
template <class Normalize>
auto start_of(const Normalize& normalize, const auto& blank)
{
    if constexpr (hook::start<Normalize, decltype(blank)>) {
        return normalize.start(blank);
    } else {
        HEED_MAY_LACK(Normalize, normalizer_start);
        if constexpr (wraps_another<Normalize>) {
            return start_of(normalize.inner, blank);
        } else {
            return no_state{};
        }
    }
}

/// Scores become weights. A normalizer without state may be `normalize(scores, at)`; it gets scores in which masked
/// positions are -inf already.
template <class Normalize>
auto weigh(const Normalize& normalize, const tensor auto& scores, const auto& state, const auto& at)
try {
    if constexpr (hook::call<Normalize, decltype(scores), decltype(state), decltype(at)>) {
        return normalize(scores, state, at);
    } else {
        static_assert(!remembers<Normalize>,
                      "heed: a normalize policy that remembers must take its state: declare `auto operator()(const "
                      "heed::tensor auto& scores, const auto& state, const auto& at) const`");
        using seen = decltype(at.visible(scores));
        constexpr bool callable = hook::call<Normalize, seen, decltype(at)>;
        static_assert(callable || remembers<Normalize>,
                      "heed: this normalizer cannot be called: declare its `auto operator()(const heed::tensor auto& "
                      "scores, const auto& state, const auto& at) const`, or without the state, with the `const` and "
                      "for tensors of any kind");
        if constexpr (callable) {
            return normalize(at.visible(scores), at);
        } else {
            return std::remove_cvref_t<seen>(at.visible(scores));
        }
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, normalize, {detail::named("the scores", scores)});
}

/// A normalizer's state after a query.
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

/// Both at once. A normalizer that computes them together declares `weigh_and_advance` beside `operator()` and
/// `advance`.
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
    detail::throw_whose(found, normalize, {detail::named("the scores", scores)});
}

/// The weights for the combiner, after `thin` (dropout on weights).
template <class Normalize>
auto thinned(const Normalize& normalize, const tensor auto& weights, const auto& at)
try {
    if constexpr (hook::thin<Normalize, decltype(weights), decltype(at)>) {
        return normalize.thin(weights, at);
    } else {
        HEED_MAY_LACK(Normalize, thin);
        if constexpr (wraps_another<Normalize>) {
            return thinned(normalize.inner, weights, at);
        } else {
            return weights;
        }
    }
} catch (const shape_error& found) {
    detail::throw_whose(found, normalize, {detail::named("the weights", weights)});
}

/// The window to which a normalizer restricts attention.
template <cuts_windows Normalize>
auto focus_of(const Normalize& normalize, const auto& at, std::size_t positions)
try {
    static_assert(hook::focus<Normalize, decltype(at), std::size_t&>, HEED_HOOK_focus(HEED_CANNOT_CALL));
    return normalize.focus(at, positions);
} catch (const shape_error& found) {
    detail::throw_whose(found, normalize, {detail::named("the query", at.query())});
}

/// The normalizer that weighs the positions in that window.
template <cuts_windows Normalize>
decltype(auto) inside_of(const Normalize& normalize, const auto& found)
{
    static_assert(hook::inside<Normalize, decltype(found)>, HEED_HOOK_inside(HEED_CANNOT_CALL));
    return normalize.inside(found);
}

}  // namespace heed
