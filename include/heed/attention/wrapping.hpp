// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

/// Policies that wrap another of their kind. Each declares `using wraps = Inner;` and holds that policy as its member
/// `inner`; a score holds it as `base`, the name that files of weights have for it.
///
/// A wrapping score either compares by itself, as `forgetting` does, or adapts: it adds to queries, keys and states,
/// and the score inside compares, by its kernel if it has one. Such a score derives from score::over::another.
namespace heed {

/// Does this policy wrap another?
template <class P>
concept wraps_another = requires
{
    typename P::wraps;
};

namespace detail {

/// The policy that this one wraps.
template <wraps_another P>
constexpr const auto& wrapped_by(const P& policy)
{
    if constexpr (requires { policy.base; }) {
        return policy.base;
    } else {
        return policy.inner;
    }
}

/// The policy below all layers for which `is_layer` says yes; it is called with a policy and returns a
/// std::bool_constant.
template <class P, class IsLayer>
constexpr const auto& below(const P& policy, const IsLayer& is_layer)
{
    if constexpr (decltype(is_layer(policy))::value) {
        return detail::below(detail::wrapped_by(policy), is_layer);
    } else {
        return policy;
    }
}

}  // namespace detail

}  // namespace heed
