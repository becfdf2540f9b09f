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

/// The members that a score, a normalizer and a combiner must have. In addition, a policy may have `traits` (below),
/// hooks (policy/hooks.hpp), and types:
///
/// Score         traits, operator()(query, keys), parameters(self, visit)
/// Normalizer    operator()(scores, state, at) or (scores, at), parameters(self, visit)
/// Combiner      traits, operator()(weights, values) or (weights, values, at), parameters(self, visit)
///
/// Types: `kernel_tag`, the name by which a step_kernel identifies the policy, with `kernel_tag::in_tiles` for tiles;
/// `wraps` in a policy that wraps another. policy/check.hpp reports each missing member in one sentence.
///
/// A policy declares its properties in one constant, `traits`, of a struct type for each kind of policy.
///
///     static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position, .reads_word = true};
///
/// An omitted member keeps its default; a misspelled one does not compile. A normalizer without `traits` has the
/// defaults, or the traits of the normalizer that it wraps.
///
/// A policy that wraps another of its kind declares `using wraps = Inner;` and stores that policy as its member
/// `inner`; a score stores it as `base`, its name in weight files.
///
/// A wrapping score either compares queries with keys itself, as `forgetting` does, or adapts: it adds to queries, keys
/// and states, and the wrapped score compares them, by its kernel if it has one. An adapting score derives from
/// score::over::score_adaptor.
namespace heed::inline HEED_TARGET {

/// Does this policy wrap another?
template <class P>
concept wraps_another = requires
{
    typename P::wraps;
};

/// The kind of a score's weights. A score and a combiner must agree.
enum class weight_kind {
    per_position,   // one number per source position: scores and weights [B,T]
    per_dimension,  // one per dimension of each position: scores and weights [B,T,D]
    per_group,      // one per group of dimensions of each position: scores and weights [B,T,G]
};

/// The properties of a score.
struct score_traits {
    weight_kind weights = weight_kind::per_position;  // of its scores; per_group requires `std::size_t groups() const`
    bool reads_word = false;            // it reads the embedding of the previous target word, which decoders pass
    bool adds_word = false;             // it adds that word to the query itself, so that score::with_word does not
    bool ignores_context = false;       // it has `advance`, which does not read the context
    bool reads_length = false;          // it reads the length of a row, not only the positions that a query sees
    bool reads_query_position = false;  // it reads the position of the query
    bool extends_keys = false;          // its keys are wider than the keys that the wrapped score compares
    bool prepares_alike = false;        // `prepare` computes the same keys for every head
    bool nonnegative = false;           // none of its scores is negative
    bool needs_all_positions = false;   // it reads the index of a position, or carries values between positions
};

/// The properties of a normalizer.
struct normalizer_traits {
    bool rowwise = false;               // it reads only the scores of a row and its length: each query is then a row
    bool shift_invariant = false;       // weights of e + c equal those of e
    bool requires_nonnegative = false;  // it divides by the sum of the scores
    bool reads_length = false;          // it reads the length of a row, not only the positions that a query sees
    bool state_decays = false;          // its state of a position changes even in steps that mask the position
    bool random = false;                // its weights depend on the index of a row in the batch
    bool differentiable = true;         // its gradient is the derivative of its result
    bool has_window = true;             // if it has `window`: nothing is computed outside the window
    bool needs_all_positions = false;   // it reads the index of a position, or carries values between positions
};

/// The properties of a combiner.
struct combiner_traits {
    weight_kind weights = weight_kind::per_position;
    bool linear = false;               // the contexts of h M are the contexts of h, times M
    bool needs_all_positions = false;  // it reads the index of a position
    bool needs_products = false;       // its values follow from inner products of keys: see combine::delta_rule
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

/// The traits of a score; the defaults for a type that is not a score.
template <class Score>
consteval score_traits score_traits_of()
{
    return detail::declared_traits<Score, score_traits>();
}

template <class Normalize>
consteval normalizer_traits normalizer_traits_of();

/// The traits of a score that wraps Base: those of Base, after `change`. It must declare itself whether its scores are
/// nonnegative and whether its keys are the same for every head.
template <class Base, class Change = detail::no_change>
consteval score_traits traits_around_score(Change change = {})
{
    score_traits traits = score_traits_of<Base>();
    traits.nonnegative = traits.prepares_alike = false;
    traits.ignores_context = traits.ignores_context || !detail::has_advance<Base>;
    change(traits);
    return traits;
}

/// The traits of a normalizer that wraps Inner: those of Inner, after `change`. It must declare itself whether it is
/// row-wise.
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

/// The traits of a combiner, which needs all positions, or products, if the wrapped combiner does; the defaults for a
/// type that is not a combiner.
template <class Combine>
consteval combiner_traits combiner_traits_of()
{
    combiner_traits traits = detail::declared_traits<Combine, combiner_traits>();
    if constexpr (wraps_another<Combine>) {
        const combiner_traits inside = combiner_traits_of<typename Combine::wraps>();
        traits.needs_all_positions |= inside.needs_all_positions;
        traits.needs_products |= inside.needs_products;
    }
    return traits;
}

namespace hook {

/// Does this score adapt another: it adds to queries, keys and states, and the wrapped score compares them?
template <class P>
concept adapts = wraps_another<P> && requires
{
    requires P::adapts;
};

/// Is this a wrapping score without its own state?
template <class P>
concept passes_state = wraps_another<P> && requires
{
    requires P::passes_state;
};

}  // namespace hook

namespace detail {

template <class P>
inline constexpr bool placeholder = std::same_as<P, visited>;  // instantiated while parameters are visited

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

// Attributes shape errors to tensors of a policy. An operation deep inside a policy reports that x [2,5] does not fit a
// matrix [6,4]; a function-try-block at attention's call of the policy adds that x was the query:
//
//     score::additive: the query [2,5] does not fit W [6,4], U [8,4], v [4] (linear: …)

/// A tensor and its role, such as "the query". For other types, only the role.
template <class X>
named_shape named(const char* what, const X& x)
{
    if constexpr (tensor<X>) {
        const auto extents = shape_of(x);
        return {what, extents.data(), extents.size()};
    } else {
        return {what, nullptr, 0};
    }
}

/// Throws an error that names the policy, the first of these tensors, and the tensors that it should fit: the others
/// and the policy's own parameters. If `found` already names a policy, it is rethrown unchanged.
template <class Policy>
[[noreturn, gnu::noinline, gnu::cold]] void rethrow_naming(const shape_error& found, const Policy& policy,
                                                           std::initializer_list<named_shape> those)
{
    named_shapes parameters;
    if constexpr (!std::is_empty_v<Policy> && parameterized<Policy>)
        (void)Policy::parameters(const_cast<Policy&>(policy), looking_visitor{&parameters});
    throw_named_shape_error(found, __PRETTY_FUNCTION__, those, parameters);
}

}  // namespace detail

/// Does this score or normalizer have a state from one query to the next?
template <class P>
concept remembers = detail::remembers_of<P>();

/// Does this normalizer restrict attention to a window, outside of which nothing is computed? It has `window` and
/// `inner_in_window`, and its traits do not disable the window.
template <class P>
concept cuts_windows = detail::has_window<P> &&(normalizer_traits_of<P>().has_window);

/// Does this normalizer read only the scores of a row and its length? Then each query of each sentence is a row, and
/// many queries are computed at once.
template <class P>
concept rowwise = (normalizer_traits_of<P>().rowwise);

/// Does this normalizer draw random numbers? Its results then depend on the index of a row in the batch.
template <class P>
concept draws = (normalizer_traits_of<P>().random);

/// e = score(query, keys): how well the query matches each source position.
template <class P>
concept scorer = detail::declares_traits<P, score_traits> && detail::has_call<P> && parameterized<P>;

/// α = normalize(e, at): converts scores to weights.
template <class P>
concept normalizer = detail::has_call<P> && parameterized<P>;

/// c = combine(α, values): combines weights and values into one context.
template <class P>
concept combiner = detail::declares_traits<P, combiner_traits> && detail::has_call<P> && parameterized<P>;

}  // namespace heed::inline HEED_TARGET
