// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/dtype.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

using namespace heed::io;

TEST_CASE("conversions that keep every value are known")
{
    for (const auto& pair : {std::pair{"F16", "F32"},
                             {"BF16", "F32"},
                             {"BF16", "F64"},
                             {"F32", "F64"},
                             {"U8", "I16"},
                             {"U8", "F16"},
                             {"I8", "BF16"},
                             {"I32", "F64"},
                             {"I32", "I64"},
                             {"U32", "I64"},
                             {"I16", "F32"},
                             {"BOOL", "U8"},
                             {"BOOL", "F32"},
                             {"F8_E4M3", "F8_E4M3"}}) {
        CAPTURE(pair.first);
        CAPTURE(pair.second);
        CHECK(reads_as(pair.first, pair.second));
    }
    for (const auto& pair : {std::pair{"F32", "F16"},
                             {"F16", "BF16"},
                             {"BF16", "F16"},
                             {"F64", "F32"},
                             {"I32", "F32"},
                             {"I64", "F64"},
                             {"U8", "I8"},
                             {"I8", "U8"},
                             {"I8", "U64"},
                             {"U64", "I64"},
                             {"U8", "BOOL"},
                             {"F32", "I64"},
                             {"F16", "I64"},
                             {"I16", "F16"},
                             {"F8_E4M3", "F32"}}) {
        CAPTURE(pair.first);
        CAPTURE(pair.second);
        CHECK(!reads_as(pair.first, pair.second));
    }
    CHECK(dtype_size("F16") == 2u);
    CHECK(dtype_size("BOOL") == 1u);
    CHECK(!dtype_size("F8_E4M3"));
    static_assert(storable<float16> && storable<bool> && storable<std::int8_t> && !storable<char>);
}

namespace {

/// The value of a number with these bits, by definition.
double defined_value(std::uint32_t bits, int exponent_bits, int fraction_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> fraction_bits & ((1u << exponent_bits) - 1));
    const double fraction = std::ldexp(static_cast<double>(bits & ((1u << fraction_bits) - 1)), -fraction_bits);
    const double sign = bits >> (exponent_bits + fraction_bits) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) {
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    }
    return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1 + fraction, exponent - bias);
}

template <class Half>
void check_all_patterns(int exponent_bits, int fraction_bits)
{
    std::size_t wrong = 0, changed = 0, from_double = 0;
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const Half half = Half::of_bits(static_cast<std::uint16_t>(bits));
        const float is = static_cast<float>(half);
        const double must = defined_value(bits, exponent_bits, fraction_bits);
        wrong += !(std::isnan(must) ? std::isnan(is) : is == must && std::signbit(is) == std::signbit(must));
        changed += Half(is) != half;  // NaNs included
        if (!std::isnan(must)) from_double += Half(must) != half;
    }
    CHECK(wrong == 0);
    CHECK(changed == 0);
    CHECK(from_double == 0);
}

/// Between all neighbors: the midpoint rounds to even, anything else to the nearer neighbor.
template <class Half>
void check_rounding(std::uint16_t infinity)
{
    std::size_t wrong = 0;
    for (std::uint32_t bits = 0; bits + 1 < infinity; ++bits) {
        const auto lower = static_cast<std::uint16_t>(bits), upper = static_cast<std::uint16_t>(bits + 1);
        const double a = static_cast<float>(Half::of_bits(lower)), b = static_cast<float>(Half::of_bits(upper));
        const double middle = (a + b) / 2;
        const std::uint16_t even = lower % 2 == 0 ? lower : upper;
        for (const double sign : {1.0, -1.0}) {
            const auto rounds = [&](auto x, std::uint16_t to) {
                wrong += Half(x).bits != static_cast<std::uint16_t>(to | (sign < 0 ? 0x8000u : 0u));
            };
            rounds(sign * middle, even);
            rounds(sign * std::nextafter(middle, 0.0), lower);
            rounds(sign * std::nextafter(middle, 1e300), upper);
            const auto in_float = static_cast<float>(middle);
            if (static_cast<double>(in_float) == middle) {
                rounds(static_cast<float>(sign) * in_float, even);
                rounds(static_cast<float>(sign) * std::nextafter(in_float, 0.0F), lower);
                rounds(static_cast<float>(sign) * std::nextafter(in_float, std::numeric_limits<float>::max()), upper);
            }
        }
    }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("each of the 65,536 patterns is the float of its definition and survives a round trip")
{
    check_all_patterns<float16>(5, 10);
    check_all_patterns<heed::io::bfloat16>(8, 7);
}

TEST_CASE("floats and doubles round to nearest, ties to even")
{
    check_rounding<float16>(0x7C00);
    check_rounding<heed::io::bfloat16>(0x7F80);
}

TEST_CASE("overflow and underflow follow IEEE 754")
{
    constexpr float infinity = std::numeric_limits<float>::infinity();
    CHECK(static_cast<float>(float16(65504.0F)) == 65504.0F);
    CHECK(static_cast<float>(float16(65519.996F)) == 65504.0F);
    CHECK(static_cast<float>(float16(65520.0F)) == infinity);
    CHECK(static_cast<float>(float16(-1e300)) == -infinity);
    CHECK(static_cast<float>(float16(infinity)) == infinity);
    CHECK(static_cast<float>(heed::io::bfloat16(std::numeric_limits<float>::max())) == infinity);
    CHECK(static_cast<float>(heed::io::bfloat16(1e300)) == infinity);
    CHECK(float16(0x1p-25).bits == 0);  // half of the smallest rounds to the even 0
    CHECK(float16(0x1.0000001p-25).bits == 1);
    CHECK(float16(-0x1p-26F).bits == 0x8000);
    CHECK(float16(5e-324).bits == 0);
    CHECK(float16(std::numeric_limits<float>::denorm_min()).bits == 0);
    CHECK(heed::io::bfloat16(std::numeric_limits<float>::denorm_min()).bits == 0);
    CHECK(heed::io::bfloat16(0x1p-133F).bits == 1);
    CHECK(heed::io::bfloat16(5e-324).bits == 0);
    // Rounded once: rounded to float first, this double would become a tie and round down.
    CHECK(float16(1 + 0x1p-11 + 0x1p-40).bits == 0x3C01);
    static_assert(float16(1.5F).bits == 0x3E00 && static_cast<float>(heed::io::bfloat16(-2.0)) == -2.0F);
}

TEST_CASE("a NaN stays NaN, even if only its lowest bits are set")
{
    CHECK(std::isnan(static_cast<float>(float16(std::bit_cast<float>(0x7F800001u)))));
    CHECK(std::isnan(static_cast<float>(heed::io::bfloat16(std::bit_cast<float>(0xFF800001u)))));
    CHECK(heed::io::bfloat16(std::bit_cast<float>(0xFF800001u)).bits == 0xFFC0);
    CHECK(float16(std::bit_cast<double>(0x7FF0000000000001u)).bits == 0x7E00);
}

#if defined(__FLT16_MANT_DIG__) && !defined(__clang__)
TEST_CASE("conversions equal those of the compiler's _Float16")
{
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < 4'000'000; ++i) {
        const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761u));
        if (std::isnan(x)) continue;
        wrong += std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)) != float16(x).bits;
    }
    CHECK(wrong == 0);
}
#endif
