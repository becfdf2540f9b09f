// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <doctest/doctest.h>

#include <heed/core/dual_number.hpp>

/// Comparisons with a tolerance of the number's precision. doctest::Approx alone compares doubles with the precision of
/// floats: its default tolerance is 1.2e-5.
namespace support {

/// The tolerance for two results of type T, absolute for small and relative for large numbers: 1e-12 for double, 1e-5
/// for float. Dual numbers use the tolerance of their element type, integers that of double.
template <class T>
inline constexpr double tolerance = std::is_same_v<heed::plain_number<T>, float> ? 1e-5 : 1e-12;
/// The same for gradients computed in two ways: 1e-9 for double, 1e-4 for float.
template <class T>
inline constexpr double gradient_tolerance = std::is_same_v<heed::plain_number<T>, float> ? 1e-4 : 1e-9;

/// x, for comparison by ==: true if the other number y has |x − y| < tolerance · (1 + max(|x|, |y|)), with the
/// tolerance above for x's type.
///
///     CHECK(y == support::approx(x));
///     CHECK(slope == support::approx(x, support::gradient_tolerance<double>));      // another tolerance
///
/// The expected number sets the tolerance: comparing a float result with a constant requires a float constant,
/// `approx(0.1F)`.
template <class T>
doctest::Approx approx(T x, double within = tolerance<T>)
{
    return doctest::Approx(static_cast<double>(x)).epsilon(within).scale(1);
}

}  // namespace support
