// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include <heed/core/cxx20.hpp>

/// The number types of files, with their names in safetensors.
///
///     F64 F32             double, float
///     F16                 float16: 5 exponent and 10 fraction bits (IEEE 754 binary16), ±65504, 3 digits
///     BF16                bfloat16: 8 exponent and 7 fraction bits, the upper half of a float, 2 digits
///     I64 I32 I16 I8      std::int64_t, …
///     U64 U32 U16 U8      std::uint64_t, …
///     BOOL                bool, one byte
namespace heed::inline HEED_TARGET::io {

static_assert(std::endian::native == std::endian::little, "heed reads and writes files of numbers on little-endian "
                                                          "machines");

namespace detail {

/// The 16 bits of x with Exponent and Fraction bits, fewer fraction bits than From has. Rounds to nearest, ties to
/// even; values beyond the largest become infinity. A NaN keeps its sign and the upper bits of its payload.
template <int Exponent, int Fraction, std::floating_point From>
constexpr std::uint16_t rounded_bits(From x)
{
    constexpr int from_fraction = std::numeric_limits<From>::digits - 1;
    constexpr int from_exponent = int(8 * sizeof(From)) - 1 - from_fraction;
    constexpr std::uint64_t one = 1;
    constexpr std::uint64_t infinity = ((one << Exponent) - 1) << Fraction;
    constexpr int from_bias = (1 << (from_exponent - 1)) - 1, bias = (1 << (Exponent - 1)) - 1;

    std::uint64_t bits = 0;
    if constexpr (sizeof(From) == 4) {
        bits = heed::detail::bit_cast<std::uint32_t>(x);
    } else {
        bits = heed::detail::bit_cast<std::uint64_t>(x);
    }
    const std::uint64_t sign = bits >> (8 * sizeof(From) - 1) << (Exponent + Fraction);
    const std::uint64_t fraction = bits & ((one << from_fraction) - 1);
    const int exponent = static_cast<int>(bits >> from_fraction & ((one << from_exponent) - 1));
    if (exponent == (1 << from_exponent) - 1) {
        const std::uint64_t payload = fraction >> (from_fraction - Fraction);
        const std::uint64_t kept = fraction != 0 && payload == 0 ? one << (Fraction - 1) : payload;
        return static_cast<std::uint16_t>(sign | infinity | kept);
    }
    const std::uint64_t significand = fraction | (exponent > 0 ? one << from_fraction : 0);
    const int wanted = (exponent > 0 ? exponent : 1) - from_bias + bias;
    // The exponent is placed before the fraction, so that a carry out of the fraction increments the exponent. If
    // wanted <= 0, the number is subnormal: it loses 1 - wanted additional bits.
    std::uint64_t wide = significand;
    int lost = from_fraction - Fraction;
    if (wanted > 0) {
        wide += static_cast<std::uint64_t>(wanted - 1) << from_fraction;
    } else {
        lost += 1 - wanted;
        if (lost > from_fraction + 1) return static_cast<std::uint16_t>(sign);  // less than half of the smallest number
    }
    const std::uint64_t kept = wide >> lost, rest = wide & ((one << lost) - 1), half = one << (lost - 1);
    const std::uint64_t nearest = kept + (rest > half || (rest == half && (kept & 1) == 1) ? 1 : 0);
    return static_cast<std::uint16_t>(sign | (nearest < infinity ? nearest : infinity));
}

}  // namespace detail

/// A floating-point number with these exponent and fraction bits. Converts from float and double by rounding to
/// nearest, ties to even.
template <int Exponent, int Fraction>
struct number_of_16_bits {
    std::uint16_t bits = 0;

