// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <heed/core/dual_number.hpp>
#include <heed/kernels/simd.hpp>

/// Numbers side by side: what functions of scores and places compute with (score::modified, masks of places).
///
///     [](auto e, place p) { return e - 0.1 * abs(p.query - p.key); }
///
/// One expression serves a whole register; it is written like one about a single number: + − * /, comparisons (their
/// result goes into `select`, `&`, `|`, `!`), % of whole numbers, and exp, log, tanh, sigmoid, sqrt, abs, min, max,
/// sin, cos. Numbers mix freely: whole ones, and fractions of them (place_number), become scores where they meet them.
/// Scores may be dual numbers.
namespace heed {

/// As many as a register has floats, whatever T is.
inline constexpr std::size_t lane_count = simd::register_bytes / sizeof(float);

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

/// A number made of whole numbers and fractions, 0.1 * p.key: as a double, and as scores in floats meet it. Only one of
/// the two is used, and the compiler leaves the other one out.
struct place_number {
    double exact;
    float near;
};

/// Which lanes: the result of a comparison.
struct lane_mask {
    using vector = detail::lanes_in_registers<std::int32_t>::type;
    vector at;  // −1 or 0

    lane_mask() = default;
    HEED_SIMD_INLINE lane_mask(bool x) : at((x ? -1 : 0) - vector{}) {}
    HEED_SIMD_INLINE explicit lane_mask(const vector& x) : at(x) {}
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
        return lane_mask(__builtin_convertvector(
            (x.value == y.value) & ((x.slope == y.slope) | (x.value - x.value != T(0))), lane_mask::vector));
    }
    HEED_SIMD_INLINE friend lane_mask operator!=(const dual_lanes& x, const dual_lanes& y) { return !(x == y); }
    HEED_SIMD_INLINE friend lane_mask operator<(const dual_lanes& x, const dual_lanes& y)
    {
        return lane_mask(__builtin_convertvector(x.value < y.value, lane_mask::vector));
    }
    HEED_SIMD_INLINE friend lane_mask operator<=(const dual_lanes& x, const dual_lanes& y)
    {
        return lane_mask(__builtin_convertvector(x.value <= y.value, lane_mask::vector));
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
        return lane_mask(__builtin_convertvector(x.exact sign y.exact, lane_mask::vector));                            \
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
inline constexpr bool is_lanes = false;
template <class T>
inline constexpr bool is_lanes<pack<T>> = true;

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
/// Lanes of whole numbers with a fraction, or numbers that were made so.
template <class A, class B>
concept meet_as_place_number = std::is_same_v<A, pack<place_number>> || std::is_same_v<B, pack<place_number>> ||
                               (std::is_same_v<A, double>&& std::is_integral_v<typename lane_element<B>::type>) ||
                               (std::is_same_v<B, double> && std::is_integral_v<typename lane_element<A>::type>);

/// What lanes of these meet in: whole numbers in scores, and in numbers of places with a fraction; of scores, the
/// narrower, so that a constant never makes a kernel of floats compute in doubles; numbers without a slope in dual
/// ones.
template <class A, class B>
struct meeting {
    using a = typename lane_element<A>::type;
    using b = typename lane_element<B>::type;
    using lane = std::conditional_t<is_lanes<A>, a, b>;  // of one side at least
    using fraction = std::conditional_t<std::is_integral_v<a>, b, a>;
    static constexpr bool whole = std::is_integral_v<a> && std::is_integral_v<b>;
    static constexpr bool mixed = std::is_integral_v<a> != std::is_integral_v<b>;
    using narrower = std::conditional_t<(sizeof(a) < sizeof(b)), a, b>;
    using plain =
        std::conditional_t<mixed, fraction, std::conditional_t<whole || !(is_lanes<A> && is_lanes<B>), lane, narrower>>;
    using type =
        std::conditional_t<dual_element<a> == dual_element<b>, plain, std::conditional_t<dual_element<a>, a, b>>;
};
template <class A, class B>
    requires(meet_as_place_number<A, B>)
struct meeting<A, B> {
    using type = std::conditional_t<lane_score<A>, typename lane_element<A>::type,
                                    std::conditional_t<lane_score<B>, typename lane_element<B>::type, place_number>>;
};

template <class T, class X>
HEED_SIMD_INLINE pack<T> lanes_of(const X& x)
{
    if constexpr (std::is_same_v<X, pack<T>>) {
        return x;
    } else {
        return pack<T>(x);
    }
}

template <class T>
HEED_SIMD_INLINE pack<T> each_lane(auto&& f)
{
    pack<T> result;
    if constexpr (dual_element<T>) {
        plain_number<T> value[lane_count], slope[lane_count];
        for (std::size_t i = 0; i < lane_count; ++i) {
            const T x = f(i);
            value[i] = x.value;
            slope[i] = x.slope;
        }
        std::memcpy(&result.at.value, value, sizeof value);
        std::memcpy(&result.at.slope, slope, sizeof slope);
    } else {
        T each[lane_count];
        for (std::size_t i = 0; i < lane_count; ++i) each[i] = static_cast<T>(f(i));
        std::memcpy(&result.at, each, sizeof each);
    }
    return result;
}
/// lane_count numbers in memory.
template <class T>
HEED_SIMD_INLINE pack<T> load_lanes(const T* x)
{
    pack<T> result;
    if constexpr (dual_element<T>) {
        using part = simd::vec<plain_number<T>>;
        part value[lane_count / simd::lanes<T>], slope[lane_count / simd::lanes<T>];
        simd::unrolled<lane_count / simd::lanes<T>>([&](auto i) {
            const simd::vec<T> v = simd::load(x + i * simd::lanes<T>);
            value[i] = v.value;
            slope[i] = v.slope;
        });
        std::memcpy(&result.at.value, &value, sizeof value);
        std::memcpy(&result.at.slope, &slope, sizeof slope);
    } else if constexpr (sizeof result.at == sizeof(simd::vec<T>)) {
        result.at = simd::load(x);  // a copy of the block would go through memory, in halves, and stall there
    } else {
        std::memcpy(&result.at, x, sizeof result.at);
    }
    return result;
}
template <class T>
HEED_SIMD_INLINE void store_lanes(T* x, const pack<T>& v)
{
    if constexpr (dual_element<T>) {
        using part = simd::vec<plain_number<T>>;
        part value[lane_count / simd::lanes<T>], slope[lane_count / simd::lanes<T>];
        std::memcpy(&value, &v.at.value, sizeof value);
        std::memcpy(&slope, &v.at.slope, sizeof slope);
        simd::unrolled<lane_count / simd::lanes<T>>([&](auto i) {
            simd::store(x + i * simd::lanes<T>, simd::vec<T>{value[i], slope[i]});
        });
    } else if constexpr (sizeof v.at == sizeof(simd::vec<T>)) {
        simd::store(x, v.at);
    } else {
        std::memcpy(x, &v.at, sizeof v.at);
    }
}
template <class T>
HEED_SIMD_INLINE pack<T> each_register(const pack<T>& x, auto&& f)
{
    constexpr std::size_t count = lane_count / simd::lanes<T>;
    pack<T> result;
    if constexpr (dual_element<T>) {
        simd::vec<plain_number<T>> value[count], slope[count];
        std::memcpy(&value, &x.at.value, sizeof value);
        std::memcpy(&slope, &x.at.slope, sizeof slope);
        simd::unrolled<count>([&](auto i) {
            const simd::vec<T> y = f(simd::vec<T>{value[i], slope[i]});
            value[i] = y.value;
            slope[i] = y.slope;
        });
        std::memcpy(&result.at.value, &value, sizeof value);
        std::memcpy(&result.at.slope, &slope, sizeof slope);
    } else {
        simd::vec<T> part[count];
        std::memcpy(&part, &x.at, sizeof part);
        simd::unrolled<count>([&](auto i) { part[i] = f(part[i]); });
        std::memcpy(&result.at, &part, sizeof part);
    }
    return result;
}

template <class T>
inline constexpr bool is_place_number = std::is_same_v<T, place_number>;

template <class T>
HEED_SIMD_INLINE pack<T> pack_of(const typename lanes_in_registers<T>::type& at)
{
    pack<T> result;
    result.at = at;
    return result;
}

/// f(doubles) and f(floats) of numbers of places.
template <class T>
HEED_SIMD_INLINE pack<T> each_part(const pack<T>& x, auto&& f)
{
    pack<T> result;
    result.at.exact = f(detail::pack_of<double>(x.at.exact)).at;
    result.at.near = f(detail::pack_of<float>(x.at.near)).at;
    return result;
}

template <bool cosine, class T>
HEED_SIMD_INLINE pack<T> sines_of_places(const pack<T>& x);

template <class X>
inline constexpr bool is_dual = false;
template <class T>
inline constexpr bool is_dual<dual<T>> = true;
template <class A, class B>
concept dual_operands = (is_dual<A> && (is_dual<B> || lane_operand<B>)) || (is_dual<B> && lane_operand<A>);
template <class A, class B>
using dual_of = std::conditional_t<is_dual<A>, A, B>;

}  // namespace detail

/// Functions of lanes. Only their arguments find them: code that is `using namespace heed` has its own exp and max.
struct lane_functions {
    /// a where the mask holds, b elsewhere.
    template <class A, class B>
        requires(detail::lane_operands<A, B>)
    HEED_SIMD_INLINE friend auto select(const lane_mask& which, const A& a, const B& b)
    {
        using T = typename detail::meeting<A, B>::type;
        pack<T> result;
        const pack<T> x = detail::lanes_of<T>(a), y = detail::lanes_of<T>(b);
        if constexpr (detail::is_place_number<T>) {
            result.at.exact =
                select(which, detail::pack_of<double>(x.at.exact), detail::pack_of<double>(y.at.exact)).at;
            result.at.near = select(which, detail::pack_of<float>(x.at.near), detail::pack_of<float>(y.at.near)).at;
        } else {
            using choice = typename detail::lanes_in_registers<detail::integer_of<sizeof(plain_number<T>)>>::type;
            const choice chosen = __builtin_convertvector(which.at, choice);
            if constexpr (dual_element<T>) {
                result.at.value = chosen ? x.at.value : y.at.value;
                result.at.slope = chosen ? x.at.slope : y.at.slope;
            } else {
                result.at = chosen ? x.at : y.at;
            }
        }
        return result;
    }
    template <class A, class B>
        requires(detail::lane_operands<A, B>)
    HEED_SIMD_INLINE friend auto max(const A& a, const B& b) { return select(a > b, a, b); }
    template <class A, class B>
        requires(detail::lane_operands<A, B>)
    HEED_SIMD_INLINE friend auto min(const A& a, const B& b) { return select(a < b, a, b); }
    template <class T>
    HEED_SIMD_INLINE friend pack<T> abs(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::each_part(x, [](const auto& part) { return abs(part); });
        } else {
            return select(x < T(0), -x, x);
        }
    }

