// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/core/tensor.hpp>

namespace heed {

/// A tensor filled with a value, of the family (and on the tape) of `beside`.
template <tensor Beside, std::size_t N>
auto constant_like(const Beside& beside, const shape_of_rank<N>& shape, double value)
{
    using T = element_of<Beside>;
    auto values = filled<T, N>(shape, static_cast<T>(value));
    if constexpr (plain_tensor<Beside>) {
        return values;
    } else {
        return family_of<Beside>::constant(beside, values);
    }
}

/// x itself, or x as a constant on the tape that `beside` is on.
template <tensor Beside, tensor X>
auto same_family(const Beside& beside, X x)
{
    if constexpr (plain_tensor<Beside> || !plain_tensor<X>) {
        return x;
    } else {
        return family_of<Beside>::constant(beside, x);
    }
}

}  // namespace heed
