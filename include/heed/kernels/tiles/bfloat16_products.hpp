// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/gemm/bfloat16_pairs.hpp>
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

/// Left operands: keys [keys][width], and values [value_width][keys].
struct tile_of_pairs {
    std::size_t first;  // key
    left_pairs keys, values;
};

namespace detail {

/// The arithmetic of bfloat16 by pairs, with matrix registers if this processor has them and `amx_is_wanted`.
template <bool amx_is_wanted = true>
struct arithmetic_of_pairs {
    using scope = simd::amx_scope;
    static bool amx() { return amx_is_wanted && simd::amx_is_permitted(); }

    /// Keys and values of a tile, copied once for several blocks of queries.
    class packed_tile {
    public:
        static bool pays(const head<float>&, std::size_t blocks) { return blocks > 1; }

        packed_tile(const head<float>& of, scratch&) : of_(of) {}

        /// Makes `to`, a copy of the head, read the keys and values of this tile from here.
        void pack(std::size_t tile, head<float>& to)
        {
            if (tile == tile_) return;
            tile_ = tile;
            here_.emplace();
            const std::size_t first = tile * tiles::keys, count = std::min(tiles::keys, of_.positions - first);
            pairs_ = {first, left_pairs_of(count, of_.width, of_.keys[first], of_.keys.stride, 1, amx(), *here_),
                      left_pairs_of(of_.value_width, count, of_.values[first], 1, of_.values.stride, amx(), *here_)};
            to.pairs = &pairs_;
        }

    private:
        const head<float>& of_;
        std::optional<scratch> here_;
        tile_of_pairs pairs_;
        std::size_t tile_ = static_cast<std::size_t>(-1);
    };

    template <class T>
    using panel = right_pairs;
    static right_pairs packed(std::size_t width, std::size_t lanes, const float* queries, scratch& here)
    {
        return right_pairs_of(width, lanes, queries, lanes, 1, here);
    }

    template <std::size_t registers>
    static void scores(const head<float>& of, const range& keys, const right_pairs& panel, std::size_t lane,
                       float* tile, std::size_t stride)
    {
        scratch here;
        left_pairs left;
        if (of.pairs != nullptr) {
            left = of.pairs->keys;
            left.data += (keys.begin - of.pairs->first) * left.across;
        } else {
            left = left_pairs_of(keys.size(), of.width, of.keys[keys.begin], of.keys.stride, 1, amx(), here);
        }
        multiply_pairs<false>(keys.size(), lanes<float, registers>, of.width, left, {panel.data + lane, panel.stride},
                              tile, stride, amx());
    }

    template <std::size_t registers>
    static void add_values(const head<float>& of, const range& keys, const float* weights, float* contexts,
                           std::size_t stride)
    {
        constexpr std::size_t width = lanes<float, registers>;
        const std::size_t row = of.pairs == nullptr ? 1 : keys.begin - of.pairs->first;
        if (row % 2 == 1)  // not copied, or within a pair
            return products<registers, true>(of.value_width, keys.size(), of.values[keys.begin], 1, of.values.stride,
                                             weights, contexts, stride);
        scratch here;
        left_pairs left = of.pairs->values;
        left.data += row / 2 * left.along;
        const right_pairs right = right_pairs_of(keys.size(), width, weights, stride, 1, here);
        multiply_pairs<true>(of.value_width, width, keys.size(), left, right, contexts, stride, amx());
    }

    /// Like detail::products.
    template <std::size_t registers, bool add>
    static void products(std::size_t count, std::size_t depth, const float* x, std::size_t across, std::size_t along,
                         const float* panel, float* y, std::size_t stride)
    {
        constexpr std::size_t width = lanes<float, registers>;
        scratch here;
        const right_pairs of_panel = right_pairs_of(depth, width, panel, stride, 1, here);
        const left_pairs of_x = left_pairs_of(count, depth, x, across, along, amx(), here);
        multiply_pairs<add>(count, width, depth, of_x, of_panel, y, stride, amx());
    }

    /// Like detail::products_of_lanes. If a number is not finite, which is rare, products are computed in float.
    template <std::size_t registers>
    static void products_of_lanes(bool finite, std::size_t count, std::size_t queries, const float* tile,
                                  rows<const float> x, rows<float> y, std::size_t width, const visible_tile* visible)
    {
        if (!finite) return detail::products_of_lanes<registers>(false, count, queries, tile, x, y, width, visible);
        constexpr std::size_t all = lanes<float, registers>, some = 2 * simd::matrix_rows;
        static_assert(lane_count % 2 == 0);  // a group of queries begins with a pair
        scratch here;
        const right_pairs of_x = right_pairs_of(queries, width, x[0], x.stride, 1, here, simd::matrix_rows);
        for (std::size_t j = 0; j < count; j += some) {
            const std::size_t high = std::min(some, count - j);
            const auto in = visible == nullptr ? range{0, queries} : visible->lanes_of({j, j + high}, queries);
            if (in.empty()) continue;
            // Lanes outside `in` may hold anything.
            scratch of_rows;
            const left_pairs of_tile =
                left_pairs_of(high, in.size(), tile + j * all + in.begin, all, 1, amx(), of_rows);
            multiply_pairs<true>(high, width, in.size(), of_tile, {of_x.data + in.begin / 2 * of_x.stride, of_x.stride},
                                 y[j], y.stride, amx());
        }
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

    template <class T>
    using panel = const float*;
    static const float* packed(std::size_t, std::size_t, const float* queries, scratch&) { return queries; }
    template <std::size_t registers>
    static void scores(const head<float>& of, const range& keys, const float* panel, std::size_t lane, float* tile,
                       std::size_t stride)
    {
        products<registers, false>(keys.size(), of.width, of.keys[keys.begin], of.keys.stride, 1, panel + lane, tile,
                                   stride);
    }
    template <std::size_t registers>
    static void add_values(const head<float>& of, const range& keys, const float* weights, float* contexts,
                           std::size_t stride)
    {
        products<registers, true>(of.value_width, keys.size(), of.values[keys.begin], 1, of.values.stride, weights,
                                  contexts, stride);
    }
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

#if defined(HEED_SIMD_BFLOAT16)
using bfloat16_arithmetic = arithmetic_of_pairs<>;
#else
using bfloat16_arithmetic = arithmetic_of_rounded_floats;
#endif

}  // namespace detail

/// e_j = scale · q · k_j with scale · q and k_j rounded to bfloat16; the products of weights, values and gradients
/// round as well. All operands of products are rounded; scores, weights and all sums are floats.
struct inner_product_of_bfloat16 : inner_product_by<detail::bfloat16_arithmetic> {
    template <std::size_t registers, class T>
    struct block : inner_product_by<detail::bfloat16_arithmetic>::block<registers, T> {
        static_assert(std::is_same_v<T, float>, "heed: tiles in bfloat16 support only tensors of float");
        using inner_product_by<detail::bfloat16_arithmetic>::block<registers, T>::block;
    };
};

}  // namespace heed::inline HEED_TARGET::kernels::tiles
