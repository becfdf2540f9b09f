// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>

#include <heed/attention/whose.hpp>
#include <heed/ops/products.hpp>

namespace heed::detail {

/// x W by a matrix of this mechanism, and b if there is one, in a tuple. `name`: what x is to it, "the query", for the
/// error if it does not fit.
template <class Bias = std::tuple<>>
auto projection(const auto& mechanism, const char* name, const auto& x, const auto& W, const Bias& bias = {})
try {
    return std::apply([&](const auto&... b) { return ops::linear(x, W, b...); }, bias);
} catch (const shape_error& found) {
    throw_whose(found, mechanism, {detail::named(name, x)});
}

}  // namespace heed::detail