    constexpr number_of_16_bits() = default;
    constexpr explicit number_of_16_bits(std::floating_point auto x) : bits(detail::rounded_bits<Exponent, Fraction>(x))
    {}
    /// The number with these bits.
    static constexpr number_of_16_bits of_bits(std::uint16_t bits)
    {
        number_of_16_bits x;
        x.bits = bits;
        return x;
    }
    constexpr explicit operator float() const
    {
        if constexpr (Exponent == 8) {
            return heed::detail::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
        } else {
            const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3FFu;
            if (exponent == 31) return heed::detail::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
            if (exponent > 0) return heed::detail::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
            const float size = static_cast<float>(fraction) * 0x1p-24F;
            return heed::detail::bit_cast<float>(sign | heed::detail::bit_cast<std::uint32_t>(size));
        }
    }
    friend bool operator==(const number_of_16_bits&, const number_of_16_bits&) = default;  ///< compares the bits
};
using float16 = number_of_16_bits<5, 10>;  // IEEE 754 binary16
using bfloat16 = number_of_16_bits<8, 7>;  // the upper half of a float

namespace detail {

template <class... Each>
struct type_list {
    template <class T>
    static constexpr bool has = (std::same_as<T, Each> || ...);
};

using stored_types = type_list<double, float, float16, bfloat16, std::int64_t, std::int32_t, std::int16_t, std::int8_t,
                               std::uint64_t, std::uint32_t, std::uint16_t, std::uint8_t, bool>;

template <class T>
constexpr std::string_view name_of_dtype()
{
    if constexpr (std::same_as<T, bool>) return "BOOL";
    if constexpr (std::same_as<T, float16>) return "F16";
    if constexpr (std::same_as<T, bfloat16>) return "BF16";
    if constexpr (std::floating_point<T>) return sizeof(T) == 8 ? "F64" : "F32";
    if constexpr (std::is_signed_v<T>)
        return sizeof(T) == 8 ? "I64" : sizeof(T) == 4 ? "I32" : sizeof(T) == 2 ? "I16" : "I8";
    return sizeof(T) == 8 ? "U64" : sizeof(T) == 4 ? "U32" : sizeof(T) == 2 ? "U16" : "U8";
}

/// Calls f(std::type_identity<T>{}) for the type of this name. Returns whether it exists.
template <class F, class... Each>
constexpr bool with_type(std::string_view dtype, type_list<Each...>, F&& f)
{
    return ((dtype == name_of_dtype<Each>() ? (f(std::type_identity<Each>{}), true) : false) || ...);
}
constexpr bool with_type(std::string_view dtype, auto&& f) { return detail::with_type(dtype, stored_types{}, f); }

/// The number of binary digits of a type's integer or significand.
template <class T>
constexpr int digits_of()
{
    if constexpr (std::same_as<T, float16>) return 11;
    if constexpr (std::same_as<T, bfloat16>) return 8;
    return std::numeric_limits<T>::digits;
}

template <class T>
inline constexpr bool is_fraction = std::floating_point<T> || std::same_as<T, float16> || std::same_as<T, bfloat16>;

/// Is every value of From also a value of To?
template <class From, class To>
constexpr bool holds_every()
{
    if (std::same_as<From, To>) return true;
    if (std::same_as<To, bool> || (is_fraction<From> && !is_fraction<To>)) return false;
    if (std::same_as<From, bool>) return true;
    // Neither 16-bit format contains the other.
    if (digits_of<From>() > digits_of<To>() || (std::same_as<From, bfloat16> && std::same_as<To, float16>))
        return false;
    return is_fraction<To> || std::is_unsigned_v<From> || std::is_signed_v<To>;
}

/// Converts exactly if possible, else rounds to nearest.
template <class To, class From>
constexpr To as_number(From x)
{
    if constexpr (std::same_as<From, To>) {
        return x;
    } else if constexpr (std::same_as<From, float16> || std::same_as<From, bfloat16>) {
        return detail::as_number<To>(static_cast<float>(x));
    } else if constexpr (std::same_as<To, float16> || std::same_as<To, bfloat16>) {
        if constexpr (std::floating_point<From>) {
            return To(x);
        } else {
            return To(static_cast<double>(x));
        }
    } else {
        return static_cast<To>(x);
    }
}

}  // namespace detail

/// A number type that files can store: see the table above.
template <class T>
concept storable = detail::stored_types::has<T>;

/// The name of T in files.
template <storable T>
inline constexpr std::string_view dtype_name = detail::name_of_dtype<T>();

/// All names, for messages.
inline constexpr std::string_view dtype_names = "F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 and BOOL";

/// Bytes per value of this dtype; nullopt for a dtype that heed cannot read.
constexpr std::optional<std::size_t> dtype_size(std::string_view dtype)
{
    std::optional<std::size_t> size;
    detail::with_type(dtype, [&](auto type) { size = sizeof(typename decltype(type)::type); });
    return size;
}

/// Whether every value of the stored dtype is also a value of dtype `as`, so that it may be read as `as`: F16 as F32,
/// U8 as I32.
constexpr bool reads_as(std::string_view stored, std::string_view as)
{
    bool holds = stored == as;
    detail::with_type(stored, [&](auto from) {
        detail::with_type(as, [&](auto to) {
            holds = detail::holds_every<typename decltype(from)::type, typename decltype(to)::type>();
        });
    });
    return holds;
}

}  // namespace heed::inline HEED_TARGET::io
