// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heed/kernels/registers.hpp>

/// Numbers of a table that a register of indices finds.
///
///     y_i = table[at_i]        0 <= at_i < size, for numbers of 32 bits
///
/// Neighbours among the queries of a tile mostly look neighbours in the table up, in whatever order: distances one
/// after the other, the same key for all, the same bucket for some. If no index is farther from the first one than a
/// register is long, two loads and a permutation find all numbers.
namespace heed::simd {

namespace detail {

#if defined(HEED_SIMD_AVX512)
/// The first lanes, `count` of them; all if there are more.
HEED_SIMD_INLINE __mmask16 first_lanes(std::int32_t count)
{
    return static_cast<__mmask16>((1u << std::min(std::max(count, 0), 16)) - 1u);
}
#elif defined(HEED_SIMD_AVX) && defined(__AVX2__)
HEED_SIMD_INLINE __m256i first_lanes(std::int32_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

}  // namespace detail

/// The nearest of 0 ... n - 1.
HEED_SIMD_INLINE mask<float> within(std::int32_t n, mask<float> at)
{
#if defined(HEED_SIMD_AVX512)
    return mask<float>(_mm512_maskz_min_epi32(
        HEED_SIMD_ALL16, _mm512_maskz_max_epi32(HEED_SIMD_ALL16, __m512i(at), __m512i{}), _mm512_set1_epi32(n - 1)));
#elif defined(HEED_SIMD_AVX) && defined(__AVX2__)
    return mask<float>(_mm256_min_epi32(_mm256_max_epi32(__m256i(at), __m256i{}), _mm256_set1_epi32(n - 1)));
#else
    const mask<float> most = mask<float>{} + (n - 1);
    at = select(at > 0, at, mask<float>{});
    return select(at < most, at, most);
#endif
}

/// The bits of table[at_i]; `table` has `size` > 0 numbers of 32 bits, and none of the indices is beyond them.
HEED_SIMD_INLINE mask<float> look_up(const void* table, [[maybe_unused]] std::int32_t size, mask<float> at)
{
    [[maybe_unused]] constexpr auto length = static_cast<std::int32_t>(lanes<float>);
    const auto* const numbers = static_cast<const char*>(table);
#if defined(HEED_SIMD_AVX512)
    const std::int32_t begin = std::max(std::min(at[0] - length, size - 2 * length), 0);
    const mask<float> there = at - begin;
    if (_mm512_test_epi32_mask(__m512i(there), _mm512_set1_epi32(~(2 * length - 1))) == 0) {
        const char* const from = numbers + 4 * static_cast<std::ptrdiff_t>(begin);
        const __m512i low = _mm512_maskz_loadu_epi32(detail::first_lanes(size), from),
                      high = _mm512_maskz_loadu_epi32(detail::first_lanes(size - length), from + register_bytes);
        return mask<float>(_mm512_permutex2var_epi32(low, __m512i(there), high));
    }
    return mask<float>(_mm512_mask_i32gather_epi32(__m512i{}, HEED_SIMD_ALL16, __m512i(at), numbers, 4));
#else
#if defined(HEED_SIMD_AVX) && defined(__AVX2__)
    const std::int32_t begin = std::max(std::min(at[0] - length, size - 2 * length), 0);
    const mask<float> there = at - begin;
    if (_mm256_testz_si256(__m256i(there), _mm256_set1_epi32(~(2 * length - 1))) != 0) {
        const char* const from = numbers + 4 * static_cast<std::ptrdiff_t>(begin);
        const __m256i low = _mm256_maskload_epi32(reinterpret_cast<const int*>(from), detail::first_lanes(size)),
                      high = _mm256_maskload_epi32(reinterpret_cast<const int*>(from + register_bytes),
                                                   detail::first_lanes(size - length)),
                      index = __m256i(there);
        const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));  // the sign: is it in `high`?
        return mask<float>(_mm256_castps_si256(
            _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index)),
                             _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index)), upper)));
    }
#endif
    std::int32_t found[lanes<float>];
    for (std::size_t i = 0; i < lanes<float>; ++i)
        std::memcpy(found + i, numbers + 4 * static_cast<std::ptrdiff_t>(at[i]), 4);
    mask<float> result;
    std::memcpy(&result, found, sizeof result);
    return result;
#endif
}

}  // namespace heed::simd
