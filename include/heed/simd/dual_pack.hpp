// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/simd/pack.hpp>

/// Lanes of scores with their derivative: the backward pass runs functions of scores on them.
///
///     (x, x') + (y, y') = (x + y, x' + y'),  (x, x') (y, y') = (x y, x' y + x y'),  f(x, x') = (f(x), f'(x) x')
namespace heed::inline HEED_TARGET {

namespace detail {

template <class X>
inline constexpr bool is_dual = false;
template <class T>
inline constexpr bool is_dual<dual<T>> = true;
template <class A, class B>
concept dual_operands = (is_dual<A> && (is_dual<B> || lane_operand<B>)) || (is_dual<B> && lane_operand<A>);
template <class A, class B>
using dual_of = std::conditional_t<is_dual<A>, A, B>;

}  // namespace detail

/// A separate base, not lane_functions: two empty bases of one type may not share an address, and the layout would make
/// copies of registers span earlier stores.
struct dual_functions {
    template <class A, class B>
        requires(detail::dual_operands<A, B>)
    HEED_SIMD_INLINE friend auto select(const lane_mask& which, const A& a, const B& b)
    {
        using D = detail::dual_of<A, B>;
        const D x(a), y(b);
        return D(select(which, x.value, y.value), select(which, x.slope, y.slope));
    }
};

/// A score and its derivative with respect to the score that is the function's argument: the function runs once for
/// both.
template <class T>
struct dual : dual_functions {
    pack<T> value, slope;

    dual() = default;
    HEED_SIMD_INLINE dual(const pack<T>& x, const pack<T>& by) : value(x), slope(by) {}
    template <class U>
        requires(detail::lane_operand<U>)
    HEED_SIMD_INLINE dual(const U& constant) : value(constant), slope(T(0)) {}

    HEED_SIMD_INLINE friend dual operator-(const dual& x) { return {-x.value, -x.slope}; }
    HEED_SIMD_INLINE friend dual exp(const dual& x)
    {
        const pack<T> y = exp(x.value);
        return {y, y * x.slope};
    }
    HEED_SIMD_INLINE friend dual log(const dual& x) { return {log(x.value), x.slope / x.value}; }
    HEED_SIMD_INLINE friend dual tanh(const dual& x)
    {
        const pack<T> y = tanh(x.value);
        return {y, (1 - y * y) * x.slope};
    }
    HEED_SIMD_INLINE friend dual sigmoid(const dual& x)
    {
        const pack<T> y = sigmoid(x.value);
        return {y, y * (1 - y) * x.slope};
    }
    HEED_SIMD_INLINE friend dual sqrt(const dual& x)
    {
        const pack<T> y = sqrt(x.value);
        return {y, x.slope / (2 * y)};
    }
    HEED_SIMD_INLINE friend dual abs(const dual& x) { return select(x.value < T(0), -x, x); }
    HEED_SIMD_INLINE friend dual sin(const dual& x) { return {sin(x.value), cos(x.value) * x.slope}; }
    HEED_SIMD_INLINE friend dual cos(const dual& x) { return {cos(x.value), -sin(x.value) * x.slope}; }
};

// The slopes of constants are omitted, which saves work, and avoids NaN if a factor is infinite.
#define HEED_DUALS(sign, slope_of, slope_with_right, slope_with_left)                                                  \
    template <class A, class B>                                                                                        \
        requires(detail::dual_operands<A, B>)                                                                          \
    HEED_SIMD_INLINE auto operator sign(const A& a, const B& b)                                                        \
    {                                                                                                                  \
        using D = detail::dual_of<A, B>;                                                                               \
        const D x(a), y(b);                                                                                            \
        const auto value = x.value sign y.value;                                                                       \
        if constexpr (!detail::is_dual<B>) {                                                                           \
            return D(value, slope_with_right);                                                                         \
        } else if constexpr (!detail::is_dual<A>) {                                                                    \
            return D(value, slope_with_left);                                                                          \
        } else {                                                                                                       \
            return D(value, slope_of);                                                                                 \
        }                                                                                                              \
    }
HEED_DUALS(+, x.slope + y.slope, x.slope, y.slope)
HEED_DUALS(-, x.slope - y.slope, x.slope, -y.slope)
HEED_DUALS(*, x.slope* y.value + x.value * y.slope, x.slope* y.value, x.value* y.slope)
HEED_DUALS(/, (x.slope - value * y.slope) / y.value, x.slope / y.value, -value* y.slope / y.value)
#undef HEED_DUALS

#define HEED_DUALS(sign)                                                                                               \
    template <class A, class B>                                                                                        \
        requires(detail::dual_operands<A, B>)                                                                          \
    HEED_SIMD_INLINE lane_mask operator sign(const A& a, const B& b)                                                   \
    {                                                                                                                  \
        using D = detail::dual_of<A, B>;                                                                               \
        return D(a).value sign D(b).value;                                                                             \
    }
HEED_DUALS(<)
HEED_DUALS(<=)
HEED_DUALS(>)
HEED_DUALS(>=)
#undef HEED_DUALS

}  // namespace heed::inline HEED_TARGET
