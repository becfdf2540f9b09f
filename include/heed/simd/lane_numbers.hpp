// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heed/core/dual_number.hpp>
#include <heed/simd/lane_steps.hpp>
#include <heed/simd/simd.hpp>

/// What lanes consist of, and what lanes of two kinds meet in: scores, dual numbers, whole numbers and fractions of
/// them (place_number), and the results of comparisons (lane_mask).
namespace heed {

template <class T>
struct pack;
template <class T>
struct dual;

namespace detail {

/// All lanes; the compiler splits what does not fit a register. Unaligned, so that it may be passed like any struct.
template <class T>
struct lanes_in_registers {
    typedef T type __attribute__((vector_size(lane_count * sizeof(T)), aligned(sizeof(T))));
};
template <std::size_t bytes>
using integer_of = std::conditional_t<
    bytes == 8, std::int64_t,
    std::conditional_t<bytes == 4, std::int32_t, std::conditional_t<bytes == 2, std::int16_t, std::int8_t>>>;

}  // namespace detail

/// Which lanes: the result of a comparison.
struct lane_mask {
    using vector = detail::lanes_in_registers<std::int32_t>::type;
    vector at;  // −1 or 0

    lane_mask() = default;
    HEED_SIMD_INLINE lane_mask(bool x) : at((x ? -1 : 0) - vector{}) {}
    HEED_SIMD_INLINE explicit lane_mask(const vector& x) : at(x) {}
    HEED_SIMD_INLINE explicit lane_mask(const auto& x) : at(__builtin_convertvector(x, vector)) {}
};

HEED_SIMD_INLINE lane_mask operator&(const lane_mask& a, const lane_mask& b) { return lane_mask(a.at & b.at); }
HEED_SIMD_INLINE lane_mask operator|(const lane_mask& a, const lane_mask& b) { return lane_mask(a.at | b.at); }
HEED_SIMD_INLINE lane_mask operator!(const lane_mask& a) { return lane_mask(~a.at); }

namespace detail {

/// Values and slopes of dual numbers.
template <class T>
struct dual_lanes {
    using vector = typename lanes_in_registers<T>::type;
    vector value, slope;

    HEED_SIMD_INLINE dual_number<T> operator[](std::size_t i) const { return {value[i], slope[i]}; }

    HEED_SIMD_INLINE friend dual_lanes operator-(const dual_lanes& x) { return {-x.value, -x.slope}; }
    HEED_SIMD_INLINE friend dual_lanes operator+(const dual_lanes& x, const dual_lanes& y)
    {
        return {x.value + y.value, x.slope + y.slope};
    }
    HEED_SIMD_INLINE friend dual_lanes operator-(const dual_lanes& x, const dual_lanes& y)
    {
        return {x.value - y.value, x.slope - y.slope};
    }
    HEED_SIMD_INLINE friend dual_lanes operator*(const dual_lanes& x, const dual_lanes& y)
    {
        return {x.value * y.value, x.slope * y.value + x.value * y.slope};
    }
    HEED_SIMD_INLINE friend dual_lanes operator/(const dual_lanes& x, const dual_lanes& y)
    {
        const vector quotient = x.value / y.value;
        return {quotient, (x.slope - quotient * y.slope) / y.value};
    }
    // == and != look at both parts, as those of dual_number do.
    HEED_SIMD_INLINE friend lane_mask operator==(const dual_lanes& x, const dual_lanes& y)
    {
        return lane_mask((x.value == y.value) & ((x.slope == y.slope) | (x.value - x.value != T(0))));
    }
    HEED_SIMD_INLINE friend lane_mask operator!=(const dual_lanes& x, const dual_lanes& y) { return !(x == y); }
    HEED_SIMD_INLINE friend lane_mask operator<(const dual_lanes& x, const dual_lanes& y)
    {
        return lane_mask(x.value < y.value);
    }
    HEED_SIMD_INLINE friend lane_mask operator<=(const dual_lanes& x, const dual_lanes& y)
    {
        return lane_mask(x.value <= y.value);
    }
    HEED_SIMD_INLINE friend lane_mask operator>(const dual_lanes& x, const dual_lanes& y) { return y < x; }
    HEED_SIMD_INLINE friend lane_mask operator>=(const dual_lanes& x, const dual_lanes& y) { return y <= x; }
};
template <class T>
struct lanes_in_registers<dual_number<T>> {
    using type = dual_lanes<T>;
};

/// Doubles and floats of numbers of places. Comparisons are those of the doubles, whatever scores are.
struct place_number_lanes {
    using doubles = lanes_in_registers<double>::type;
    using floats = lanes_in_registers<float>::type;
    doubles exact;
    floats near;

