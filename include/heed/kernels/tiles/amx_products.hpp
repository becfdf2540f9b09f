// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/amx_product.hpp>

#if defined(HEED_SIMD_AMX)

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heed/core/workspace.hpp>
#include <heed/kernels/bfloat16_pairs.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>

namespace heed::inline HEED_TARGET::kernels::tiles::detail {

/// The arithmetic of bfloat16 on the matrix registers of AMX; `Otherwise` if the kernel does not permit them.
template <class Otherwise>
struct arithmetic_of_amx {
    using scope = simd::amx_scope;

    /// As detail::products.
    template <std::size_t registers, bool add>
    static void products(std::size_t count, std::size_t depth, const float* x, std::size_t across, std::size_t along,
                         const float* panel, float* y, std::size_t stride)
    {
        if (!simd::amx_is_permitted())
            return Otherwise::template products<registers, add>(count, depth, x, across, along, panel, y, stride);
        constexpr std::size_t width = lanes<float, registers>;
        const std::size_t pairs = (depth + 1) / 2, whole = whole_matrices(pairs);
        scratch here;
        auto* const of_panel = here.take<std::int32_t>(whole * width);
        pairs_of_rows(depth, width, panel, stride, of_panel, width);
        std::fill(of_panel + pairs * width, of_panel + whole * width, 0);
        auto* const of_x = here.take<std::int32_t>(whole_matrices(count) * whole);
        if (along == 1)  // rows of x are contiguous, or its columns are
            pairs_in_rows(count, depth, x, across, of_x, whole);
        else
            pairs_of_columns(depth, count, x, along, of_x, whole);
        amx_products<add>(count, width, whole / simd::matrix_rows, of_x, whole, of_panel, width, y, stride);
    }

    /// As detail::products_of_lanes. If a number is not finite, which is rare, products are computed in float.
    template <std::size_t registers>
    static void products_of_lanes(bool finite, std::size_t count, std::size_t queries, const float* tile,
                                  rows<const float> x, rows<float> y, std::size_t width, const visible_tile* visible)
    {
        if (!finite || !simd::amx_is_permitted())
            return Otherwise::template products_of_lanes<registers>(finite, count, queries, tile, x, y, width, visible);
        constexpr std::size_t all = lanes<float, registers>, some = 2 * simd::matrix_rows;
        const std::size_t pairs = (queries + 1) / 2, whole = whole_matrices(pairs), room = whole_matrices(width);
        scratch here;
        auto* const of_x = here.take<std::int32_t>(whole * room);
        pairs_of_rows(queries, width, x[0], x.stride, of_x, room);
        std::fill(of_x + pairs * room, of_x + whole * room, 0);
        auto* const of_tile = here.take<std::int32_t>(some * whole + simd::matrix_rows);
        for (std::size_t j = 0; j < count; j += some) {
            const std::size_t high = std::min(some, count - j);
            const auto in = visible == nullptr ? range{0, queries} : visible->lanes_of({j, j + high}, queries);
            if (in.empty()) continue;
            // Lanes outside `in` may hold anything.
            if (in.begin > 0 || in.size() < queries) std::fill(of_tile, of_tile + some * whole, 0);
            pairs_in_rows(high, in.size(), tile + j * all + in.begin, all, of_tile + in.begin / 2, whole);
            amx_products<true>(high, width, whole / simd::matrix_rows, of_tile, whole, of_x, room, y[j], y.stride);
        }
    }
};

}  // namespace heed::inline HEED_TARGET::kernels::tiles::detail

#endif
