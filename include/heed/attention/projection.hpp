// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>
#include <type_traits>

#include <heed/attention/concepts.hpp>
#include <heed/core/family.hpp>
#include <heed/ops/products.hpp>

namespace heed {

/// A policy without the bias that it may have: x W. It has no parameter.
struct no_bias {
    static auto parameters(auto&, auto&&) { return no_bias{}; }
};

namespace detail {

/// x W + b, or x W with no_bias: x [...,K], W [K,N], b [N] -> [...,N].
template <class Bias>
auto linear_with(const tensor auto& x, const auto& W, const Bias& b)
{
    if constexpr (std::is_same_v<Bias, no_bias>) {
        return ops::linear(x, W);
    } else {
        return ops::linear(x, W, b);
    }
}

/// x W by a matrix of this mechanism, and b if there is one, in a tuple. `name`: what x is to it, "the query", for the
/// error if it does not fit.
template <class Bias = std::tuple<>>
auto projection(const auto& mechanism, const char* name, const auto& x, const auto& W, const Bias& bias = {})
try {
    return std::apply([&](const auto&... b) { return ops::linear(x, W, b...); }, bias);
} catch (const shape_error& found) {
    throw_whose(found, mechanism, {detail::named(name, x)});
}

}  // namespace detail

}  // namespace heed
