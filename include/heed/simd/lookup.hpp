// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heed/simd/registers.hpp>

/// Table lookup for a register of indices.
///
///     y_i = table[at_i]        0 <= at_i < size, for numbers of 32 bits
///
/// Neighboring queries of a tile mostly look up neighboring entries of the table. If every index is within a register's
/// length of the first, or the table has at most two registers, two loads and a permutation find all numbers.
namespace heed::inline HEED_TARGET::simd {

namespace detail {

#if defined(HEED_SIMD_AVX512)
/// The first `count` lanes, or all lanes if there are fewer.
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

/// The start of the two adjacent registers that contain all indexed numbers, if any two do.
HEED_SIMD_INLINE std::int32_t first_of_two(std::int32_t size, mask<float> at)
{
    constexpr auto length = static_cast<std::int32_t>(lanes<float>);
    return std::max(std::min(at[0] - length, size - 2 * length), 0);
}

}  // namespace detail

/// Clamps to 0 ... n - 1.
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

/// Whether look_up needs at most two loads for these indices.
HEED_SIMD_INLINE bool near_by([[maybe_unused]] std::int32_t size, [[maybe_unused]] mask<float> at)
{
    [[maybe_unused]] constexpr auto length = static_cast<std::int32_t>(lanes<float>);
#if defined(HEED_SIMD_AVX512)
    const mask<float> there = at - detail::first_of_two(size, at);
    return size <= 2 * length || _mm512_test_epi32_mask(__m512i(there), _mm512_set1_epi32(~(2 * length - 1))) == 0;
#elif defined(HEED_SIMD_AVX) && defined(__AVX2__)
    const mask<float> there = at - detail::first_of_two(size, at);
    return size <= 2 * length || _mm256_testz_si256(__m256i(there), _mm256_set1_epi32(~(2 * length - 1))) != 0;
#else
    return false;
#endif
}

/// The bits of table[at_i]; `table` has `size` > 0 numbers of 32 bits, and all indices are inside.
HEED_SIMD_INLINE mask<float> look_up(const void* table, [[maybe_unused]] std::int32_t size, mask<float> at)
{
    [[maybe_unused]] constexpr auto length = static_cast<std::int32_t>(lanes<float>);
    const auto* const numbers = static_cast<const char*>(table);
#if defined(HEED_SIMD_AVX512)
    if (size <= 2 * length) {
        const __m512i low = _mm512_maskz_loadu_epi32(detail::first_lanes(size), numbers),
                      high = _mm512_maskz_loadu_epi32(detail::first_lanes(size - length), numbers + register_bytes);
        return mask<float>(_mm512_permutex2var_epi32(low, __m512i(at), high));
    }
    if (near_by(size, at)) {
        const std::int32_t begin = detail::first_of_two(size, at);
        const char* const from = numbers + 4 * static_cast<std::ptrdiff_t>(begin);
        const __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + register_bytes);
        return mask<float>(_mm512_permutex2var_epi32(low, __m512i(at - begin), high));
    }
    return mask<float>(_mm512_mask_i32gather_epi32(__m512i{}, HEED_SIMD_ALL16, __m512i(at), numbers, 4));
#else
#if defined(HEED_SIMD_AVX) && defined(__AVX2__)
    const auto among = [](__m256i low, __m256i high, __m256i index) __attribute__((always_inline))
    {
        const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));  // the sign: is it in `high`?
        return mask<float>(_mm256_castps_si256(
            _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index)),
                             _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index)), upper)));
    };
    if (size <= 2 * length) {
        const auto part = [&](std::int32_t first) __attribute__((always_inline))
        {
            return _mm256_maskload_epi32(reinterpret_cast<const int*>(numbers) + first,
                                         detail::first_lanes(size - first));
        };
        return among(part(0), part(length), __m256i(at));
    }
    if (near_by(size, at)) {
        const std::int32_t begin = detail::first_of_two(size, at);
        const auto* const from = reinterpret_cast<const __m256i*>(numbers + 4 * static_cast<std::ptrdiff_t>(begin));
        return among(_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1), __m256i(at - begin));
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

/// A register of bytes, as numbers.
HEED_SIMD_INLINE mask<float> bytes_from(const std::uint8_t* bytes)
{
#if defined(HEED_SIMD_AVX512)
    return mask<float>(
        _mm512_maskz_cvtepu8_epi32(HEED_SIMD_ALL16, _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes))));
#elif defined(HEED_SIMD_AVX) && defined(__AVX2__)
    return mask<float>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
#else
    mask<float> found{};
    for (std::size_t i = 0; i < lanes<float>; ++i) found[i] = bytes[i];
    return found;
#endif
}

/// The bytes bytes[at_i] as numbers. Up to 3 bytes after each are read as well.
HEED_SIMD_INLINE mask<float> bytes_at(const std::uint8_t* bytes, mask<float> at)
{
#if defined(HEED_SIMD_AVX512)
    return mask<float>(_mm512_mask_i32gather_epi32(__m512i{}, HEED_SIMD_ALL16, __m512i(at), bytes, 1)) & 0xFF;
#elif defined(HEED_SIMD_AVX) && defined(__AVX2__)
    return mask<float>(_mm256_i32gather_epi32(reinterpret_cast<const int*>(bytes), __m256i(at), 1)) & 0xFF;
#else
    mask<float> found{};
    for (std::size_t i = 0; i < lanes<float>; ++i) found[i] = bytes[at[i]];
    return found;
#endif
}

}  // namespace heed::inline HEED_TARGET::simd
