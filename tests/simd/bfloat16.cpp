// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/bfloat16.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <support/bfloat16.hpp>

using namespace heed;
using simd::bfloat16_pairs, simd::lanes, simd::vec;
using support::rounded_to_bfloat16;

namespace {

constexpr std::size_t one = lanes<float>;
constexpr float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();

float float_of(std::uint32_t bits)
{
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
/// A number of a pair: 0 or 1.
float of_pair(const bfloat16_pairs& x, std::size_t lane, std::size_t which)
{
    const auto bits = static_cast<std::uint32_t>(x[lane]);
    return float_of(which == 0 ? bits << 16 : bits & 0xffff0000u);
}
bool same(float is, float must)
{
    return std::isnan(must) ? std::isnan(is) : is == must && std::signbit(is) == std::signbit(must);
}

/// Numbers of every exponent, numbers halfway between two of bfloat16 and next to these, and special ones; none is
/// subnormal.
std::vector<float> numbers()
{
    std::vector<float> x{0,
                         -0.0F,
                         1,
                         -1,
                         infinity,
                         -infinity,
                         std::nanf(""),
                         -std::nanf(""),
                         most,
                         -most,
                         3.3895e38F,
                         3.3961775e38F,
                         1.17549435e-38F};
    for (const std::uint32_t payload : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu})
        x.push_back(float_of(payload));
    for (std::uint32_t i = 0; i < 4000; ++i) {
        const auto some = static_cast<std::uint32_t>(mix(i));
        const std::uint32_t exponent = 1 + i % 254, sign = some & 0x80000000u, mantissa = some & 0x007fffffu;
        x.push_back(float_of(sign | exponent << 23 | mantissa));
        for (const std::uint32_t rest : {0x8000u, 0x7fffu, 0x8001u})
            x.push_back(float_of(sign | exponent << 23 | (mantissa & 0x007f0000u) | rest));
    }
    x.resize((x.size() + 2 * one - 1) / (2 * one) * 2 * one, 1.0F);
    return x;
}

/// Small integers, including 0.
bfloat16_pairs whole(std::uint64_t stream)
{
    vec<float> a, b;
    for (std::size_t i = 0; i < one; ++i) {
        a[i] = static_cast<float>(static_cast<int>(mix(stream + i) % 33) - 16);
        b[i] = static_cast<float>(static_cast<int>(mix(stream + i + 100) % 33) - 16);
    }
    return simd::pairs_of_rows(a, b);
}

}  // namespace

TEST_CASE("numbers are rounded to the nearest, ties to even, with the instructions and without")
{
    const auto x = numbers();
    std::size_t wrong = 0, ties = 0;
    for (std::size_t i = 0; i < x.size(); i += 2 * one) {
        const vec<float> a = simd::load(&x[i]), b = simd::load(&x[i + one]);
        const bfloat16_pairs of_rows = simd::pairs_of_rows(a, b), in_row = simd::pairs_in_row(a, b),
                             portable = simd::detail::portable_pairs(a, b),
                             portable_in_row =
                                 simd::detail::portable_pairs_in_row(a, b, std::make_index_sequence<one>{});
        for (std::size_t lane = 0; lane < one; ++lane) {
            for (const std::size_t which : {0u, 1u}) {
                const float row = rounded_to_bfloat16(x[i + which * one + lane]),
                            neighbor = rounded_to_bfloat16(x[i + 2 * lane + which]);
                wrong += !same(simd::rounded_to_bfloat16(which == 0 ? a : b)[lane], row);
                wrong += !same(of_pair(of_rows, lane, which), row) || !same(of_pair(portable, lane, which), row);
                wrong += !same(of_pair(in_row, lane, which), neighbor) ||
                         !same(of_pair(portable_in_row, lane, which), neighbor);
                std::uint32_t bits;
                std::memcpy(&bits, &x[i + which * one + lane], sizeof bits);
                ties += (bits & 0xffffu) == 0x8000u;
            }
        }
    }
    CHECK(wrong == 0);
    CHECK(ties >= 1000);
}

