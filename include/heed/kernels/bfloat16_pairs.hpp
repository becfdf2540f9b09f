// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <heed/simd/bfloat16.hpp>
#include <heed/simd/simd.hpp>

/// Matrices of floats, rounded and copied to pairs of bfloat16 along the dimension of a sum, k. A pair is 32 bits. An
/// odd number of terms is padded with a 0. Distances between rows are in elements.
namespace heed::inline HEED_TARGET::kernels {

/// [count][depth] -> [count][pairs]. Writes whole registers: each row ends with zeros up to a multiple of the number of
/// lanes; if `to_stride` is less, the next row overwrites these, and `to` needs room for one more register.
inline void pairs_in_rows(std::size_t count, std::size_t depth, const float* from, std::size_t from_stride,
                          std::int32_t* to, std::size_t to_stride)
{
    constexpr std::size_t one = simd::lanes<float>;
    for (std::size_t r = 0; r < count; ++r, from += from_stride, to += to_stride) {
        for (std::size_t k = 0; k < depth; k += 2 * one) {
            const std::size_t left = depth - k;
            const auto a = simd::load_first(from + k, std::min(one, left)),
                       b = left > one ? simd::load_first(from + k + one, std::min(one, left - one))
                                      : simd::vec<float>{};
            const simd::bfloat16_pairs both = simd::pairs_in_row(a, b);
            std::memcpy(to + k / 2, &both, sizeof both);
        }
    }
}

/// [depth][width] -> [pairs][width]. Writes whole registers, as pairs_in_rows does.
inline void pairs_of_rows(std::size_t depth, std::size_t width, const float* from, std::size_t from_stride,
                          std::int32_t* to, std::size_t to_stride)
{
    for (std::size_t k = 0; k < depth; k += 2, from += 2 * from_stride, to += to_stride) {
        simd::each_register<float>(width, [&](std::size_t i, std::size_t some) {
            const auto next = k + 1 < depth ? simd::load_first(from + from_stride + i, some) : simd::vec<float>{};
            const simd::bfloat16_pairs both = simd::pairs_of_rows(simd::load_first(from + i, some), next);
            std::memcpy(to + i, &both, sizeof both);
        });
    }
}

/// [depth][width] -> [width][pairs], transposed. Writes squares of whole registers: rows of `to`, and their number, are
/// rounded up to a multiple of the number of lanes, with zeros.
inline void pairs_of_columns(std::size_t depth, std::size_t width, const float* from, std::size_t from_stride,
                             std::int32_t* to, std::size_t to_stride)
{
    constexpr std::size_t one = simd::lanes<float>;
    for (std::size_t k = 0; k < depth; k += 2 * one) {
        simd::each_register<float>(width, [&](std::size_t i, std::size_t some) {
            simd::vec<float> square[one];
            const auto row = [&](std::size_t at) {
                return at < depth ? simd::load_first(from + at * from_stride + i, some) : simd::vec<float>{};
            };
            simd::unrolled<one>([&](auto p) {
                square[p] = simd::bits_as(simd::vec<float>{}, simd::pairs_of_rows(row(k + 2 * p), row(k + 2 * p + 1)));
            });
            simd::transpose<float>(square);
            simd::unrolled<one>(
                [&](auto q) { std::memcpy(to + (i + q) * to_stride + k / 2, &square[q], sizeof square[q]); });
        });
    }
}

}  // namespace heed::inline HEED_TARGET::kernels
