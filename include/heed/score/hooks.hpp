// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/concepts.hpp>
#include <heed/memory.hpp>

/// The hooks of a score, called whether it has them or not: by attention, and by a score that is laid over another one.
namespace heed::score::over {

/// What every score that is laid over another one is as its base is: the kind of its weights, and what `prepare` makes
/// of the annotations. `struct with_x : over::another<Base>` remains an aggregate, whose first part is the base:
/// `with_x{base, x}`.
template <class Base>
struct another {
    Base base;

    another() = default;
    another(Base one) : base(std::move(one)) {}  // not explicit: the base needs no braces around it

    static constexpr weight_kind weights = Base::weights;

    std::size_t groups() const requires requires { base.groups(); }
    {
        return base.groups();
    }

    auto prepare(const tensor auto& annotations) const requires requires { base.prepare(annotations); }
    {
        return base.prepare(annotations);
    }
};

/// Does `advance` of this score read the context that its weights led to? A score with an `advance` is taken to read it
/// unless it says `static constexpr bool reads_context = false;`. One that is laid over another score and only hands
/// the context on says what that score says: `reads_context = over::reads_context<Base>()`.
template <class Score>
consteval bool reads_context()
{
    if constexpr (requires { Score::reads_context; }) {
        return Score::reads_context;
    } else {
        return detail::has_advance<Score> || std::is_final_v<Score>;  // the hooks of a final class cannot be seen
    }
}

/// Does this score, or one that it is laid over, read the embedding of the previous target word? Then it says `static
/// constexpr bool reads_word = true;`, and is asked with a state_and_word.
template <class Score>
consteval bool reads_word()
{
    if constexpr (requires { requires Score::reads_word; }) {
        return true;
    } else if constexpr (requires(const Score& score) { score.base; }) {
        return over::reads_word<std::remove_cvref_t<decltype(std::declval<const Score&>().base)>>();
    } else {
        return false;
    }
}

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