TEST_CASE("subnormal numbers are rounded to the nearest, or are 0")
{
    const float subnormal = std::numeric_limits<float>::min() * 0.7F, half = std::ldexp(1.0F, -134);
    REQUIRE(subnormal > half);
    const bfloat16_pairs both = simd::pairs_of_rows(simd::splat(subnormal), simd::splat(-subnormal));
    for (std::size_t lane = 0; lane < one; ++lane) {
        CHECK((of_pair(both, lane, 0) == 0 || std::fabs(of_pair(both, lane, 0) - subnormal) <= half));
        CHECK(of_pair(both, lane, 1) == -of_pair(both, lane, 0));
    }
}

TEST_CASE("sums of products: exact where float is, else rounded at most as often as there are additions")
{
    std::size_t inexact = 0, beyond = 0, apart = 0;
    for (std::uint64_t i = 0; i < 500; ++i) {
        const bfloat16_pairs a = whole(1000 * i), b = whole(1000 * i + 500);
        const vec<float> start = simd::splat(static_cast<float>(i));
        const vec<float> is = simd::dot_pairs(start, a, b), portable = simd::detail::portable_dot_pairs(start, a, b);
        // Numbers of the whole range of a float's exponents but the ends, where products overflow.
        vec<float> rows[4], sum;
        for (std::size_t lane = 0; lane < one; ++lane) {
            const float must =
                start[lane] + of_pair(a, lane, 0) * of_pair(b, lane, 0) + of_pair(a, lane, 1) * of_pair(b, lane, 1);
            inexact += is[lane] != must || portable[lane] != must;
            const auto random = [&](std::uint64_t stream) {
                return static_cast<float>(normal(mix(stream), 100 * i + lane) *
                                          std::ldexp(1, static_cast<int>(i % 40) - 20));
            };
            for (std::uint64_t r = 0; r < 4; ++r) rows[r][lane] = random(r);
            sum[lane] = random(4);
        }
        const bfloat16_pairs x = simd::pairs_of_rows(rows[0], rows[1]), y = simd::pairs_of_rows(rows[2], rows[3]);
        const vec<float> dots = simd::dot_pairs(sum, x, y), by_floats = simd::detail::portable_dot_pairs(sum, x, y);
        for (std::size_t lane = 0; lane < one; ++lane) {
            double must = sum[lane], size = std::fabs(must);
            for (const std::size_t which : {0u, 1u}) {
                const double product = static_cast<double>(of_pair(x, lane, which)) * of_pair(y, lane, which);
                must += product;
                size += std::fabs(product);
            }
            const double bound = 2.01 * std::ldexp(size, -24);
            beyond += !(std::fabs(dots[lane] - must) <= bound);
            apart += !(std::fabs(by_floats[lane] - must) <= bound);
        }
    }
    CHECK(inexact == 0);
    CHECK(beyond == 0);
    CHECK(apart == 0);
}

TEST_CASE("the target's name says whether the compiler may use the instructions")
{
#if defined(__AVX512BF16__)
    constexpr bool has_instructions = true;
#else
    constexpr bool has_instructions = false;
#endif
    CHECK((std::string_view(HEED_TARGET_NAME).find("_bf16") != std::string_view::npos) == has_instructions);
}

TEST_CASE("0 times infinity and NaN are NaN, as in float")
{
    const vec<float> zero{}, ones = simd::splat(1.0F);
    for (const float special : {infinity, -infinity, std::nanf("")}) {
        for (const bool first : {false, true}) {
            const vec<float> x = simd::splat(special);
            const bfloat16_pairs a = first ? simd::pairs_of_rows(x, ones) : simd::pairs_of_rows(ones, x),
                                 by_zero = simd::pairs_of_rows(zero, zero), by_one = simd::pairs_of_rows(ones, ones);
            CHECK(std::isnan(simd::dot_pairs(ones, a, by_zero)[0]));
            CHECK(std::isnan(simd::detail::portable_dot_pairs(ones, a, by_zero)[0]));
            CHECK(same(simd::dot_pairs(ones, a, by_one)[0], special));
            CHECK(same(simd::detail::portable_dot_pairs(ones, a, by_one)[0], special));
        }
    }
}