    template <detail::lane_fraction T>
    HEED_SIMD_INLINE friend pack<T> exp(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::each_part(x, [](const auto& part) { return exp(part); });
        } else {
            return detail::each_register(x, [](auto v) { return simd::exp(v); });
        }
    }
    template <detail::lane_fraction T>
    HEED_SIMD_INLINE friend pack<T> log(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::each_part(x, [](const auto& part) { return log(part); });
        } else {
            return detail::each_register(x, [](auto v) { return simd::log(v); });
        }
    }
    template <detail::lane_fraction T>
    HEED_SIMD_INLINE friend pack<T> tanh(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::each_part(x, [](const auto& part) { return tanh(part); });
        } else {
            return detail::each_register(x, [](auto v) { return simd::tanh(v); });
        }
    }
    template <detail::lane_fraction T>
    HEED_SIMD_INLINE friend pack<T> sigmoid(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::each_part(x, [](const auto& part) { return sigmoid(part); });
        } else {
            return detail::each_register(x, [](auto v) { return simd::sigmoid(v); });
        }
    }
    template <detail::lane_fraction T>
    HEED_SIMD_INLINE friend pack<T> sqrt(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::each_part(x, [](const auto& part) { return sqrt(part); });
        } else {
            return detail::each_register(x, [](auto v) { return simd::sqrt(v); });
        }
    }
    template <detail::lane_fraction T>
    HEED_SIMD_INLINE friend pack<T> sin(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::sines_of_places<false>(x);
        } else {
            return detail::each_register(x, [](auto v) { return simd::sin(v); });
        }
    }
    template <detail::lane_fraction T>
    HEED_SIMD_INLINE friend pack<T> cos(const pack<T>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            return detail::sines_of_places<true>(x);
        } else {
            return detail::each_register(x, [](auto v) { return simd::cos(v); });
        }
    }
};

