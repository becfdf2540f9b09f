// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <heed/core/cxx20.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/simd/simd.hpp>
#include <heed/simd/strided_index.hpp>

/// Registers of numbers: the arguments of functions of scores and indices (score::modified, predicate masks).
///
///     [](auto e, score_index p) { return e - 0.1 * abs(p.query - p.key); }
///
/// One expression processes a whole register, and is written as for a single number: + − * /, comparisons (whose result
/// is used in `select`, `&`, `|`, `!`), % of integers, and exp, log, tanh, sigmoid, sqrt, abs, min, max, sin, cos.
/// An integer, or a multiple of one by a fraction (place_number), takes the type of the score that it is combined with:
/// 0.1F * p.key never narrows a score in double. Scores may be dual numbers; their derivatives:
/// simd/dual_pack.hpp.
namespace heed::inline HEED_TARGET {

template <class T>
struct pack;
template <class T>
struct dual;

namespace detail {

/// All lanes; the compiler splits vectors that do not fit a register. Unaligned, so that it may be passed like any
/// struct.
template <class T>
struct lanes_in_registers {
    typedef T type __attribute__((vector_size(lane_count * sizeof(T)), aligned(sizeof(T))));
};
template <std::size_t bytes>
using integer_of = std::conditional_t<
    bytes == 8, std::int64_t,
    std::conditional_t<bytes == 4, std::int32_t, std::conditional_t<bytes == 2, std::int16_t, std::int8_t>>>;

}  // namespace detail

/// A mask of lanes: the result of a comparison.
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
HEED_SIMD_INLINE lane_mask operator&&(const lane_mask& a, const lane_mask& b) { return a & b; }  // evaluates both
HEED_SIMD_INLINE lane_mask operator||(const lane_mask& a, const lane_mask& b) { return a | b; }
HEED_SIMD_INLINE lane_mask operator!(const lane_mask& a) { return lane_mask(~a.at); }

namespace detail {

/// Values and slopes of dual numbers.
template <class T>
struct dual_lanes {
    using vector = typename lanes_in_registers<T>::type;
    vector value, slope;

    HEED_SIMD_INLINE dual_number<T> operator[](std::size_t i) const { return {value[i], slope[i]}; }

