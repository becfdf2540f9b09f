// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/whose.hpp>
#include <heed/ops/products.hpp>

namespace heed::detail {

/// x W by a matrix of this mechanism. `name`: what x is to it, "the query", for the error if it does not fit.
template <class Mechanism>
auto projection(const Mechanism& mechanism, const char* name, const auto& x, const auto& W)
try {
    return ops::linear(x, W);
} catch (const shape_error& found) {
    throw_whose(found, mechanism, {detail::named(name, x)});
}

}  // namespace heed::detail
