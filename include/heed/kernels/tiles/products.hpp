// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>

/// Products of a tile of lanes with rows of numbers, and sums that detect numbers that are not finite.
///
///     products            y_r += Σ_k x_rk panel_k        scores of a tile, contexts from weights and values
///     products_of_lanes   y_j += Σ_q tile_jq x_q         gradients of keys and values
namespace heed::inline HEED_TARGET::kernels::tiles::detail {

/// y_r (+)= Σ_k x[r·across + k·along] panel_k, for `count` rows r of lanes; rows of panel and y are `stride` apart.
template <std::size_t count, std::size_t registers, bool add, class T>
HEED_SIMD_INLINE void product(std::size_t depth, const T* x, std::size_t across, std::size_t along, const T* panel,
                              T* y, std::size_t stride)
{
    using row = tiles::row<T, registers>;
    row sum[count];
    simd::unrolled<count>([&](auto r) { sum[r] = add ? row::of(y + r * stride) : row::all(0); });
    for (std::size_t k = 0; k < depth; ++k, panel += stride, x += along) {
        const row p = row::of(panel);
        simd::unrolled<count>([&](auto r) {
            const simd::vec<T> factor = simd::splat(x[r * across]);
            simd::unrolled<registers>([&](auto c) { sum[r].at[c] = simd::fma(factor, p.at[c], sum[r].at[c]); });
        });
    }
    simd::unrolled<count>([&](auto r) { sum[r].put(y + r * stride); });
}

/// `product` for any number of rows.
template <std::size_t registers, bool add, class T>
void products(std::size_t count, std::size_t depth, const T* x, std::size_t across, std::size_t along, const T* panel,
              T* y, std::size_t stride = lanes<T, registers>)
{
    // Few registers: keys that only some queries see come in eights.
    constexpr std::size_t most = registers < most_registers_of<T> ? 8 : rows_at_once<T, registers>;
    const auto take = [&](auto n) {
        for (; count >= n; count -= n, x += n * across, y += n * stride)
            product<n, registers, add>(depth, x, across, along, panel, y, stride);
    };
    take(std::integral_constant<std::size_t, most>{});
    if constexpr (most > 4) take(std::integral_constant<std::size_t, 4>{});
    if constexpr (most > 2) take(std::integral_constant<std::size_t, 2>{});
    take(std::integral_constant<std::size_t, 1>{});
}

/// y_j += Σ_q tile_jq x_q over `columns` registers of columns and, if `some`, a partial register: for `count` rows j of
/// a tile. The sum is added as one number, since y may accumulate very many tiles.
template <std::size_t count, std::size_t columns, std::size_t registers, class T>
HEED_SIMD_INLINE void product_of_lanes(std::size_t queries, const T* tile, rows<const T> x, rows<T> y, std::size_t some)
{
    using namespace simd;
    const auto get = [&](const T* from, std::size_t c) {
        return c + 1 < columns || some == simd::lanes<T> ? load(from + c * simd::lanes<T>)
                                                         : load(from + c * simd::lanes<T>, some);
    };
    vec<T> sum[count][columns] = {};
    for (std::size_t q = 0; q < queries; ++q) {
        vec<T> column[columns];
        unrolled<columns>([&](auto c) { column[c] = get(x[q], c); });
        unrolled<count>([&](auto j) {
            const vec<T> factor = splat(tile[j * lanes<T, registers> + q]);
            unrolled<columns>([&](auto c) { sum[j][c] = fma(factor, column[c], sum[j][c]); });
        });
    }
    unrolled<count>([&](auto j) {
        unrolled<columns>([&](auto c) {
            T* const to = y[j] + c * simd::lanes<T>;
            const vec<T> all = get(y[j], c) + sum[j][c];
            c + 1 < columns || some == simd::lanes<T> ? store(to, all) : store(to, all, some);
        });
    });
}

/// y_j += Σ_q tile_jq x_q for all rows and columns; with a visible_tile, only over lanes that see a row. Unless x is
/// `finite`, a 0 in the tile, as for a hidden key, adds nothing.
template <std::size_t registers, class T>
void products_of_lanes(bool finite, std::size_t count, std::size_t queries, const T* tile, rows<const T> x, rows<T> y,
                       std::size_t width, const visible_tile* visible = nullptr)
{
    for (std::size_t j = 0; !finite && j < count; ++j) {
        for (std::size_t q = 0; q < queries; ++q) {
            const T factor = tile[j * lanes<T, registers> + q];
            if (factor == T(0)) continue;
            for (std::size_t i = 0; i < width; ++i) y[j][i] += factor * x[q][i];
        }
    }
    if (!finite) return;
    constexpr std::size_t most = most_registers_of<T>;  // of columns
    const auto strip = [&](auto columns, std::size_t first, std::size_t some) {
        std::size_t j = 0;
        const auto take = [&](auto n) {
            for (; j + n <= count; j += n) {
                const auto in = visible == nullptr ? range{0, queries} : visible->lanes_of({j, j + n}, queries);
                if (in.empty()) continue;
                product_of_lanes<n, columns, registers>(in.size(), tile + j * lanes<T, registers> + in.begin,
                                                        rows<const T>{x[in.begin] + first, x.stride},
                                                        rows<T>{y[j] + first, y.stride}, some);
            }
        };
        take(std::integral_constant<std::size_t, rows_at_once<T, columns>>{});
        if constexpr (rows_at_once < T, columns >> 6) take(std::integral_constant<std::size_t, 6>{});
        take(std::integral_constant<std::size_t, 3>{});
        take(std::integral_constant<std::size_t, 1>{});
    };
    std::size_t first = 0;
    for (; first + most * simd::lanes<T> <= width; first += most * simd::lanes<T>)
        strip(std::integral_constant<std::size_t, most>{}, first, simd::lanes<T>);
    for (; most > 2 && first + 2 * simd::lanes<T> <= width; first += 2 * simd::lanes<T>)
        strip(std::integral_constant<std::size_t, 2>{}, first, simd::lanes<T>);
    for (; first < width; first += simd::lanes<T>)
        strip(std::integral_constant<std::size_t, 1>{}, first, std::min(simd::lanes<T>, width - first));
}

/// The products of tiles in the element type. A comparison may name another arithmetic with these functions, and a
/// `scope` that exists while a thread calls them.
struct own_arithmetic {
    struct scope {};

    /// The format in which `scores` reads a block's queries, a panel [width][lanes].
    template <class T>
    using panel = const T*;
    template <class T>
    HEED_SIMD_INLINE static const T* packed(std::size_t, std::size_t, const T* queries, scratch&)
    {
        return queries;
    }
    /// Scores of keys [begin, end) of a head, for `registers` of a packed panel from `lane` on.
    template <std::size_t registers, class T>
    HEED_SIMD_INLINE static void scores(const head<T>& of, const range& keys, const T* panel, std::size_t lane, T* tile,
                                        std::size_t stride)
    {
        detail::products<registers, false>(keys.size(), of.width, of.keys[keys.begin], of.keys.stride, 1, panel + lane,
                                           tile, stride);
    }
    /// Adds the values of keys [begin, end), times their weights, to contexts [value_width][lanes].
    template <std::size_t registers, class T>
    HEED_SIMD_INLINE static void add_values(const head<T>& of, const range& keys, const T* weights, T* contexts,
                                            std::size_t stride)
    {
        detail::products<registers, true>(of.value_width, keys.size(), of.values[keys.begin], 1, of.values.stride,
                                          weights, contexts, stride);
    }

    template <std::size_t registers, bool add, class T>
    HEED_SIMD_INLINE static void products(std::size_t count, std::size_t depth, const T* x, std::size_t across,
                                          std::size_t along, const T* panel, T* y, std::size_t stride)
    {
        detail::products<registers, add>(count, depth, x, across, along, panel, y, stride);
    }
    template <std::size_t registers, class T>
    HEED_SIMD_INLINE static void products_of_lanes(bool finite, std::size_t count, std::size_t queries, const T* tile,
                                                   rows<const T> x, rows<T> y, std::size_t width,
                                                   const visible_tile* visible)
    {
        detail::products_of_lanes<registers>(finite, count, queries, tile, x, y, width, visible);
    }
};

/// The arithmetic of a comparison's products, and of the products of weights and values.
template <class Compare>
struct arithmetic_named_by {
    using type = own_arithmetic;
};
template <class Compare>
    requires requires { typename Compare::arithmetic; }
struct arithmetic_named_by<Compare> {
    using type = typename Compare::arithmetic;
};
template <class Compare>
using arithmetic_of = typename arithmetic_named_by<Compare>::type;

/// y_i += Σ_j x_j[i] tile_j for `width` rows i of lanes, where x may also be infinite or NaN.
template <std::size_t registers, class T>
[[gnu::noinline]] void selected_products(std::size_t width, std::size_t count, rows<const T> x, const T* tile, T* y)
{
    using namespace simd;
    constexpr std::size_t all = tiles::lanes<T, registers>;
    for (std::size_t j = 0; j < count; ++j) {
        for (std::size_t at = 0; at < all; at += simd::lanes<T>) {
            const vec<T> factor = load(tile + j * all + at);
            for (std::size_t i = 0; i < width; ++i) {
                T* const to = y + i * all + at;
                store(to, select(factor == vec<T>{}, load(to), fma(factor, splat(x[j][i]), load(to))));
            }
        }
    }
}

/// Are all numbers of n queries, in the lanes of `width` rows, finite? Tests their sums, which may overflow.
template <std::size_t registers, class T>
bool finite_lanes(std::size_t width, std::size_t n, const T* panel)
{
    using row = tiles::row<T, registers>;
    constexpr std::size_t all = lanes<T, registers>;
    row sum = row::all(0), other = sum;  // two chains hide the latency of an addition
    const auto add = [](row& to, const T* x) {
        simd::unrolled<registers>([&](auto c) { to.at[c] += simd::load(x + c * simd::lanes<T>); });
    };
    std::size_t i = 0;
    for (; i + 2 <= width; i += 2) {
        add(sum, panel + i * all);
        add(other, panel + (i + 1) * all);
    }
    if (i < width) add(sum, panel + i * all);
    simd::mask<T> beyond{};
    simd::unrolled<registers>([&](auto c) {
        sum.at[c] += other.at[c];
        beyond |= sum.at[c] - sum.at[c] != simd::vec<T>{};
    });
    if (!simd::any(beyond)) return true;
    T sums[all];  // lanes without queries are ignored
    sum.put(sums);
    return std::all_of(sums, sums + n, [](const T& x) { return x - x == T(0); });
}

/// Σ_i a_i b_i, summed in one register.
template <class T>
T dot(std::size_t n, const T* a, const T* b)
{
    using namespace simd;
    vec<T> sum{};
    each_register<T>(
        n, [&](std::size_t i, std::size_t some) { sum = fma(load_first(a + i, some), load_first(b + i, some), sum); });
    return simd::sum(sum);
}

/// Are all numbers of these rows finite? Tests their sum.
template <class T>
bool finite_rows(std::size_t count, std::size_t width, rows<const T> x)
{
    simd::vec<T> sum{};
    for (std::size_t j = 0; j < count; ++j)
        simd::each_register<T>(width,
                               [&](std::size_t i, std::size_t some) { sum += simd::load_first(x[j] + i, some); });
    const T all = simd::sum(sum);
    return all - all == T(0);
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles::detail
