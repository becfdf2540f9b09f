// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/simd/registers.hpp>

#if defined(HEED_SIMD_AVX512) && defined(__AVX512BF16__)
#define HEED_SIMD_BFLOAT16
#endif

/// Registers of pairs of bfloat16 (BF16: a float without the last 16 bits of its mantissa), and sums of their products.
///
///     sum + a_0 b_0 + a_1 b_1        in each lane of 32 bits: a float and two pairs
///
/// Numbers are rounded to nearest, ties to even: by at most 2⁻⁸ of their magnitude. Infinity and NaN are preserved;
/// above 3.39e38 a number becomes infinity. With the instructions of AVX512-BF16, subnormal numbers (below 1.2e-38)
/// count as 0, in operands and in sums. Without them, this holds during the lifetime of a `without_subnormals`.
namespace heed::inline HEED_TARGET::simd {

/// Two numbers in each lane, the first in its lower half.
using bfloat16_pairs = mask<float>;

/// Each number rounded to bfloat16, as a float.
HEED_SIMD_INLINE vec<float> rounded_to_bfloat16(vec<float> x)
{
    const mask<float> bits = select(x == x, bits_of(x), mask<float>{} + 0x7fc00000);
    return bits_as(x, (bits + 0x7fff + ((bits >> 16) & 1)) & -0x10000);
}

namespace detail {

HEED_SIMD_INLINE vec<float> first_of_pairs(bfloat16_pairs x) { return bits_as(vec<float>{}, x << 16); }
HEED_SIMD_INLINE vec<float> second_of_pairs(bfloat16_pairs x) { return bits_as(vec<float>{}, x & -0x10000); }

// Portable versions. Tests compare them with the instructions.

HEED_SIMD_INLINE bfloat16_pairs portable_pairs(vec<float> a, vec<float> b)
{
    return ((bits_of(rounded_to_bfloat16(a)) >> 16) & 0xffff) | bits_of(rounded_to_bfloat16(b));
}
/// A product of two bfloat16 is exact in float, so the result is the same whether `fma` rounds once or twice.
HEED_SIMD_INLINE vec<float> portable_dot_pairs(vec<float> sum, bfloat16_pairs a, bfloat16_pairs b)
{
    sum = fma(second_of_pairs(a), second_of_pairs(b), sum);
    return fma(first_of_pairs(a), first_of_pairs(b), sum);
}
template <std::size_t... i>
HEED_SIMD_INLINE bfloat16_pairs portable_pairs_in_row(vec<float> a, vec<float> b, std::index_sequence<i...>)
{
    return portable_pairs(__builtin_shufflevector(a, b, (2 * i)...), __builtin_shufflevector(a, b, (2 * i + 1)...));
}

#if defined(HEED_SIMD_BFLOAT16)
template <std::size_t... i>
HEED_SIMD_INLINE auto interleaved_halves(auto x, std::index_sequence<i...>)
{
    return __builtin_shufflevector(x, x, (i % 2 * sizeof...(i) / 2 + i / 2)...);
}
#endif

}  // namespace detail

/// The pairs (a_i, b_i) of two rows.
HEED_SIMD_INLINE bfloat16_pairs pairs_of_rows(vec<float> a, vec<float> b)
{
#if defined(HEED_SIMD_BFLOAT16)
    typedef short halves __attribute__((vector_size(register_bytes)));
    return reinterpret_cast<bfloat16_pairs>(detail::interleaved_halves(
        reinterpret_cast<halves>(_mm512_cvtne2ps_pbh(b, a)), std::make_index_sequence<2 * lanes<float>>{}));
#else
    return detail::portable_pairs(a, b);
#endif
}

/// The pairs of neighbors in a row of two registers, `a` followed by `b`.
HEED_SIMD_INLINE bfloat16_pairs pairs_in_row(vec<float> a, vec<float> b)
{
#if defined(HEED_SIMD_BFLOAT16)
    return reinterpret_cast<bfloat16_pairs>(_mm512_cvtne2ps_pbh(b, a));
#else
    return detail::portable_pairs_in_row(a, b, std::make_index_sequence<lanes<float>>{});
#endif
}

/// sum + a_0 b_0 + a_1 b_1
HEED_SIMD_INLINE vec<float> dot_pairs(vec<float> sum, bfloat16_pairs a, bfloat16_pairs b)
{
#if defined(HEED_SIMD_BFLOAT16)
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
#else
    return detail::portable_dot_pairs(sum, a, b);
#endif
}

}  // namespace heed::inline HEED_TARGET::simd
