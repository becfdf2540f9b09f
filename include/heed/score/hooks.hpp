// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/memory.hpp>

/// The hooks of a score, called whether it has them or not: by attention, and by a score that is laid over another one.
namespace heed::score::over {

/// e = score(query, keys), with the state if it has one.
template <class Base>
auto match(const Base& base, const auto& projected, const auto& keys, const auto& past)
{
    if constexpr (requires { base.match(projected, keys, past); }) {
        return base.match(projected, keys, past);
    } else if constexpr (requires { base.match(projected, keys); }) {
        return base.match(projected, keys);
    } else {
        return base(projected, keys);
    }
}

/// What a score remembers before the first query.
template <class Base>
auto start(const Base& base, const auto& memory)
{
    if constexpr (requires { base.start(memory); }) {
        return base.start(memory);
    } else {
        return no_past{};
    }
}

/// The state, brought up to date with what only this query tells: the word that was emitted.
template <class Base>
auto recall(const Base& base, const auto& past, const auto& at)
{
    if constexpr (requires { base.recall(past, at); }) {
        return base.recall(past, at);
    } else {
        return past;
    }
}

/// The state after the weights, and the context, are known.
/// A score whose `advance` takes it as `auto&&` may move what stays as it is instead of copying it.
template <class Base, class Past>
auto advance(const Base& base, Past&& past, const tensor auto& weights, const tensor auto& context, const auto& at)
{
    if constexpr (requires { base.advance(std::forward<Past>(past), weights, context, at); }) {
        return base.advance(std::forward<Past>(past), weights, context, at);
    } else if constexpr (requires { base.advance(std::forward<Past>(past), weights, at); }) {
        return base.advance(std::forward<Past>(past), weights, at);
    } else {
        return std::remove_cvref_t<Past>(std::forward<Past>(past));
    }
}

}  // namespace heed::score::over
