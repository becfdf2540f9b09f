// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heed/kernels/block_sums.hpp>
#include <heed/simd/score_index.hpp>
#include <heed/simd/simd.hpp>
#include <heed/simd/strided_index.hpp>

/// Attention of many queries in tiles: a block of queries against a block of keys. Scores never leave the cache.
///
///     C = softmax(Q Kᵀ) V            Vaswani et al. 2017, eq. 1; computed online as in Milakov, Gimelshein 2018
///
/// **The lanes hold queries.** A tile of scores [keys][lanes] has a row for each key: maxima and sums over the scores
/// of a query are elementwise, and products read one number of a key or value and one row of the tile at a time:
///
///     e_j = Σ_i K_ji q_i,  c_i += Σ_j V_ji p_j        i: dimension, j: key; e_j, q_i, c_i, p_j: rows of lanes
///
/// Only a block's queries and contexts are transposed, once for all keys. The forward pass of softmax processes several
/// blocks of queries together, so that a tile of keys is read from the cache. The backward pass recomputes scores.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// The maximum number of registers in a row of lanes; fewer for few queries.
inline constexpr std::size_t most_registers = simd::register_bytes == 64 ? 4 : 2;

/// The maximum for dual numbers, which take two registers each.
template <class T>
inline constexpr std::size_t most_registers_of = most_registers;
template <class T>
inline constexpr std::size_t most_registers_of<dual_number<T>> = std::max(most_registers / 2,
                                                                          sizeof(T) / sizeof(float));

/// The number of queries of a block with `registers` for each row of lanes.
template <class T, std::size_t registers>
inline constexpr std::size_t lanes = registers* simd::lanes<T>;

/// Rows of lanes that a product sums together: their sums, a row of the panel and a factor fill the registers.
template <class T, std::size_t registers>
inline constexpr std::size_t rows_at_once = (simd::register_bytes == 64 ? 24 : 12) / std::max<std::size_t>(2,
                                                                                                           registers);
template <class T, std::size_t registers>
inline constexpr std::size_t
    rows_at_once<dual_number<T>, registers> = std::max<std::size_t>(3, rows_at_once<T, 2 * registers>);

/// Keys of a tile.
inline constexpr std::size_t keys = 96;

/// Rows of numbers, `stride` apart, of one of several heads. `data` is the row `first`.
template <class T>
struct rows {
    T* data;
    std::size_t stride;
    std::size_t first = 0;

    T* operator[](std::size_t row) const { return data + (row - first) * stride; }
    /// The rows from this index on; empty if `data` is null.
    rows from(std::size_t row) const { return {data == nullptr ? nullptr : (*this)[row], stride}; }
};

/// The number of keys in one partial sum of products; partial sums are then added: see kernels/block_sums.hpp.
inline constexpr std::size_t keys_of_sum = 3 * keys;

/// One row of lanes in registers.
template <class T, std::size_t registers>
struct row {
    simd::vec<T> at[registers];

    static row all(T x)
    {
        row result;
        simd::unrolled<registers>([&](auto c) { result.at[c] = simd::splat(x); });
        return result;
    }
    static row of(const T* from)
    {
        row result;
        simd::unrolled<registers>([&](auto c) { result.at[c] = simd::load(from + c * simd::lanes<T>); });
        return result;
    }
    void put(T* to) const
    {
        simd::unrolled<registers>([&](auto c) { simd::store(to + c * simd::lanes<T>, at[c]); });
    }
};

/// Rows or lanes [begin, end) of a tile.
struct range {
    std::size_t begin = 0, end = 0;

    bool empty() const { return begin >= end; }
    std::size_t size() const { return end - begin; }
    bool operator==(const range&) const = default;
    /// The smallest range around both; an empty range is ignored.
    range around(const range& other) const
    {
        if (empty() || other.empty()) return other.empty() ? *this : other;
        return {std::min(begin, other.begin), std::max(end, other.end)};
    }
};

/// A tile of `count` keys from `first` on, and the rows (keys) that the queries of a block, from s on, see. A group is
/// lane_count queries, the number that one score_index holds.
struct visible_tile {
    std::size_t s, first, count, groups;
    range rows[most_registers];  // rows that a group may see; it does not see the others
    range full[most_registers];  // rows that all queries of a group see
    range common;                // rows that all groups may see
    bool is_full;                // does every query see every key?

