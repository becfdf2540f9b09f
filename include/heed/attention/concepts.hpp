// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include <heed/attention/hooks.hpp>
#include <heed/attention/traits.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>

/// The members that a score, a normalizer and a combiner must have. Beside them a policy may have `traits`
/// (attention/traits.hpp), hooks (attention/hooks.hpp), and types:
///
/// Score         traits, operator()(query, keys), parameters(self, visit)
/// Normalizer    operator()(scores, state, at) or (scores, at), parameters(self, visit)
/// Combiner      traits, operator()(weights, values) or (weights, values, at), parameters(self, visit)
///
/// Types: `in_kernels`, the name by which a step_kernel knows the policy, with `in_kernels::in_tiles` for tiles;
/// `wraps` of a policy around another (attention/wrapping.hpp). attention/check.hpp explains what is missing, in a
/// sentence each.
namespace heed {

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
    array<double, 2> operator()(double) const { return {}; }
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
    } else {
        return false;
    }
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
[[noreturn, gnu::noinline, gnu::cold]] void throw_whose(const shape_error& found, const Policy& policy,
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

/// Does this normalizer restrict attention to a window, outside of which nothing is computed? It has `focus` and
/// `inside`, and its traits do not rule a window out.
template <class P>
concept cuts_windows = detail::has_focus<P> &&(normalizer_traits_of<P>().has_window);

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

}  // namespace heed