    HEED_SIMD_INLINE place_number operator[](std::size_t i) const { return {exact[i], near[i]}; }

    HEED_SIMD_INLINE friend place_number_lanes operator-(const place_number_lanes& x) { return {-x.exact, -x.near}; }
#define HEED_LANES(sign)                                                                                               \
    HEED_SIMD_INLINE friend place_number_lanes operator sign(const place_number_lanes& x, const place_number_lanes& y) \
    {                                                                                                                  \
        return {x.exact sign y.exact, x.near sign y.near};                                                             \
    }
    HEED_LANES(+)
    HEED_LANES(-)
    HEED_LANES(*)
    HEED_LANES(/)
#undef HEED_LANES
#define HEED_LANES(sign)                                                                                               \
    HEED_SIMD_INLINE friend lane_mask operator sign(const place_number_lanes& x, const place_number_lanes& y)          \
    {                                                                                                                  \
        return lane_mask(x.exact sign y.exact);                                                                        \
    }
    HEED_LANES(==)
    HEED_LANES(!=)
    HEED_LANES(<)
    HEED_LANES(<=)
    HEED_LANES(>)
    HEED_LANES(>=)
#undef HEED_LANES
};
template <>
struct lanes_in_registers<place_number> {
    using type = place_number_lanes;
};
template <class X>
struct lane_element {
    using type = X;
};
template <class T>
struct lane_element<pack<T>> {
    using type = T;
};
template <class X>
inline constexpr bool is_lanes = !std::is_same_v<X, typename lane_element<X>::type>;

template <class X>
concept lane_number = std::is_arithmetic_v<X> || dual_element<X>;
template <class X>
concept lane_fraction = std::floating_point<X> || dual_element<X> || std::is_same_v<X, place_number>;

/// Something that lanes compute with: lanes, or a number among them.
template <class X>
concept lane_operand = is_lanes<X> || lane_number<X>;
template <class A, class B>
concept lane_operands = lane_operand<A> && lane_operand<B> &&(is_lanes<A> || is_lanes<B>);

/// Lanes of a score, or what makes such lanes: a dual number.
template <class X>
concept lane_score = dual_element<typename lane_element<X>::type> ||
    (is_lanes<X>&& std::floating_point<typename lane_element<X>::type>);
/// Lanes of whole numbers with a fraction, whatever the fraction's type is, or numbers that were made so.
template <class A, class B>
concept meet_as_place_number = std::is_same_v<A, pack<place_number>> || std::is_same_v<B, pack<place_number>> ||
                               (std::floating_point<A>&& std::is_integral_v<typename lane_element<B>::type>) ||
                               (std::floating_point<B> && std::is_integral_v<typename lane_element<A>::type>);

/// What lanes of these meet in. A constant takes the type of the lanes, and neither narrows a score nor makes a kernel
/// of floats compute in doubles. Whole numbers meet fractions as numbers of places, and both become scores where they
/// meet scores. Lanes of two precisions meet in the wider one; numbers without a slope in dual ones.
template <class A, class B>
struct meeting {
    using a = typename lane_element<A>::type;
    using b = typename lane_element<B>::type;
    using lane = std::conditional_t<is_lanes<A>, a, b>;  // of one side at least
    using fraction = std::conditional_t<std::is_integral_v<a>, b, a>;
    static constexpr bool mixed = std::is_integral_v<a> != std::is_integral_v<b>;
    using wider = std::conditional_t<(sizeof(a) < sizeof(b)), b, a>;
    using plain = std::conditional_t<mixed, fraction, std::conditional_t<is_lanes<A> && is_lanes<B>, wider, lane>>;
    using type =
        std::conditional_t<dual_element<a> == dual_element<b>, plain, std::conditional_t<dual_element<a>, a, b>>;
};
template <class A, class B>
    requires(meet_as_place_number<A, B>)
struct meeting<A, B> {
    using type = std::conditional_t<lane_score<A>, typename lane_element<A>::type,
                                    std::conditional_t<lane_score<B>, typename lane_element<B>::type, place_number>>;
};

}  // namespace detail

}  // namespace heed
