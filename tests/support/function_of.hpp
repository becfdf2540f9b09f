// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cstddef>

#include <heed/ad/ad.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/core/function_ref.hpp>
#include <support/gradients.hpp>

/// Gradient checks of many functions of one tensor, compiled once.
namespace support {

/// Any function from a variable of N axes to a variable of M axes. Its type does not depend on the function, so the
/// gradient check is compiled once. It refers to the function.
template <std::size_t N, std::size_t M>
struct function_of {
    template <class T>
    using called = heed::detail::function_ref<heed::ad::var<T, M>, const heed::ad::var<T, N>&>;

    called<double> of_numbers;
    called<heed::dual_number<double>> of_dual_numbers;

    auto operator()(const heed::ad::var<double, N>& x) const { return of_numbers(x); }
    auto operator()(const heed::ad::var<heed::dual_number<double>, N>& x) const { return of_dual_numbers(x); }
};

template <std::size_t N, std::size_t M>
void check_gradient(const function_of<N, M>& f, const heed::array<double, N>& x)
{
    CHECK_GRADIENT(f, x);
}
/// The same for f itself; it returns variables of M axes, by default the number of axes of x.
template <std::size_t N, std::size_t M = N>
void check_gradient_of(const auto& f, const heed::array<double, N>& x)
{
    check_gradient(function_of<N, M>{f, f}, x);
}

}  // namespace support
