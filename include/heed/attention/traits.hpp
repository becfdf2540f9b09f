// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/attention/hooks.hpp>
#include <heed/attention/wrapping.hpp>

/// What a policy says of itself: one constant, `traits`, of a struct for each kind of policy.
///
///     static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position, .reads_word = true};
///
/// A member that is not named keeps its default; a misspelled one does not compile. A normalizer without `traits` has
/// all defaults, or those of the normalizer that it wraps.
namespace heed {

/// What a score assigns a weight to. A score and a combiner must agree.
enum class weight_kind {
    per_position,   // one number for each source position: scores and weights [B,T]
    per_dimension,  // one for each dimension of each position: scores and weights [B,T,D]
    per_group,      // one for each group of dimensions of each position: scores and weights [B,T,G]
};

/// What a score says of itself.
struct score_traits {
    weight_kind weights = weight_kind::per_position;  // of its scores; per_group asks for `std::size_t groups() const`
    bool reads_word = false;            // it reads the embedding of the previous target word: decoders give it
    bool adds_word = false;             // it adds that word to the query itself, so that score::with_word need not
    bool ignores_context = false;       // it has `advance`, which does not read the context
    bool reads_length = false;          // it reads the length of a row, and not only the positions that a query sees
    bool reads_query_position = false;  // it reads the number of the query
    bool extends_keys = false;          // its keys are wider than those that the score inside compares
    bool prepares_alike = false;        // `prepare` computes the same keys for every head
    bool nonnegative = false;           // none of its scores is negative
};

/// What a normalizer says of itself.
struct normalizer_traits {
    bool rowwise = false;               // it reads only the scores of a row and the row's length: queries are rows then
    bool shift_invariant = false;       // weights of e + c are those of e
    bool requires_nonnegative = false;  // it divides by the sum of the scores
    bool reads_length = false;          // it reads the length of a row, and not only the positions that a query sees
    bool state_decays = false;          // its state of a position changes in a step that does not show the position
    bool random = false;                // its weights depend on a row's place in the batch
    bool differentiable = true;         // its gradient is the derivative of what it computes
    bool has_window = true;             // if it has `focus`: nothing is computed outside the window
};

/// What a combiner says of itself.
struct combiner_traits {
    weight_kind weights = weight_kind::per_position;
    bool linear = false;  // contexts of h M are contexts of h, times M
};

namespace detail {

template <class P, class Traits>
concept declares_traits = std::is_same_v<std::remove_cvref_t<decltype(P::traits)>, Traits>;
struct no_change {
    constexpr void operator()(const auto&) const {}
};

}  // namespace detail

/// The traits of a score; the defaults of a type that is none.
template <class Score>
consteval score_traits score_traits_of()
{
    if constexpr (detail::declares_traits<Score, score_traits>) {
        return Score::traits;
    } else {
        return {};
    }
}

template <class Normalize>
consteval normalizer_traits normalizer_traits_of();

/// The traits of a score around Base: those of Base, after `change`. Whether scores are negative, and whether keys are
/// the same for every head, it must say for itself.
template <class Base, class Change = detail::no_change>
consteval score_traits traits_around_score(Change change = {})
{
    score_traits traits = score_traits_of<Base>();
    traits.nonnegative = traits.prepares_alike = false;
    traits.ignores_context = traits.ignores_context || !detail::has_advance<Base>;
    change(traits);
    return traits;
}

/// The traits of a normalizer around Inner: those of Inner, after `change`. Whether it reads single rows, it must say
/// for itself.
template <class Inner, class Change = detail::no_change>
consteval normalizer_traits traits_around_normalizer(Change change = {})
{
    normalizer_traits traits = normalizer_traits_of<Inner>();
    traits.rowwise = false;
    traits.has_window = true;
    change(traits);
    return traits;
}

/// The traits of a normalizer: its own, those of the normalizer that it wraps, or the defaults.
template <class Normalize>
consteval normalizer_traits normalizer_traits_of()
{
    if constexpr (detail::declares_traits<Normalize, normalizer_traits>) {
        return Normalize::traits;
    } else if constexpr (wraps_another<Normalize>) {
        return traits_around_normalizer<typename Normalize::wraps>();
    } else {
        return {};
    }
}

/// The traits of a combiner; the defaults of a type that is none.
template <class Combine>
consteval combiner_traits combiner_traits_of()
{
    if constexpr (detail::declares_traits<Combine, combiner_traits>) {
        return Combine::traits;
    } else {
        return {};
    }
}

}  // namespace heed
