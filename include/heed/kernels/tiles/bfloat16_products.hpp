// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/bfloat16_pairs.hpp>
#include <heed/kernels/tiles/amx_products.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/bfloat16.hpp>
#include <heed/simd/simd.hpp>

/// The products of kernels/tiles/products.hpp with operands rounded to bfloat16 and sums in float.
///
/// Both functions copy and round their operands when they are called. With the instructions of AVX512-BF16, they pair
/// neighboring terms of the sum; if a sum has an odd number of terms, the last pair has a 0. Without these instructions
/// they multiply as floats, since taking pairs apart in a loop costs more.
namespace heed::inline HEED_TARGET::kernels::tiles {

namespace detail {

/// f(r, c, Σ_k x[r·across + k·along] · panel_k) for `count` rows r and `registers` registers c: all are pairs.
template <std::size_t count, std::size_t registers>
HEED_SIMD_INLINE void product_of_pairs(std::size_t depth, const std::int32_t* x, std::size_t across, std::size_t along,
                                       rows<const std::int32_t> panel, const auto& f)
{
    simd::vec<float> sum[count][registers] = {};
    for (std::size_t k = 0; k < depth; ++k, x += along) {
        simd::bfloat16_pairs p[registers];
        std::memcpy(&p, panel[k], sizeof p);
        simd::unrolled<count>([&](auto r) {
            const simd::bfloat16_pairs factor = simd::bfloat16_pairs{} + x[r * across];
            simd::unrolled<registers>([&](auto c) { sum[r][c] = simd::dot_pairs(sum[r][c], factor, p[c]); });
        });
    }
    simd::unrolled<count>([&](auto r) { simd::unrolled<registers>([&](auto c) { f(r, c, sum[r][c]); }); });
}

/// The arithmetic of bfloat16 by pairs.
struct arithmetic_of_pairs {
    struct scope {};

    /// As detail::products. The sum is added as one number.
    template <std::size_t registers, bool add>
    static void products(std::size_t count, std::size_t depth, const float* x, std::size_t across, std::size_t along,
                         const float* panel, float* y, std::size_t stride)
    {
        constexpr std::size_t width = lanes<float, registers>, one = simd::lanes<float>,
                              most = registers < most_registers ? 8 : rows_at_once<float, registers>;
        const std::size_t pairs = (depth + 1) / 2;
        scratch here;
        const rows<std::int32_t> of_panel{here.take<std::int32_t>(pairs * width), width};
        pairs_of_rows(depth, width, panel, stride, of_panel.data, width);
        // Rows of x are contiguous, or its columns are.
        const bool in_rows = along == 1;
        const std::int32_t* of_x = nullptr;
        if (in_rows) {
            const rows<std::int32_t> to{here.take<std::int32_t>(count * pairs + one), pairs};
            pairs_in_rows(count, depth, x, across, to.data, pairs);
            of_x = to.data;
        } else {
            const rows<std::int32_t> to{here.take<std::int32_t>(pairs * count + one), count};
            pairs_of_rows(depth, count, x, along, to.data, count);
            of_x = to.data;
        }
        const std::size_t from_row = in_rows ? pairs : 1, from_pair = in_rows ? 1 : count;
        const auto take = [&](auto n, std::size_t& r) {
            for (; r + n <= count; r += n) {
                float* const to = y + r * stride;
                product_of_pairs<n, registers>(pairs, of_x + r * from_row, from_row, from_pair, {of_panel.data, width},
                                               [&](std::size_t row, std::size_t c, simd::vec<float> sum) {
                                                   float* const at = to + row * stride + c * one;
                                                   simd::store(at, add ? simd::load(at) + sum : sum);
                                               });
            }
        };
        std::size_t r = 0;
        take(std::integral_constant<std::size_t, most>{}, r);
        if constexpr (most > 4) take(std::integral_constant<std::size_t, 4>{}, r);
        if constexpr (most > 2) take(std::integral_constant<std::size_t, 2>{}, r);
        take(std::integral_constant<std::size_t, 1>{}, r);
    }