/// The same of duals: a base of their own, since two empty bases of one type may not share an address, and registers
/// that are copied would lie across what was stored.
struct dual_functions {
    template <class A, class B>
        requires(detail::dual_operands<A, B>)
    HEED_SIMD_INLINE friend auto select(const lane_mask& which, const A& a, const B& b)
    {
        using D = detail::dual_of<A, B>;
        const D x(a), y(b);
        return D(select(which, x.value, y.value), select(which, x.slope, y.slope));
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> exp(const dual<T>& x)
    {
        const pack<T> y = exp(x.value);
        return {y, y * x.slope};
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> log(const dual<T>& x)
    {
        return {log(x.value), x.slope / x.value};
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> tanh(const dual<T>& x)
    {
        const pack<T> y = tanh(x.value);
        return {y, (1 - y * y) * x.slope};
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> sigmoid(const dual<T>& x)
    {
        const pack<T> y = sigmoid(x.value);
        return {y, y * (1 - y) * x.slope};
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> sqrt(const dual<T>& x)
    {
        const pack<T> y = sqrt(x.value);
        return {y, x.slope / (2 * y)};
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> abs(const dual<T>& x)
    {
        return select(x.value < T(0), -x, x);
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> sin(const dual<T>& x)
    {
        return {sin(x.value), cos(x.value) * x.slope};
    }
    template <class T>
    HEED_SIMD_INLINE friend dual<T> cos(const dual<T>& x)
    {
        return {cos(x.value), -sin(x.value) * x.slope};
    }
};

/// A register of numbers, as functions of the score and masks of places see them: arithmetic, comparisons and the
/// functions of `lane_functions`, number by number. A plain number becomes a register in which all are equal.
template <class T>
struct pack : lane_functions {
    using vector = typename detail::lanes_in_registers<T>::type;
    vector at;

    pack() = default;
    template <class U>
        requires(std::is_arithmetic_v<U> || std::is_same_v<U, T>)
    HEED_SIMD_INLINE pack(U x)
    {
        if constexpr (detail::is_place_number<T>) {
            at.exact = pack<double>(x).at;
            at.near = pack<float>(x).at;
        } else if constexpr (dual_element<T>) {
            const T each = static_cast<T>(x);
            at.value = each.value - typename vector::vector{};
            at.slope = each.slope - typename vector::vector{};
        } else {
            at = static_cast<T>(x) - vector{};
        }
    }
    template <class U>
        requires(detail::is_place_number<U>&& std::is_same_v<T, double>)
    HEED_SIMD_INLINE pack(const pack<U>& x) : at(x.at.exact) {}
    template <class U>
    HEED_SIMD_INLINE explicit pack(const pack<U>& x)
    {
        if constexpr (detail::is_place_number<T>) {
            at.exact = __builtin_convertvector(x.at, typename vector::doubles);
            at.near = __builtin_convertvector(x.at, typename vector::floats);
        } else if constexpr (detail::is_place_number<U>) {
            if constexpr (std::is_same_v<plain_number<T>, float>) {
                at = pack(detail::pack_of<float>(x.at.near)).at;
            } else {
                at = pack(detail::pack_of<double>(x.at.exact)).at;
            }
        } else if constexpr (dual_element<T>) {
            static_assert(!dual_element<U>, "heed: scores of two kinds of dual numbers");
            at.value = __builtin_convertvector(x.at, typename vector::vector);
            at.slope = typename vector::vector{};
        } else {
            at = __builtin_convertvector(x.at, vector);
        }
    }
    HEED_SIMD_INLINE T operator[](std::size_t i) const { return at[i]; }
};

namespace detail {

/// first, first + 1, ...
HEED_SIMD_INLINE pack<std::int32_t> counted_from(auto first)
{
    pack<std::int32_t> count;
    for (std::size_t i = 0; i < lane_count; ++i) count.at[i] = static_cast<std::int32_t>(i);
    count.at += static_cast<std::int32_t>(first);
    return count;
}

}  // namespace detail

#define HEED_LANES(sign)                                                                                               \
    template <class A, class B>                                                                                        \
        requires(detail::lane_operands<A, B>)                                                                          \
    HEED_SIMD_INLINE auto operator sign(const A& a, const B& b)                                                        \
    {                                                                                                                  \
        using T = typename detail::meeting<A, B>::type;                                                                \
        const pack<T> x = detail::lanes_of<T>(a), y = detail::lanes_of<T>(b);                                          \
        pack<T> result;                                                                                                \
        result.at = x.at sign y.at;                                                                                    \
        return result;                                                                                                 \
    }
HEED_LANES(+)
HEED_LANES(-)
HEED_LANES(*)
HEED_LANES(/)
HEED_LANES(%)  // of whole numbers
#undef HEED_LANES

template <class T>
HEED_SIMD_INLINE pack<T> operator-(const pack<T>& x)
{
    pack<T> result;
    result.at = -x.at;
    return result;
}

#define HEED_LANES(sign)                                                                                               \
    template <class A, class B>                                                                                        \
        requires(detail::lane_operands<A, B>)                                                                          \
    HEED_SIMD_INLINE lane_mask operator sign(const A& a, const B& b)                                                   \
    {                                                                                                                  \
        using T = typename detail::meeting<A, B>::type;                                                                \
        const pack<T> x = detail::lanes_of<T>(a), y = detail::lanes_of<T>(b);                                          \
        if constexpr (dual_element<T> || detail::is_place_number<T>) {                                                 \
            return x.at sign y.at;                                                                                     \
        } else {                                                                                                       \
            return lane_mask(__builtin_convertvector(x.at sign y.at, lane_mask::vector));                              \
        }                                                                                                              \
    }
HEED_LANES(==)
HEED_LANES(!=)
HEED_LANES(<)
HEED_LANES(<=)
HEED_LANES(>)
HEED_LANES(>=)
#undef HEED_LANES

namespace detail {

/// The sines or cosines of numbers of places: where scores are floats, rounded ones of the doubles. Angles that were
/// rounded themselves would be off by more than a score may be, far from 0.
template <bool cosine, class T>
HEED_SIMD_INLINE pack<T> sines_of_places(const pack<T>& x)
{
    const auto exact = detail::pack_of<double>(x.at.exact);
    simd::vec<double> part[2];
    std::memcpy(&part, &exact.at, sizeof part);
    pack<T> result;
    if constexpr (cosine) {
        result.at.exact = cos(exact).at;
    } else {
        result.at.exact = sin(exact).at;
    }
    result.at.near = simd::detail::rounded_sine<cosine>(part[0], part[1]);
    return result;
}

}  // namespace detail

/// A score and its derivative by the score that a function was given: the function runs once for both.
template <class T>
struct dual : dual_functions {
    pack<T> value, slope;

    dual() = default;
    HEED_SIMD_INLINE dual(const pack<T>& x, const pack<T>& by) : value(x), slope(by) {}
    template <class U>
        requires(detail::lane_operand<U>)
    HEED_SIMD_INLINE dual(const U& constant) : value(detail::lanes_of<T>(constant)), slope(T(0)) {}
};

// The slopes of constants are left out, which saves work, and NaN where a factor is infinite.
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

template <class T>
HEED_SIMD_INLINE dual<T> operator-(const dual<T>& x)
{
    return {-x.value, -x.slope};
}
}  // namespace heed
