// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

/// A number and its derivative.
///
///     x + x' ε with ε² = 0:   (x + x' ε)(y + y' ε) = x y + (x' y + x y') ε,   f(x + x' ε) = f(x) + f'(x) x' ε
///
/// Results carry their exact derivative in one direction (Clifford 1871; forward mode in Griewank and Walther 2008,
/// chapter 3). The derivative of a gradient is a product with the Hessian (Pearlmutter 1994): see
/// ad/hessian_vector.hpp. `dual` in simd/dual_pack.hpp is a function of a score with its derivative; both
/// may be dual numbers.
///
/// Code for plain and dual numbers writes `using std::exp; exp(x)`, and `value_of(x)` for a decision.
namespace heed::inline HEED_TARGET {

/// An arithmetic type of C++.
template <class X>
concept arithmetic = std::is_arithmetic_v<X>;

// −x, x + y and x − y, of single dual numbers and of registers of dual numbers.
#define HEED_SUMS_OF_DUALS(dual)                                                                                       \
    [[gnu::always_inline]] friend constexpr dual operator-(const dual& x) { return {-x.value, -x.slope}; }             \
    [[gnu::always_inline]] friend constexpr dual operator+(const dual& x, const dual& y)                               \
    {                                                                                                                  \
        return {x.value + y.value, x.slope + y.slope};                                                                 \
    }                                                                                                                  \
    [[gnu::always_inline]] friend constexpr dual operator-(const dual& x, const dual& y)                               \
    {                                                                                                                  \
        return {x.value - y.value, x.slope - y.slope};                                                                 \
    }

/// value + slope ε with ε² = 0. Arithmetic and the functions of <cmath> that heed uses carry the slope along; < and <=
/// compare the values alone, == the slopes as well.
template <std::floating_point T>
struct dual_number {
    T value, slope;

    dual_number() = default;
    constexpr dual_number(T x, T by) : value(x), slope(by) {}
    /// A constant.
    constexpr dual_number(arithmetic auto x) : value(static_cast<T>(x)), slope(0) {}
    template <class U>
    constexpr explicit dual_number(const dual_number<U>& x)
        : value(static_cast<T>(x.value)), slope(static_cast<T>(x.slope))
    {}

    constexpr dual_number& operator+=(const dual_number& y) { return *this = *this + y; }
    constexpr dual_number& operator-=(const dual_number& y) { return *this = *this - y; }
    constexpr dual_number& operator*=(const dual_number& y) { return *this = *this * y; }
    constexpr dual_number& operator/=(const dual_number& y) { return *this = *this / y; }

    HEED_SUMS_OF_DUALS(dual_number)
    friend constexpr dual_number operator*(const dual_number& x, const dual_number& y)
    {
        return {x.value * y.value, x.slope * y.value + x.value * y.slope};
    }
    friend constexpr dual_number operator/(const dual_number& x, const dual_number& y)
    {
        const T quotient = x.value / y.value;
        return {quotient, (x.slope - quotient * y.slope) / y.value};
    }

    /// Two numbers are equal if they remain equal nearby: code that skips zeros must not skip a 0 with a nonzero slope.
    /// Infinite values do not change.
    friend constexpr bool operator==(const dual_number& x, const dual_number& y)
    {
        return x.value == y.value && (x.slope == y.slope || x.value - x.value != 0);
    }
    friend constexpr bool operator<(const dual_number& x, const dual_number& y) { return x.value < y.value; }
    friend constexpr bool operator>(const dual_number& x, const dual_number& y) { return x.value > y.value; }
    friend constexpr bool operator<=(const dual_number& x, const dual_number& y) { return x.value <= y.value; }
    friend constexpr bool operator>=(const dual_number& x, const dual_number& y) { return x.value >= y.value; }

    /// An e^x that underflows has slope 0, even if the exponent's slope is infinite.
    friend dual_number exp(const dual_number& x)
    {
        const T y = std::exp(x.value);
        return {y, y == 0 ? T(0) : y * x.slope};
    }
    friend dual_number expm1(const dual_number& x)
    {
        const T y = std::expm1(x.value);
        return {y, (y + 1) * x.slope};
    }
    friend dual_number log(const dual_number& x) { return {std::log(x.value), x.slope / x.value}; }
    friend dual_number log1p(const dual_number& x) { return {std::log1p(x.value), x.slope / (1 + x.value)}; }
    friend dual_number sqrt(const dual_number& x)
    {
        const T y = std::sqrt(x.value);
        return {y, x.slope == 0 ? T(0) : x.slope / (2 * y)};
    }
    friend dual_number tanh(const dual_number& x)
    {
        const T y = std::tanh(x.value);
        return {y, (1 - y * y) * x.slope};
    }
    friend dual_number abs(const dual_number& x) { return x.value < 0 ? -x : x; }
    friend dual_number sin(const dual_number& x) { return {std::sin(x.value), std::cos(x.value) * x.slope}; }
    friend dual_number cos(const dual_number& x) { return {std::cos(x.value), -std::sin(x.value) * x.slope}; }
    friend bool isnan(const dual_number& x) { return std::isnan(x.value) || std::isnan(x.slope); }
    friend bool isfinite(const dual_number& x) { return std::isfinite(x.value) && std::isfinite(x.slope); }
};

namespace detail {

template <class T>
struct parts_of_number {
    static constexpr bool dual = false;
    using real = T;
    using in_double = double;
};
template <class T>
struct parts_of_number<dual_number<T>> {
    static constexpr bool dual = true;
    using real = T;
    using in_double = dual_number<double>;
};

}  // namespace detail

/// A dual number of float or double: the element type of tensors for products with the Hessian.
template <class T>
concept dual_element = detail::parts_of_number<T>::dual;

/// T itself, or the type of a dual number's parts.
template <class T>
using plain_number = typename detail::parts_of_number<T>::real;

/// The number that decides a branch: x itself, or the value of a dual number.
template <class T>
constexpr T value_of(const T& x)
{
    return x;
}
template <class T>
constexpr T value_of(const dual_number<T>& x)
{
    return x.value;
}

/// The type of sums over many T: double, or a dual number of doubles.
template <class T>
using in_double = typename detail::parts_of_number<T>::in_double;

}  // namespace heed::inline HEED_TARGET

/// The limits of the values, as constants.
template <class T>
struct std::numeric_limits<heed::dual_number<T>> : std::numeric_limits<T> {
    using number = heed::dual_number<T>;

    static constexpr number min() noexcept { return std::numeric_limits<T>::min(); }
    static constexpr number max() noexcept { return std::numeric_limits<T>::max(); }
    static constexpr number lowest() noexcept { return std::numeric_limits<T>::lowest(); }
    static constexpr number epsilon() noexcept { return std::numeric_limits<T>::epsilon(); }
    static constexpr number infinity() noexcept { return std::numeric_limits<T>::infinity(); }
    static constexpr number quiet_NaN() noexcept { return std::numeric_limits<T>::quiet_NaN(); }
};