    /// As detail::products_of_lanes. If a number is not finite, which is rare, products are computed in float.
    template <std::size_t registers>
    static void products_of_lanes(bool finite, std::size_t count, std::size_t queries, const float* tile,
                                  rows<const float> x, rows<float> y, std::size_t width, const visible_tile* visible)
    {
        if (!finite) return detail::products_of_lanes<registers>(false, count, queries, tile, x, y, width, visible);
        constexpr std::size_t one = simd::lanes<float>;
        static_assert(lane_count % 2 == 0);  // a group of queries begins with a pair
        const std::size_t pairs = (queries + 1) / 2, room = (width + one - 1) / one * one;
        scratch here;
        const rows<std::int32_t> of_tile{here.take<std::int32_t>(count * pairs + one), pairs},
            of_x{here.take<std::int32_t>(pairs * room), room};
        pairs_in_rows(count, queries, tile, lanes<float, registers>, of_tile.data, pairs);
        pairs_of_rows(queries, width, x[0], x.stride, of_x.data, room);
        const auto strip = [&](auto columns, std::size_t first) {
            const auto take = [&](auto n, std::size_t& j) {
                for (; j + n <= count; j += n) {
                    const auto in = visible == nullptr ? range{0, queries} : visible->lanes_of({j, j + n}, queries);
                    if (in.empty()) continue;
                    const auto add = [&](std::size_t row, std::size_t c, simd::vec<float> sum) {
                        const std::size_t at = first + c * one, some = std::min(one, width - at);
                        float* const to = y[j + row] + at;
                        simd::store_first(to, simd::load_first(to, some) + sum, some);
                    };
                    product_of_pairs<n, columns>((in.size() + 1) / 2, of_tile[j] + in.begin / 2, pairs, 1,
                                                 {of_x[in.begin / 2] + first, room}, add);
                }
            };
            std::size_t j = 0;
            take(std::integral_constant<std::size_t, rows_at_once<float, columns>>{}, j);
            if constexpr (rows_at_once < float, columns >> 6) take(std::integral_constant<std::size_t, 6>{}, j);
            take(std::integral_constant<std::size_t, 3>{}, j);
            take(std::integral_constant<std::size_t, 1>{}, j);
        };
        std::size_t first = 0;
        for (; first + most_registers * one <= room; first += most_registers * one)
            strip(std::integral_constant<std::size_t, most_registers>{}, first);
        for (; most_registers > 2 && first + 2 * one <= room; first += 2 * one)
            strip(std::integral_constant<std::size_t, 2>{}, first);
        for (; first < room; first += one) strip(std::integral_constant<std::size_t, 1>{}, first);
    }
};

/// Rounds `count` rows; rows of `to` may be longer.
inline void rounded_rows(std::size_t count, std::size_t width, rows<const float> from, rows<float> to)
{
    for (std::size_t r = 0; r < count; ++r)
        simd::transform(
            width, to[r], [](auto x) { return simd::rounded_to_bfloat16(x); }, from[r]);
}

/// Arithmetic of rounded operands without pairs.
struct arithmetic_of_rounded_floats {
    struct scope {};

    template <std::size_t registers, bool add>
    static void products(std::size_t count, std::size_t depth, const float* x, std::size_t across, std::size_t along,
                         const float* panel, float* y, std::size_t stride)
    {
        scratch here;
        const rows<float> of_panel{here.take<float>(depth * stride), stride};
        rounded_rows(depth, lanes<float, registers>, {panel, stride}, of_panel);
        // Rows of x are contiguous, or its columns are.
        const bool in_rows = along == 1;
        const std::size_t number = in_rows ? count : depth, length = in_rows ? depth : count;
        const rows<float> of_x{here.take<float>(number * length), length};
        rounded_rows(number, length, {x, in_rows ? across : along}, of_x);
        detail::products<registers, add>(count, depth, of_x.data, in_rows ? length : 1, in_rows ? 1 : length,
                                         of_panel.data, y, stride);
    }
    template <std::size_t registers>
    static void products_of_lanes(bool finite, std::size_t count, std::size_t queries, const float* tile,
                                  rows<const float> x, rows<float> y, std::size_t width, const visible_tile* visible)
    {
        if (!finite) return detail::products_of_lanes<registers>(false, count, queries, tile, x, y, width, visible);
        constexpr std::size_t all = lanes<float, registers>;
        scratch here;
        const rows<float> of_tile{here.take<float>(count * all), all}, of_x{here.take<float>(queries * width), width};
        rounded_rows(count, queries, {tile, all}, of_tile);
        rounded_rows(queries, width, {x[0], x.stride}, of_x);
        detail::products_of_lanes<registers>(true, count, queries, of_tile.data, rows<const float>{of_x.data, width}, y,
                                             width, visible);
    }
};

#if defined(HEED_SIMD_AMX)
using bfloat16_arithmetic = arithmetic_of_amx<arithmetic_of_pairs>;
#elif defined(HEED_SIMD_BFLOAT16)
using bfloat16_arithmetic = arithmetic_of_pairs;
#else
using bfloat16_arithmetic = arithmetic_of_rounded_floats;
#endif

}  // namespace detail

/// e_j = scale · q · k_j with scale · q and k_j rounded to bfloat16; the products of weights, values and gradients
/// round as well. All operands of products are rounded; scores, weights and all sums are floats.
struct inner_product_of_bfloat16 : inner_product_by<detail::bfloat16_arithmetic> {
    template <std::size_t registers, class T>
    struct block : inner_product_by<detail::bfloat16_arithmetic>::block<registers, T> {
        static_assert(std::is_same_v<T, float>, "heed: tiles in bfloat16 support only tensors of floats");
        using inner_product_by<detail::bfloat16_arithmetic>::block<registers, T>::block;
    };
};

}  // namespace heed::inline HEED_TARGET::kernels::tiles
