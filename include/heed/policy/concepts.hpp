// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>
#include <heed/policy/hooks.hpp>

/// The members that a score, a normalizer and a combiner must have. Beside them a policy may have `traits`
/// (below), hooks (policy/hooks.hpp), and types:
///
/// Score         traits, operator()(query, keys), parameters(self, visit)
/// Normalizer    operator()(scores, state, at) or (scores, at), parameters(self, visit)
/// Combiner      traits, operator()(weights, values) or (weights, values, at), parameters(self, visit)
///
/// Types: `kernel_tag`, the name by which a step_kernel knows the policy, with `kernel_tag::in_tiles` for tiles;
/// `wraps` of a policy around another. policy/check.hpp explains what is missing, in a sentence each.
///
/// What a policy says of itself: one constant, `traits`, of a struct for each kind of policy.
///
///     static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position, .reads_word = true};
///
/// A member that is not named keeps its default; a misspelled one does not compile. A normalizer without `traits` has
/// all defaults, or those of the normalizer that it wraps.
///
/// Policies that wrap another of their kind. Each declares `using wraps = Inner;` and holds that policy as its member
/// `inner`; a score holds it as `base`, the name that files of weights have for it.
///
/// A wrapping score either compares by itself, as `forgetting` does, or adapts: it adds to queries, keys and states,
/// and the score inside compares, by its kernel if it has one. Such a score derives from score::over::score_adaptor.
namespace heed::inline HEED_TARGET {

/// Does this policy wrap another?
template <class P>
concept wraps_another = requires
{
    typename P::wraps;
};

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
    bool needs_all_positions = false;   // it reads where a position stands, or passes something on from one to the next
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
    bool has_window = true;             // if it has `window`: nothing is computed outside the window
    bool needs_all_positions = false;   // it reads where a position stands, or passes something on from one to the next
};

/// What a combiner says of itself.
struct combiner_traits {
    weight_kind weights = weight_kind::per_position;
    bool linear = false;               // contexts of h M are contexts of h, times M
    bool needs_all_positions = false;  // it reads where a position stands
};

namespace detail {

template <class P, class Traits>
concept declares_traits = std::is_same_v<std::remove_cvref_t<decltype(P::traits)>, Traits>;
struct no_change {
    constexpr void operator()(const auto&) const {}
};

/// The traits that P declares, or the defaults.
template <class P, class Traits>
consteval Traits declared_traits()
{
    if constexpr (declares_traits<P, Traits>) return P::traits;
    return {};
}

}  // namespace detail

/// The traits of a score; the defaults of a type that is none.
template <class Score>
consteval score_traits score_traits_of()
{
    return detail::declared_traits<Score, score_traits>();
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
    if constexpr (wraps_another<Normalize> && !detail::declares_traits<Normalize, normalizer_traits>)
        return traits_around_normalizer<typename Normalize::wraps>();
    return detail::declared_traits<Normalize, normalizer_traits>();
}

/// The traits of a combiner, which needs all positions if the one that it wraps does; the defaults of a type that is
/// none.
template <class Combine>
consteval combiner_traits combiner_traits_of()
{
    combiner_traits traits = detail::declared_traits<Combine, combiner_traits>();
    if constexpr (wraps_another<Combine>)
        traits.needs_all_positions |= combiner_traits_of<typename Combine::wraps>().needs_all_positions;
    return traits;
}

namespace hook {

/// Does this score adapt another: does it add to queries, keys and states, and the score inside compares?
template <class P>
concept adapts = wraps_another<P> && requires
{
    requires P::adapts;
};

/// Has a score that wraps another no state of its own?
template <class P>
concept passes_state = wraps_another<P> && requires
{
    requires P::passes_state;
};

}  // namespace hook

namespace detail {

template <class P>
inline constexpr bool placeholder = std::same_as<P, visited>;  // parameters() while somebody only looks

struct blank_probe {
    auto operator()(std::convertible_to<double> auto) const { return array<double, 2>(); }
};

template <class P>
consteval bool remembers_of()
{
    if constexpr (hook::passes_state<P>) {
        return remembers_of<typename P::wraps>();
    } else if constexpr (declares_traits<P, score_traits>) {
        return has_start<P>;
    } else if constexpr (hook::start<P, blank_probe>) {
        return !std::is_empty_v<decltype(std::declval<const P&>().start(blank_probe{}))>;
    } else if constexpr (wraps_another<P>) {
        return remembers_of<typename P::wraps>();
    }
    return false;
}

// Whose tensor does not fit: an operation deep inside of a policy knows that x [2,5] does not fit a matrix [6,4]; where
// attention calls the policy, in a function-try-block, it is known that x was the query:
//
//     score::additive: the query [2,5] does not fit W [6,4], U [8,4], v [4] (linear: …)

/// A tensor, and what it is there: "the query". Of what is no tensor, the name alone.
struct named : named_shape {
    template <class X>
    [[gnu::noinline, gnu::cold]] named(const char* what, const X& x)
    {
        if constexpr (tensor<X>) {
            const auto extents = shape_of(x);
            named_shape::operator=({what, extents.data(), extents.size()});
        } else {
            named_shape::operator=({what, nullptr, 0});
        }
    }
};

/// Throws an error that names the policy, the first of these tensors, and what it should fit: the others and the
/// policy's own parameters; unless `found` names a policy already.
template <class Policy>
[[noreturn, gnu::noinline, gnu::cold]] void rethrow_naming(const shape_error& found, const Policy& policy,
                                                           std::initializer_list<named_shape> those)
{
    named_shapes tensors(those);
    if constexpr (!std::is_empty_v<Policy> && parameterised<Policy>)
        (void)Policy::parameters(const_cast<Policy&>(policy), looking_visitor{&tensors});
    throw_named_shape_error(found, __PRETTY_FUNCTION__, tensors);
}

}  // namespace detail

/// Has this score or normalizer state: does it remember anything from one query to the next?
template <class P>
concept remembers = detail::remembers_of<P>();

/// Does this normalizer restrict attention to a window, outside of which nothing is computed? It has `window` and
/// `inner_in_window`, and its traits do not rule a window out.
template <class P>
concept cuts_windows = detail::has_window<P> &&(normalizer_traits_of<P>().has_window);

/// Does this normalizer read only the scores of a row and the row's length? Then each query of each sentence is a row,
/// and many queries are answered at once.
template <class P>
concept rowwise = (normalizer_traits_of<P>().rowwise);

/// Does this normalizer draw random numbers? Its results then depend on a row's place in the batch.
template <class P>
concept draws = (normalizer_traits_of<P>().random);

/// e = score(query, keys): how well does this query match that source position?
template <class P>
concept scorer = detail::declares_traits<P, score_traits> && detail::has_call<P> && parameterised<P>;

/// α = normalize(e, at): how do scores become weights?
template <class P>
concept normalizer = detail::has_call<P> && parameterised<P>;

/// c = combine(α, values): how do weights and values become one context?
template <class P>
concept combiner = detail::declares_traits<P, combiner_traits> && detail::has_call<P> && parameterised<P>;

}  // namespace heed::inline HEED_TARGET
