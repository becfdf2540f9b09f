// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include <heed/core/dual_number.hpp>
#include <heed/simd/registers.hpp>
#include <heed/simd/trig.hpp>

/// Registers of dual numbers: one register of values and one of slopes, with the functions of registers of floats and
/// doubles, so that a kernel has one source for both.
///
/// In memory a value and its slope are adjacent; loads and stores separate and interleave them. Comparisons are those
/// of dual_number: == and != compare both, the others compare values.
namespace heed::inline HEED_TARGET::simd {

template <class T>
struct dual_vec;

namespace detail {

template <class T>
struct register_of<dual_number<T>> {
    using type = dual_vec<T>;
    using integer = typename register_of<T>::integer;
};

}  // namespace detail

template <class T>
inline constexpr std::size_t lanes<dual_number<T>> = lanes<T>;

template <class T>
struct dual_vec {
    vec<T> value, slope;

    dual_vec() = default;
    HEED_SIMD_INLINE dual_vec(vec<T> x, vec<T> by) : value(x), slope(by) {}
    HEED_SIMD_INLINE dual_vec(const dual_number<T>& x) : value(splat(x.value)), slope(splat(x.slope)) {}
    HEED_SIMD_INLINE dual_vec(arithmetic auto x) : value(splat(static_cast<T>(x))), slope{} {}

    HEED_SIMD_INLINE dual_number<T> operator[](std::size_t i) const { return {value[i], slope[i]}; }

    HEED_SIMD_INLINE dual_vec& operator+=(const dual_vec& y) { return *this = *this + y; }
    HEED_SIMD_INLINE dual_vec& operator-=(const dual_vec& y) { return *this = *this - y; }
    HEED_SIMD_INLINE dual_vec& operator*=(const dual_vec& y) { return *this = *this * y; }
    HEED_SIMD_INLINE dual_vec& operator/=(const dual_vec& y) { return *this = *this / y; }

    HEED_SUMS_OF_DUALS(dual_vec)
    HEED_SIMD_INLINE friend dual_vec operator*(const dual_vec& x, const dual_vec& y)
    {
        return {x.value * y.value, fma(x.slope, y.value, x.value * y.slope)};
    }
    HEED_SIMD_INLINE friend dual_vec operator/(const dual_vec& x, const dual_vec& y)
    {
        const vec<T> quotient = x.value / y.value;
        return {quotient, fma(-quotient, y.slope, x.slope) / y.value};
    }
    // Constants have no slope, even if the other factor is infinite.
    HEED_SIMD_INLINE friend dual_vec operator*(const dual_vec& x, arithmetic auto y)
    {
        return {x.value * static_cast<T>(y), x.slope * static_cast<T>(y)};
    }
    HEED_SIMD_INLINE friend dual_vec operator*(arithmetic auto x, const dual_vec& y) { return y * x; }
    HEED_SIMD_INLINE friend dual_vec operator/(const dual_vec& x, arithmetic auto y)
    {
        return {x.value / static_cast<T>(y), x.slope / static_cast<T>(y)};
    }