    HEED_SUMS_OF_DUALS(dual_lanes)
    HEED_SIMD_INLINE friend dual_lanes operator*(const dual_lanes& x, const dual_lanes& y)
    {
        return {x.value * y.value, x.slope * y.value + x.value * y.slope};
    }
    HEED_SIMD_INLINE friend dual_lanes operator/(const dual_lanes& x, const dual_lanes& y)
    {
        const vector quotient = x.value / y.value;
        return {quotient, (x.slope - quotient * y.slope) / y.value};
    }
    // == and != compare both parts, as those of dual_number do.
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

/// Doubles and floats of indices of scores. Comparisons use the doubles, for scores of any type.
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

/// An operand of lane arithmetic: lanes, or a number.
template <class X>
concept lane_operand = is_lanes<X> || lane_number<X>;
template <class A, class B>
concept lane_operands = lane_operand<A> && lane_operand<B> &&(is_lanes<A> || is_lanes<B>);

/// Lanes of a score, or a dual number, which makes such lanes.
template <class X>
concept lane_score = dual_element<typename lane_element<X>::type> ||
    (is_lanes<X>&& std::floating_point<typename lane_element<X>::type>);
/// Lanes of integers with a fraction of any type, or place_numbers.
template <class A, class B>
concept meet_as_place_number = std::is_same_v<A, pack<place_number>> || std::is_same_v<B, pack<place_number>> ||
                               (std::floating_point<A>&& std::is_integral_v<typename lane_element<B>::type>) ||
                               (std::floating_point<B> && std::is_integral_v<typename lane_element<A>::type>);

/// The common lane type of two operands. A constant takes the type of the lanes, and neither narrows a score nor makes
/// a kernel of floats compute in doubles. Integers with fractions become place_numbers, and both become scores when
/// combined with scores. Lanes of two precisions become the wider one; numbers without a slope become dual.
template <class A, class B>
struct meeting {
    using a = typename lane_element<A>::type;
    using b = typename lane_element<B>::type;
    using lane = std::conditional_t<is_lanes<A>, a, b>;  // at least one operand is lanes
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
/// f of each register of the lanes, in order.
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
/// lane_count numbers in memory.
template <class T>
HEED_SIMD_INLINE pack<T> load_lanes(const T* x)
{
    pack<T> result;
    if constexpr (dual_element<T>) {
        return each_register(pack<T>(T(0)),
                             [&x](const auto&) { return simd::load(std::exchange(x, x + simd::lanes<T>)); });
    } else if constexpr (sizeof result.at == simd::register_bytes) {
        // a copy of the block would go through memory, in halves, and stall there
        typename simd::detail::register_of<std::conditional_t<sizeof(T) == sizeof(float), float, double>>::type bits;
        std::memcpy(&bits, x, sizeof bits);
        result.at = reinterpret_cast<typename pack<T>::vector>(bits);
    } else {
        std::memcpy(&result.at, x, sizeof result.at);
    }
    return result;
}
template <class T>
HEED_SIMD_INLINE void store_lanes(T* x, const pack<T>& v)
{
    if constexpr (dual_element<T>) {
        each_register(v, [&x](const auto& part) {
            simd::store(std::exchange(x, x + simd::lanes<T>), part);
            return part;
        });
    } else if constexpr (sizeof v.at == sizeof(simd::vec<T>)) {
        simd::store(x, v.at);
    } else {
        std::memcpy(x, &v.at, sizeof v.at);
    }
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

/// f(doubles) and f(floats) of indices of scores.
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

}  // namespace detail

/// Functions of lanes. Only argument-dependent lookup finds them: code that is `using namespace heed` has its own exp
/// and max.
struct lane_functions {
    /// a where the mask holds, b elsewhere.
    template <class A, class B>
        requires(detail::lane_operands<A, B>)
    HEED_SIMD_INLINE friend auto select(const lane_mask& which, const A& a, const B& b)
    {
        using T = typename detail::meeting<A, B>::type;
        pack<T> result;
        const pack<T> x(a), y(b);
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

#define HEED_LANES(function, of_places)                                                                                \
    template <detail::lane_fraction T>                                                                                 \
    HEED_SIMD_INLINE friend pack<T> function(const pack<T>& x)                                                         \
    {                                                                                                                  \
        if constexpr (detail::is_place_number<T>) {                                                                    \
            return of_places;                                                                                          \
        } else {                                                                                                       \
            return detail::each_register(x, [](auto v) { return simd::function(v); });                                 \
        }                                                                                                              \
    }
    HEED_LANES(exp, detail::each_part(x, [](const auto& part) { return exp(part); }))
    HEED_LANES(log, detail::each_part(x, [](const auto& part) { return log(part); }))
    HEED_LANES(tanh, detail::each_part(x, [](const auto& part) { return tanh(part); }))
    HEED_LANES(sigmoid, detail::each_part(x, [](const auto& part) { return sigmoid(part); }))
    HEED_LANES(sqrt, detail::each_part(x, [](const auto& part) { return sqrt(part); }))
    HEED_LANES(sin, detail::sines_of_places<false>(x))
    HEED_LANES(cos, detail::sines_of_places<true>(x))
#undef HEED_LANES
};

/// A register of numbers, the argument type of functions of the score and of predicate masks: arithmetic, comparisons
/// and the functions of `lane_functions`, elementwise. A plain number is broadcast to a register.
template <class T>
struct pack : lane_functions {
    using vector = typename detail::lanes_in_registers<T>::type;
    vector at;
    HEED_NO_UNIQUE_ADDRESS detail::steps_of_lanes<T> steps;  // of indices, if known

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
        requires(detail::is_place_number<U>&& std::floating_point<T>)
    HEED_SIMD_INLINE pack(const pack<U>& x)
    {
        if constexpr (std::is_same_v<T, float>) {
            at = x.at.near;
        } else {
            at = x.at.exact;
        }
    }
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
            static_assert(!dual_element<U>, "heed: scores of two types of dual numbers cannot be combined");
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
/// first, first + per_lane, ... of an index.
HEED_SIMD_INLINE pack<std::int32_t> stepping(const strided_index& steps)
{
    pack<std::int32_t> x;
    for (std::size_t i = 0; i < lane_count; ++i) x.at[i] = steps.per_lane * static_cast<std::int32_t>(i);
    x.at += steps.first;
    x.steps = steps;
    return x;
}

template <class X>
concept whole_lanes = std::is_same_v<X, pack<std::int32_t>>;
template <class X>
concept whole_number = whole_lanes<X> || std::is_integral_v<X>;

HEED_SIMD_INLINE strided_index steps_of(const pack<std::int32_t>& x) { return x.steps; }
template <class X>
    requires(std::is_integral_v<X>)
HEED_SIMD_INLINE strided_index steps_of(X x) { return {true, static_cast<std::int32_t>(x)}; }

/// The lanes from(0), from(1), … of the concatenation of x and y.
template <int (*from)(std::size_t), class T>
HEED_SIMD_INLINE pack<T> shuffled(const pack<T>& x, const pack<T>& y)
{
    pack<T> result;
    [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline))
    {
        if constexpr (dual_element<T>) {
            result.at.value = __builtin_shufflevector(x.at.value, y.at.value, from(i)...);
            result.at.slope = __builtin_shufflevector(x.at.slope, y.at.slope, from(i)...);
        } else {
            result.at = __builtin_shufflevector(x.at, y.at, from(i)...);
        }
    }
    (std::make_index_sequence<lane_count>{});
    return result;
}
constexpr int backwards(std::size_t lane) { return static_cast<int>(lane_count - 1 - lane); }
/// The lanes in reverse order.
template <class T>
HEED_SIMD_INLINE pack<T> reversed(const pack<T>& x)
{
    return detail::shuffled<backwards>(x, x);
}

/// The functions with results in a lane_memo, for numbers from slot.first on.
enum class kept_function : std::uint64_t { sine, cosine, quotient, rest };

/// A function with its factor, which is finite and nonnegative, or its divisor, as one number. Factors leave the sign
/// bit free, and never have all exponent bits set, as divisors do here.
template <kept_function f>
HEED_SIMD_INLINE std::uint64_t name_of(double by)
{
    if constexpr (f == kept_function::sine || f == kept_function::cosine) {
        return detail::bit_cast<std::uint64_t>(by) << 1 | static_cast<std::uint64_t>(f);
    } else {
        return std::uint64_t{0xFFE} << 52 | static_cast<std::uint64_t>(f) << 32 |
               static_cast<std::uint32_t>(static_cast<std::int32_t>(by));
    }
}

template <kept_function f>
HEED_SIMD_INLINE simd::vec<float> numbers_from(std::int32_t first, double by)
{
    const pack<std::int32_t> at = counted_from(first);
    simd::vec<float> result;
    if constexpr (f == kept_function::quotient || f == kept_function::rest) {
        const auto divisor = static_cast<std::int32_t>(by);
        const auto y = f == kept_function::rest ? at.at % divisor : at.at / divisor;
        std::memcpy(&result, &y, sizeof y);
    } else {
        const auto angles = pack<double>(by).at * pack<double>(at).at;
        simd::vec<double> part[2];
        std::memcpy(&part, &angles, sizeof part);
        result = simd::detail::rounded_sine<f == kept_function::cosine>(part[0], part[1]);
    }
    return result;
}

/// Computes f ahead for distances: of all keys, and of the following queries up to the capacity.
template <kept_function f>
[[gnu::noinline]] void compute_ahead(lane_memo& memo, std::size_t k, std::int32_t lowest, std::int32_t per_lane,
                                     std::int32_t per_key, double by)
{
    constexpr auto step = static_cast<std::int32_t>(lane_count);
    constexpr std::int32_t block = 4 * step, tile = block + 96;
    const std::int32_t count = per_key == 0 ? block : memo.count(), rest = count - step;
    std::int32_t before = 0;
    if (per_key < 0) before = per_lane > 0 ? std::min(memo.keys(), count - tile) : rest;
    if (per_key > 0 && per_lane < 0) before = std::max(rest - memo.keys(), tile);
    lane_memo::slot& slot = memo.at(k);
    slot = {name_of<f>(by), 0, 0, strided_index::plus(lowest, -before), count, slot.numbers};
    for (std::int32_t i = 0; i < count; i += step)
        simd::store(slot.numbers + i, numbers_from<f>(strided_index::plus(slot.first, i), by));
}

/// f of each lane, from the results that are computed ahead; x.call is not null, and x.per_lane is 1, 0 or −1.
template <kept_function f>
HEED_SIMD_INLINE simd::vec<float> function_of_steps(const strided_index& x, double by)
{
    const std::size_t k = x.call->next++;
    const std::int32_t lowest = x.lowest();
    lane_memo::slot& slot = x.call->memo.at(k);
    auto ahead = static_cast<std::uint32_t>(lowest) - static_cast<std::uint32_t>(slot.first);
    if (slot.function != name_of<f>(by) || ahead + lane_count > static_cast<std::uint32_t>(slot.count)) [[unlikely]] {
        compute_ahead<f>(x.call->memo, k, lowest, x.per_lane, x.per_key, by);
        ahead = static_cast<std::uint32_t>(lowest) - static_cast<std::uint32_t>(slot.first);
    }
    const float* const found = slot.numbers + ahead;
    if (x.per_lane == 0) return simd::splat(*found);
    const pack<float> y = load_lanes(found);
    return x.per_lane < 0 ? detail::reversed(y).at : y.at;
}
HEED_SIMD_INLINE bool has_slot(const strided_index& x)
{
    return x.known && x.call != nullptr && x.call->next < lane_memo::slots && -1 <= x.per_lane && x.per_lane <= 1;
}

/// The sines or cosines of indices of scores: for floats, those of the doubles, rounded. Rounded angles would have
/// larger errors, far from 0.
template <bool cosine, class T>
HEED_SIMD_INLINE pack<T> sines_of_places(const pack<T>& x)
{
    const auto exact = detail::pack_of<double>(x.at.exact);
    pack<T> result;
    if constexpr (cosine) {
        result.at.exact = cos(exact).at;
    } else {
        result.at.exact = sin(exact).at;
    }
    // sin(−a x) = sin(a (−x))
    const strided_index steps = x.steps.by < 0 ? x.steps.steps * -1 : x.steps.steps;
    const double by = std::abs(x.steps.by);
    if (has_slot(steps) && by <= std::numeric_limits<double>::max()) {
        constexpr auto f = cosine ? kept_function::cosine : kept_function::sine;
        result.at.near = function_of_steps<f>(steps, by);
    } else {
        simd::vec<double> part[2];
        std::memcpy(&part, &exact.at, sizeof part);
        result.at.near = simd::detail::rounded_sine<cosine>(part[0], part[1]);
    }
    return result;
}

/// Divides equal lanes once, and consecutive lanes for some keys ahead.
template <kept_function f>
HEED_SIMD_INLINE void divided_steps(const strided_index& x, std::int32_t by, pack<std::int32_t>& result)
{
    if (x.known && x.per_lane == 0) {
        const std::int32_t y = f == kept_function::rest ? x.first % by : x.first / by;
        result = pack<std::int32_t>(y);
        result.steps = {true, y, 0, x.per_key == 0 ? 0 : strided_index::any, x.call};
    } else if (has_slot(x) && x.per_key != 0 && (by & (by - 1)) != 0) {  // division by a power of two is fast
        const simd::vec<float> y = function_of_steps<f>(x, by);
        std::memcpy(&result.at, &y, sizeof y);
    }
}

/// Sets the known steps of the result of a `sign` b.
template <char sign, class A, class B, class T>
HEED_SIMD_INLINE void take_steps(const A& a, const B& b, pack<T>& result)
{
    if constexpr (sign == '+' && whole_number<A> && whole_number<B>) {
        result.steps = steps_of(a) + steps_of(b);
    } else if constexpr (sign == '-' && whole_number<A> && whole_number<B>) {
        result.steps = steps_of(a) + steps_of(b) * -1;
    } else if constexpr (sign == '*' && whole_lanes<B> && !whole_lanes<A>) {
        take_steps<sign>(b, a, result);
    } else if constexpr (sign == '*' && whole_lanes<A> && std::is_integral_v<B>) {
        result.steps = a.steps * static_cast<std::int32_t>(b);
    } else if constexpr (sign == '*' && whole_lanes<A> && std::floating_point<B>) {
        result.steps = {a.steps, static_cast<double>(b)};
    } else if constexpr (sign == '/' && std::is_same_v<A, pack<place_number>> && std::is_arithmetic_v<B>) {
        result.at.near = a.at.near * static_cast<float>(1 / static_cast<double>(b));  // once for all keys
    } else if constexpr ((sign == '/' || sign == '%') && whole_lanes<A> && std::is_integral_v<B> &&
                         std::is_same_v<T, std::int32_t>) {
        constexpr auto f = sign == '/' ? kept_function::quotient : kept_function::rest;
        divided_steps<f>(a.steps, static_cast<std::int32_t>(b), result);
    }
}

}  // namespace detail

#define HEED_LANES(sign)                                                                                               \
    template <class A, class B>                                                                                        \
        requires(detail::lane_operands<A, B>)                                                                          \
    HEED_SIMD_INLINE auto operator sign(const A& a, const B& b)                                                        \
    {                                                                                                                  \
        using T = typename detail::meeting<A, B>::type;                                                                \
        const pack<T> x(a), y(b);                                                                                      \
        pack<T> result;                                                                                                \
        result.at = x.at sign y.at;                                                                                    \
        detail::take_steps<*#sign>(a, b, result);                                                                      \
        return result;                                                                                                 \
    }
HEED_LANES(+)
HEED_LANES(-)
HEED_LANES(*)
HEED_LANES(/)
HEED_LANES(%)  // of integers
#undef HEED_LANES

template <class T>
HEED_SIMD_INLINE pack<T> operator-(const pack<T>& x)
{
    pack<T> result;
    result.at = -x.at;
    if constexpr (std::is_same_v<T, std::int32_t>) result.steps = x.steps * -1;
    return result;
}

#define HEED_LANES(sign)                                                                                               \
    template <class A, class B>                                                                                        \
        requires(detail::lane_operands<A, B>)                                                                          \
    HEED_SIMD_INLINE lane_mask operator sign(const A& a, const B& b)                                                   \
    {                                                                                                                  \
        using T = typename detail::meeting<A, B>::type;                                                                \
        const pack<T> x(a), y(b);                                                                                      \
        return lane_mask(x.at sign y.at);                                                                              \
    }
HEED_LANES(==)
HEED_LANES(!=)
HEED_LANES(<)
HEED_LANES(<=)
HEED_LANES(>)
HEED_LANES(>=)
#undef HEED_LANES

}  // namespace heed::inline HEED_TARGET
