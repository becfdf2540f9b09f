// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <heed/simd/amx.hpp>

/// Products of matrices of any size with the matrix registers of AMX.
namespace heed::inline HEED_TARGET::kernels {

/// x rounded up to a multiple of the rows of a matrix register.
constexpr std::size_t whole_matrices(std::size_t x)
{
    return (x + simd::matrix_rows - 1) / simd::matrix_rows * simd::matrix_rows;
}

#if defined(HEED_SIMD_AMX)

/// Y (+)= A B: `count` rows by `width` columns, with sums over `steps` · 32 products. A has whole_matrices(count) rows,
/// and B whole_matrices(width) columns; nothing beyond Y is written. Needs an amx_scope.
template <bool add>
void amx_products(std::size_t count, std::size_t width, std::size_t steps, const std::int32_t* a, std::size_t a_stride,
                  const std::int32_t* b, std::size_t b_stride, float* y, std::size_t y_stride)
{
    constexpr std::size_t one = simd::matrix_rows, two = 2 * one;
    using std::integral_constant;
    for (std::size_t r = 0; r < count; r += two) {
        for (std::size_t c = 0; c < width; c += two) {
            const std::size_t high = std::min(two, count - r), wide = std::min(two, width - c);
            const auto product = [&](auto adds, float* to, std::size_t stride) {
                const auto of = [&](auto rows, auto columns) {
                    simd::amx_product<rows, columns, adds>(steps, a + r * a_stride, a_stride, b + c, b_stride, to,
                                                           stride);
                };
                constexpr integral_constant<std::size_t, 1> single;
                constexpr integral_constant<std::size_t, 2> pair;
                if (high > one)
                    wide > one ? of(pair, pair) : of(pair, single);
                else
                    wide > one ? of(single, pair) : of(single, single);
            };
            float* const to = y + r * y_stride + c;
            if (high % one == 0 && wide % one == 0) {
                product(integral_constant<bool, add>{}, to, y_stride);
                continue;
            }
            alignas(64) float whole[two * two];
            product(integral_constant<bool, false>{}, whole, two);
            for (std::size_t i = 0; i < high; ++i)
                for (std::size_t j = 0; j < wide; ++j)
                    to[i * y_stride + j] = (add ? to[i * y_stride + j] : 0.0F) + whole[i * two + j];
        }
    }
}

#endif

}  // namespace heed::inline HEED_TARGET::kernels
