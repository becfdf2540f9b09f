// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <doctest/doctest.h>

#include <heed/core/dual_number.hpp>

/// Comparisons with a tolerance of the number's own precision. doctest::Approx alone compares doubles as if they were
/// floats: its default tolerance is 1.2e-5.
namespace support {

/// How far apart two results of type T may be, absolutely where they are small and relatively where they are great:
/// a double 1e-12, a float 1e-5. Whole numbers and dual numbers count as double or float by what they consist of.
template <class T>
inline constexpr double tolerance = std::is_same_v<heed::plain_number<T>, float> ? 1e-5 : 1e-12;
/// The same for gradients that are compared with another way to compute them: a double 1e-9, a float 1e-4.
template <class T>
inline constexpr double gradient_tolerance = std::is_same_v<heed::plain_number<T>, float> ? 1e-4 : 1e-9;

/// x, to be compared by ==: true if the other number y has |x − y| < tolerance · (1 + max(|x|, |y|)), where the
/// tolerance is the one above for x's type.
///
///     CHECK(y == support::approx(x));
///     CHECK(slope == support::approx(x, support::gradient_tolerance<double>));      // another tolerance
///
/// The expected number decides: a float result that is compared with a double constant needs a constant in float,
/// `approx(0.1F)`.
template <class T>
doctest::Approx approx(T x, double within = tolerance<T>)
{
    return doctest::Approx(static_cast<double>(x)).epsilon(within).scale(1);
}

}  // namespace support
