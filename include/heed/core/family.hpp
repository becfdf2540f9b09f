// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include <heed/core/workspace_tensor.hpp>

namespace heed::inline HEED_TARGET {

/// A tensor filled with a value, of the family (and on the tape) of the tensor `beside`, which may have any shape.
template <tensor Beside, std::size_t N>
auto constant_like(const Beside& beside, const shape_of_rank<N>& shape, double value)
{
    using T = element_of<Beside>;
    if constexpr (owning_tensor<Beside>) {
        return filled<T, N>(shape, static_cast<T>(value));
    } else if constexpr (plain_tensor<Beside>) {
        const std::size_t size = tensor_view<T, N>{nullptr, shape}.size();
        T* const to = workspace_family::take<T>(size);
        std::fill_n(to, size, static_cast<T>(value));
        return workspace_tensor<T, N>(to, shape);
    } else {
        return family_of<Beside>::constant(beside, filled<T, N>(shape, static_cast<T>(value)));
    }
}

/// x, of any shape, or x as a constant of the family of `beside` if the rank of that family is higher: on the tape of
/// `beside`.
template <tensor Beside, tensor X>
auto same_family(const Beside& beside, X x)
{
    if constexpr (family_of<Beside>::rank <= family_of<X>::rank) {
        return x;
    } else {
        return family_of<Beside>::constant(beside, x);
    }
}

namespace detail {

/// The first of these that is on a tape, or the first one if none is. A state is created in its family, so that the
/// state's type stays the same from step to step.
template <tensor First, tensor... Rest>
const auto& taped_among(const First& first, const Rest&... rest)
{
    if constexpr (plain_tensor<First> && (!plain_tensor<Rest> || ...)) {
        return detail::taped_among(rest...);
    } else {
        return first;
    }
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
