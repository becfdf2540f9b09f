// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <concepts>
#include <cstdint>
#include <limits>

/// The two kinds of numbers of 16 bits that weights are stored in.
///
///     float16     1 sign, 5 exponent and 10 fraction bits (IEEE 754 binary16): ±65504, 3 digits
///     bfloat16    1 sign, 8 exponent and 7 fraction bits: the upper half of a float, 2 digits
namespace heed::io {

namespace detail {

/// The bits of a number that has Exponent and Fraction bits, of one that has more of the latter: rounded to the
/// nearest, ties to even; beyond the largest to infinity. A NaN keeps its sign and the upper bits of its payload.
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
    // The exponent in front of the fraction, so that a carry out of the fraction raises the exponent. At wanted <= 0
    // the number is subnormal: it loses 1 - wanted bits more.
    std::uint64_t wide = significand;
    int lost = from_fraction - Fraction;
    if (wanted > 0) {
        wide += static_cast<std::uint64_t>(wanted - 1) << from_fraction;
    } else {
        lost += 1 - wanted;
        if (lost > from_fraction + 1) return static_cast<std::uint16_t>(sign);  // less than half of the smallest
    }
    const std::uint64_t kept = wide >> lost, rest = wide & ((one << lost) - 1), half = one << (lost - 1);
    const std::uint64_t nearest = kept + (rest > half || (rest == half && (kept & 1) == 1) ? 1 : 0);
    return static_cast<std::uint16_t>(sign | (nearest < infinity ? nearest : infinity));
}

}  // namespace detail

/// A number of so many exponent and fraction bits. From float and double it rounds to the nearest, ties to even; to
/// float it is exact.
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
    friend bool operator==(const number_of_16_bits&, const number_of_16_bits&) = default;  ///< the same bits
};
using float16 = number_of_16_bits<5, 10>;
using bfloat16 = number_of_16_bits<8, 7>;

}  // namespace heed::io
