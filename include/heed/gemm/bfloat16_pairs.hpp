// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/gemm/amx_product.hpp>
#include <heed/simd/bfloat16.hpp>
#include <heed/simd/simd.hpp>

/// Products of matrices of floats, with operands rounded to bfloat16 and sums in float:
///
///     Y (+)= A B        A [count, depth], B [depth, width]
///
/// Both operands are first copied as pairs of bfloat16 (simd/bfloat16.hpp) along the sum, and padded with zeros to
/// whole matrix registers (simd/amx.hpp). `amx`: are the products computed with these? They need an amx_scope.
namespace heed::inline HEED_TARGET::kernels {

/// The left operand: pair k of row r is data[r · across + k · along].
struct left_pairs {
    const std::int32_t* data;
    std::size_t across, along;
};

/// The right operand: pair k of column c is data[k · stride + c].
struct right_pairs {
    const std::int32_t* data;
    std::size_t stride;
};

/// Pairs for a sum of `depth` products.
constexpr std::size_t pairs_for(std::size_t depth) { return (depth + 1) / 2; }

namespace detail {

/// `some` numbers, or zeros if there is no such row.
HEED_SIMD_INLINE simd::vec<float> row_or_zeros(bool is_there, const float* row, std::size_t some)
{
    return is_there ? simd::load_first(row, some) : simd::vec<float>{};
}

/// [count][depth] -> [count][pairs]; whole registers are written.
inline void pairs_in_rows(std::size_t count, std::size_t depth, const float* from, std::size_t from_stride,
                          std::int32_t* to, std::size_t to_stride)
{
    constexpr std::size_t one = simd::lanes<float>;
    for (std::size_t r = 0; r < count; ++r, from += from_stride, to += to_stride) {
        for (std::size_t k = 0; k < depth; k += 2 * one) {
            const std::size_t left = depth - k;
            const auto a = simd::load_first(from + k, std::min(one, left)),
                       b = row_or_zeros(left > one, from + k + one, left > one ? std::min(one, left - one) : 0);
            const simd::bfloat16_pairs both = simd::pairs_in_row(a, b);
            std::memcpy(to + k / 2, &both, sizeof both);
        }
    }
}

/// [depth][width] -> [pairs][width]; whole registers are written.
inline void pairs_of_rows(std::size_t depth, std::size_t width, const float* from, std::size_t from_stride,
                          std::int32_t* to, std::size_t to_stride)
{
    for (std::size_t k = 0; k < depth; k += 2, from += 2 * from_stride, to += to_stride) {
        simd::each_register<float>(width, [&](std::size_t i, std::size_t some) {
            const simd::bfloat16_pairs both = simd::pairs_of_rows(
                simd::load_first(from + i, some), row_or_zeros(k + 1 < depth, from + from_stride + i, some));
            std::memcpy(to + i, &both, sizeof both);
        });
    }
}

/// Writes the transpose of a square of pairs to rows `stride` apart.
HEED_SIMD_INLINE void put_transposed(simd::vec<float> (&square)[simd::lanes<float>], std::int32_t* to,
                                     std::size_t stride)
{
    simd::transpose<float>(square);
    simd::unrolled<simd::lanes<float>>(
        [&](auto row) { std::memcpy(to + row * stride, &square[row], sizeof square[row]); });
}

/// [depth][width] -> [width][pairs]; whole squares of registers are written.
inline void pairs_of_columns(std::size_t depth, std::size_t width, const float* from, std::size_t from_stride,
                             std::int32_t* to, std::size_t to_stride)
{
    constexpr std::size_t one = simd::lanes<float>;
    for (std::size_t k = 0; k < depth; k += 2 * one) {
        simd::each_register<float>(width, [&](std::size_t i, std::size_t some) {
            simd::vec<float> square[one];
            const auto row = [&](std::size_t at) {
                return row_or_zeros(at < depth, from + at * from_stride + i, some);
            };
            simd::unrolled<one>([&](auto p) {
                square[p] = simd::bits_as(simd::vec<float>{}, simd::pairs_of_rows(row(k + 2 * p), row(k + 2 * p + 1)));
            });
            put_transposed(square, to + i * to_stride + k / 2, to_stride);
        });
    }
}

/// [width][depth] -> [pairs][width]; whole squares of registers are written.
inline void pairs_of_transposed(std::size_t depth, std::size_t width, const float* from, std::size_t from_stride,
                                std::int32_t* to, std::size_t to_stride)
{
    constexpr std::size_t one = simd::lanes<float>;
    for (std::size_t c = 0; c < width; c += one) {
        for (std::size_t k = 0; k < depth; k += 2 * one) {
            const std::size_t first = std::min(one, depth - k), second = std::min(one, depth - k - first);
            simd::vec<float> square[one];
            simd::unrolled<one>([&](auto j) {
                const float* const row = from + (c + j) * from_stride + k;
                square[j] =
                    simd::bits_as(simd::vec<float>{},
                                  simd::pairs_in_row(row_or_zeros(c + j < width, row, first),
                                                     row_or_zeros(c + j < width && second > 0, row + one, second)));
            });
            put_transposed(square, to + k / 2 * to_stride + c, to_stride);
        }
    }
}

/// `rows` rows and `columns` registers of Y; the last register has `some` numbers.
template <std::size_t rows, std::size_t columns, bool add>
HEED_SIMD_INLINE void product_of_pairs(std::size_t pairs, const left_pairs& a, const right_pairs& b, float* y,
                                       std::size_t y_stride, std::size_t some)
{
    constexpr std::size_t one = simd::lanes<float>;
    simd::vec<float> sum[rows][columns] = {};
    const std::int32_t *x = a.data, *p = b.data;
    for (std::size_t k = 0; k < pairs; ++k, x += a.along, p += b.stride) {
        simd::bfloat16_pairs panel[columns];
        std::memcpy(&panel, p, sizeof panel);
        simd::unrolled<rows>([&](auto r) {
            const simd::bfloat16_pairs factor = simd::bfloat16_pairs{} + x[r * a.across];
            simd::unrolled<columns>([&](auto c) { sum[r][c] = simd::dot_pairs(sum[r][c], factor, panel[c]); });
        });
    }
    simd::unrolled<rows>([&](auto r) {
        simd::unrolled<columns>([&](auto c) {
            float* const to = y + r * y_stride + c * one;
            if (c + 1 < columns || some == one) return simd::store(to, add ? simd::load(to) + sum[r][c] : sum[r][c]);
            simd::store_first(to, add ? simd::load_first(to, some) + sum[r][c] : sum[r][c], some);
        });
    });
}

/// Y (+)= A B by registers.
template <bool add>
void products_of_pairs(std::size_t count, std::size_t width, std::size_t pairs, const left_pairs& a,
                       const right_pairs& b, float* y, std::size_t y_stride)
{
    constexpr std::size_t one = simd::lanes<float>, most = simd::register_bytes == 64 ? 4 : 2, sums = 6 * most;
    const auto strip = [&](auto columns, std::size_t c, std::size_t some) {
        std::size_t r = 0;
        const auto take = [&](auto rows) {
            for (; r + rows <= count; r += rows)
                product_of_pairs<rows, columns, add>(pairs, {a.data + r * a.across, a.across, a.along},
                                                     {b.data + c, b.stride}, y + r * y_stride + c, y_stride, some);
        };
        take(std::integral_constant<std::size_t, sums / std::max<std::size_t>(columns, 2)>{});
        take(std::integral_constant<std::size_t, 3>{});
        take(std::integral_constant<std::size_t, 1>{});
    };
    std::size_t c = 0;
    for (; c + most * one <= width; c += most * one) strip(std::integral_constant<std::size_t, most>{}, c, one);
    for (; c < width; c += one) strip(std::integral_constant<std::size_t, 1>{}, c, std::min(one, width - c));
}

}  // namespace detail

/// Element (r, k) of A is x[r · across + k · along], and `across` or `along` is 1.
inline left_pairs left_pairs_of(std::size_t count, std::size_t depth, const float* x, std::size_t across,
                                std::size_t along, bool amx, scratch& here)
{
    const std::size_t rows = whole_matrices(count), pairs = whole_matrices(pairs_for(depth));
    auto* const to = here.take<std::int32_t>(rows * pairs);
    if (along == 1) {
        detail::pairs_in_rows(count, depth, x, across, to, pairs);
    } else if (!amx) {
        detail::pairs_of_rows(depth, count, x, along, to, rows);
        return {to, 1, rows};
    } else {
        detail::pairs_of_columns(depth, count, x, along, to, pairs);
    }
    return {to, pairs, 1};
}

/// Element (k, c) of B is x[k · down + c · along], and `down` or `along` is 1. A product may start at any pair if there
/// are `spare` rows of zeros.
inline right_pairs right_pairs_of(std::size_t depth, std::size_t width, const float* x, std::size_t down,
                                  std::size_t along, scratch& here, std::size_t spare = 0)
{
    const std::size_t pairs = pairs_for(depth), rows = whole_matrices(pairs) + spare, columns = whole_matrices(width);
    auto* const to = here.take<std::int32_t>(rows * columns);
    if (along == 1) {
        detail::pairs_of_rows(depth, width, x, down, to, columns);
    } else {
        detail::pairs_of_transposed(depth, width, x, along, to, columns);
    }
    std::fill(to + pairs * columns, to + rows * columns, 0);
    return {to, columns};
}

/// Y (+)= A B. The sum is added as one number if `amx` is false.
template <bool add>
void multiply_pairs(std::size_t count, std::size_t width, std::size_t depth, const left_pairs& a, const right_pairs& b,
                    float* y, std::size_t y_stride, [[maybe_unused]] bool amx)
{
#if defined(HEED_SIMD_AMX)
    if (amx) {
        return amx_products<add>(count, width, whole_matrices(pairs_for(depth)) / simd::matrix_rows, a.data, a.across,
                                 b.data, b.stride, y, y_stride);
    }
#endif
    detail::products_of_pairs<add>(count, width, pairs_for(depth), a, b, y, y_stride);
}

}  // namespace heed::inline HEED_TARGET::kernels