    HEED_SIMD_INLINE friend mask<T> operator==(const dual_vec& x, const dual_vec& y)
    {
        return (x.value == y.value) & ((x.slope == y.slope) | (x.value - x.value != T(0)));
    }
    HEED_SIMD_INLINE friend mask<T> operator!=(const dual_vec& x, const dual_vec& y) { return ~(x == y); }
    HEED_SIMD_INLINE friend mask<T> operator<(const dual_vec& x, const dual_vec& y) { return x.value < y.value; }
    HEED_SIMD_INLINE friend mask<T> operator>(const dual_vec& x, const dual_vec& y) { return x.value > y.value; }
    HEED_SIMD_INLINE friend mask<T> operator<=(const dual_vec& x, const dual_vec& y) { return x.value <= y.value; }
    HEED_SIMD_INLINE friend mask<T> operator>=(const dual_vec& x, const dual_vec& y) { return x.value >= y.value; }
};

template <plain_register V>
dual_vec(V, V) -> dual_vec<number_in<V>>;

template <dual_element T>
HEED_SIMD_INLINE vec<T> splat(T x)
{
    return x;
}

namespace detail {

/// The even and the odd elements of two registers: values and slopes.
template <class T, std::size_t... i>
HEED_SIMD_INLINE dual_vec<T> apart(vec<T> a, vec<T> b, std::index_sequence<i...>)
{
    return {__builtin_shufflevector(a, b, static_cast<int>(2 * i)...),
            __builtin_shufflevector(a, b, static_cast<int>(2 * i + 1)...)};
}
/// The first or second half of values and slopes, interleaved.
template <class T, std::size_t half, std::size_t... i>
HEED_SIMD_INLINE vec<T> together(const dual_vec<T>& x, std::index_sequence<i...>)
{
    constexpr std::size_t n = sizeof...(i);
    return __builtin_shufflevector(x.value, x.slope, static_cast<int>(half * (n / 2) + i / 2 + i % 2 * n)...);
}

}  // namespace detail

template <dual_element T>
HEED_SIMD_INLINE vec<T> load(const T* x)
{
    using real = plain_number<T>;
    vec<real> part[2];
    std::memcpy(&part, x, sizeof part);
    return detail::apart<real>(part[0], part[1], std::make_index_sequence<lanes<T>>{});
}

template <dual_element T>
HEED_SIMD_INLINE void store(T* y, std::type_identity_t<vec<T>> v)
{
    using real = plain_number<T>;
    constexpr auto all = std::make_index_sequence<lanes<T>>{};
    const vec<real> part[2] = {detail::together<real, 0>(v, all), detail::together<real, 1>(v, all)};
    std::memcpy(static_cast<void*>(y), &part, sizeof part);
}

template <dual_element T>
HEED_SIMD_INLINE vec<T> load(const T* x, std::size_t count)
{
    using real = plain_number<T>;
    constexpr std::size_t L = lanes<T>;
    const auto* const from = reinterpret_cast<const real*>(x);
    const std::size_t n = 2 * count;
    return detail::apart<real>(load(from, n < L ? n : L), n > L ? load(from + L, n - L) : vec<real>{},
                               std::make_index_sequence<L>{});
}

template <dual_element T>
HEED_SIMD_INLINE void store(T* y, std::type_identity_t<vec<T>> v, std::size_t count)
{
    using real = plain_number<T>;
    constexpr std::size_t L = lanes<T>;
    constexpr auto all = std::make_index_sequence<L>{};
    auto* const to = reinterpret_cast<real*>(y);
    const std::size_t n = 2 * count;
    store(to, detail::together<real, 0>(v, all), n < L ? n : L);
    if (n > L) store(to + L, detail::together<real, 1>(v, all), n - L);
}

/// A register of dual numbers.
template <class V>
inline constexpr bool is_dual_register = false;
template <class T>
inline constexpr bool is_dual_register<dual_vec<T>> = true;
template <class V>
concept dual_register = is_dual_register<V>;

template <class M, class T>
HEED_SIMD_INLINE dual_vec<T> select(M mask, dual_vec<T> a, dual_vec<T> b)
{
    return {mask ? a.value : b.value, mask ? a.slope : b.slope};
}
HEED_SIMD_INLINE auto as_written(dual_register auto x) { return dual_vec{as_written(x.value), as_written(x.slope)}; }

/// a > b ? a : b, so b if either is NaN.
HEED_SIMD_INLINE auto max(dual_register auto a, decltype(a) b) { return select(a.value > b.value, a, b); }
HEED_SIMD_INLINE auto min(dual_register auto a, decltype(a) b) { return select(a.value < b.value, a, b); }
HEED_SIMD_INLINE auto fma(dual_register auto a, decltype(a) b, decltype(a) c)
{
    return dual_vec{fma(a.value, b.value, c.value), fma(a.slope, b.value, fma(a.value, b.slope, c.slope))};
}
HEED_SIMD_INLINE auto sqrt(dual_register auto x)
{
    const auto y = sqrt(x.value);
    return dual_vec{y, select(x.slope == 0, decltype(x.value){}, x.slope / (y + y))};
}
/// An exp that underflows has slope 0, even if the exponent's slope is infinite.
HEED_SIMD_INLINE auto exp(dual_register auto x)
{
    const auto y = exp(x.value);
    return dual_vec{y, select(y == 0, decltype(x.value){}, y * x.slope)};
}
HEED_SIMD_INLINE auto exp_of_nonpositive(dual_register auto x) { return exp(x); }
HEED_SIMD_INLINE auto tanh(dual_register auto x)
{
    const auto y = tanh(x.value);
    return dual_vec{y, fma(-(y * y), x.slope, x.slope)};
}
HEED_SIMD_INLINE auto log(dual_register auto x) { return dual_vec{log(x.value), x.slope / x.value}; }
HEED_SIMD_INLINE auto log1p(dual_register auto x) { return dual_vec{log1p(x.value), x.slope / (x.value + 1)}; }
HEED_SIMD_INLINE auto sigmoid(dual_register auto x)
{
    const auto y = sigmoid(x.value), of_y = y * (1 - y);
    return dual_vec{y, select(of_y == 0, decltype(x.value){}, of_y * x.slope)};
}
template <class T>
HEED_SIMD_INLINE dual_vec<T> normal_cdf(const dual_vec<T>& x)
{
    const vec<T> density = exp(x.value * x.value * T(-0.5)) * T(0.39894228040143267794);  // 1 / √(2π)
    return {normal_cdf(x.value), select(density == T(0), vec<T>{}, density * x.slope)};
}
HEED_SIMD_INLINE auto sin(dual_register auto x) { return dual_vec{sin(x.value), cos(x.value) * x.slope}; }
HEED_SIMD_INLINE auto cos(dual_register auto x) { return dual_vec{cos(x.value), -sin(x.value) * x.slope}; }

HEED_SIMD_INLINE auto sum(dual_register auto v) { return dual_number{sum(v.value), sum(v.slope)}; }
/// The maximum value, and the slope of the first lane that has it.
HEED_SIMD_INLINE auto max(dual_register auto v)
{
    auto top = v[0];
    for (std::size_t i = 1; i < sizeof v.value / sizeof top.value; ++i) top = v.value[i] > top.value ? v[i] : top;
    return top;
}

}  // namespace heed::inline HEED_TARGET::simd