    /// Lanes of a row.
    std::size_t width() const { return groups * lane_count; }

    /// Sets `common` and `is_full` from the rows of all groups.
    void conclude()
    {
        common = {0, count};
        is_full = true;
        for (std::size_t g = 0; g < groups; ++g) {
            common = {std::max(common.begin, rows[g].begin), std::min(common.end, rows[g].end)};
            is_full = is_full && full[g].size() == count;
        }
        if (common.empty()) common = {0, 0};
    }
    /// The lanes among the first `queries`, restricted to groups that may see some of these rows.
    range lanes_of(const range& some, std::size_t queries) const
    {
        if (common.begin <= some.begin && some.end <= common.end) return {0, queries};
        range lanes;
        for (std::size_t g = 0; g < groups; ++g)
            if (some.begin < rows[g].end && rows[g].begin < some.end)
                lanes = lanes.around({g * lane_count, std::min(queries, (g + 1) * lane_count)});
        return lanes;
    }
};

namespace detail {

using kernels::detail::filled;

/// f(registers, lane, rows) for the visible parts of a tile: registers from a lane on, from the first group that sees
/// one of the rows to the last. A lane's rows come in order.
template <std::size_t registers, class T>
HEED_SIMD_INLINE void each_part(const visible_tile& visible, const auto& f)
{
    constexpr std::size_t groups = lanes<T, registers> / lane_count;
    for (std::size_t row = 0, next = 0; row < visible.count; row = next) {
        std::size_t first = groups, last = 0;
        next = visible.count;
        for (std::size_t g = 0; g < groups; ++g) {
            const range& rows = visible.rows[g];
            if (row < rows.begin) next = std::min(next, rows.begin);
            if (row < rows.begin || rows.end <= row) continue;
            next = std::min(next, rows.end);
            first = std::min(first, g);
            last = g;
        }
        simd::unrolled<groups>([&](auto n) {
            constexpr std::size_t some = (n + 1) * registers / groups;
            if (first < groups && last - first == n)
                f(std::integral_constant<std::size_t, some>{}, first * lane_count, range{row, next});
        });
    }
}

}  // namespace detail

/// The keys and values of a tile in pairs of bfloat16: see kernels/tiles/bfloat16_products.hpp.
struct tile_of_pairs;

/// The queries, keys and values of one head of one sentence.
template <class T>
struct head {
    rows<const T> queries, keys, values;
    std::size_t width, value_width;  // of queries and keys; of values and contexts
    std::size_t queries_count;
    std::size_t positions;      // keys that exist
    T scale;                    // of the scores
    std::size_t batch, number;  // which sentence, and which head of it
    std::size_t first_query;
    T sink = -std::numeric_limits<T>::infinity();  // the score of the sink, whose weight has no value
    const head* next = nullptr;                    // the next head to be processed, if known
    const T* factors = nullptr;                    // of comparisons that have factors
    std::size_t factor_count = 0;
    heed::detail::lane_memo* memo = nullptr;  // of the thread and the call; for functions and masks
    const tile_of_pairs* pairs = nullptr;     // if the arithmetic has copied this tile

    /// The position of query s among the keys: the last query is at the last key.
    std::int32_t diagonal_of(std::size_t s) const
    {
        return static_cast<std::int32_t>(positions) - static_cast<std::int32_t>(queries_count) +
               static_cast<std::int32_t>(s);
    }
};

/// The gradients of one head, to be added to; null if not required.
template <class T>
struct head_gradients {
    rows<T> queries, keys, values;
    T* table = nullptr;    // of the table of the score_mod
    T* factors = nullptr;  // of the comparison
    T* of_head = nullptr;  // of the rule's number of this head
};

/// Contexts and numbers of a head, from a forward pass, and the gradient of the contexts.
template <class T>
struct forward_results {
    rows<const T> contexts;
    const T* numbers;  // [numbers of the rule, queries]
    rows<const T> d_contexts;
};

/// f(registers) for rows of lanes that this many queries fill: one of two widths, since each is compiled.
template <class T>
void with_registers(std::size_t queries, auto&& f)
{
    constexpr std::size_t least = lane_count / simd::lanes<T>;  // a score_index holds lane_count queries
    if (least == 1 && queries <= lanes<T, 1>) {
        f(std::integral_constant<std::size_t, least>{});
    } else {
        f(std::integral_constant<std::size_t, most_registers_of<T>>{});
    }
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles
