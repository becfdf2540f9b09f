// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heed/kernels/block_sums.hpp>
#include <heed/simd/lane_steps.hpp>
#include <heed/simd/place.hpp>
#include <heed/simd/simd.hpp>

/// Attention of many queries tile by tile: a block of queries against a block of keys. Scores never leave the cache.
///
///     C = softmax(Q Kᵀ) V            Vaswani et al. 2017, eq. 1; computed online as in Milakov, Gimelshein 2018
///
/// **Queries lie in the lanes.** A tile of scores [keys][lanes] has a row for each key: maxima and sums over the scores
/// of a query are elementwise, and products read one number of a key or value and one row of the tile at a time:
///
///     e_j = Σ_i K_ji q_i,  c_i += Σ_j V_ji p_j        i: dimension, j: key; e_j, q_i, c_i, p_j: rows of lanes
///
/// Only a block's queries and contexts are transposed, once for all keys. The backward pass computes scores again.
namespace heed::kernels::tiles {

/// Registers of a row of lanes, at most; fewer for few queries.
inline constexpr std::size_t most_registers = simd::register_bytes == 64 ? 4 : 2;

/// The same of dual numbers, whose registers are two.
template <class T>
inline constexpr std::size_t most_registers_of = most_registers;
template <class T>
inline constexpr std::size_t most_registers_of<dual_number<T>> = std::max(most_registers / 2,
                                                                          sizeof(T) / sizeof(float));

/// Queries of a block whose rows of lanes take `registers`.
template <class T, std::size_t registers>
inline constexpr std::size_t lanes = registers* simd::lanes<T>;

/// Rows of lanes that a product sums at once: their sums, a row of the panel and a factor fill the registers.
template <class T, std::size_t registers>
inline constexpr std::size_t rows_at_once = (simd::register_bytes == 64 ? 24 : 12) / std::max<std::size_t>(2,
                                                                                                           registers);
template <class T, std::size_t registers>
inline constexpr std::size_t
    rows_at_once<dual_number<T>, registers> = std::max<std::size_t>(3, rows_at_once<T, 2 * registers>);

/// Keys of a tile.
inline constexpr std::size_t keys = 96;

/// Rows of numbers, `stride` apart: of one head, where it lies among others.
template <class T>
struct rows {
    T* data;
    std::size_t stride;

    T* operator[](std::size_t row) const { return data + row * stride; }
    /// The rows from this one on; without data, none.
    rows from(std::size_t row) const { return {data == nullptr ? nullptr : (*this)[row], stride}; }
};

/// Keys whose products are added up before their sum joins that of the keys before them: see kernels/block_sums.hpp.
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
    /// The least range around both; an empty one adds nothing.
    range around(const range& other) const
    {
        if (empty() || other.empty()) return other.empty() ? *this : other;
        return {std::min(begin, other.begin), std::max(end, other.end)};
    }
};

/// What the queries of a block, from s on, see of a tile of `count` keys from `first` on. A group is the lane_count
/// queries of a place.
struct tile_reach {
    std::size_t s, first, count, groups;
    range reach[most_registers];  // rows that a group may see, the others it does not,
    range whole[most_registers];  // and of these the ones that it surely sees
    range common;                 // rows that all groups may see
    bool all;                     // does every query see all of them?

    /// Lanes of a row.
    std::size_t width() const { return groups * lane_count; }

    /// `common` and `all`, of the reach and whole of all groups.
    void conclude()
    {
        common = {0, count};
        all = true;
        for (std::size_t g = 0; g < groups; ++g) {
            common = {std::max(common.begin, reach[g].begin), std::min(common.end, reach[g].end)};
            all = all && whole[g].size() == count;
        }
        if (common.empty()) common = {0, 0};
    }
    /// Of `queries` lanes, those whose groups may see some of the rows.
    range lanes_of(const range& rows, std::size_t queries) const
    {
        if (common.begin <= rows.begin && rows.end <= common.end) return {0, queries};
        range seen;
        for (std::size_t g = 0; g < groups; ++g)
            if (rows.begin < reach[g].end && reach[g].begin < rows.end)
                seen = seen.around({g * lane_count, std::min(queries, (g + 1) * lane_count)});
        return seen;
    }
};

namespace detail {

using kernels::detail::filled;

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

/// The same for any number of rows.
template <std::size_t registers, bool add, class T>
void products(std::size_t count, std::size_t depth, const T* x, std::size_t across, std::size_t along, const T* panel,
              T* y, std::size_t stride = lanes<T, registers>)
{
    // Few registers: keys that some of the queries see, and others do not, come in eights.
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

/// y_j += Σ_q tile_jq x_q over `columns` registers of columns and, if `some`, the first of one more: for `count` rows j
/// of a tile. The sum is added as one number: y may be what very many tiles come to.
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

/// The same for all rows and columns; with a reach, only over lanes that see a row. Unless x is `finite`, a 0 in the
/// tile, as of a hidden key, adds nothing.
template <std::size_t registers, class T>
void products_of_lanes(bool finite, std::size_t count, std::size_t queries, const T* tile, rows<const T> x, rows<T> y,
                       std::size_t width, const tile_reach* reach = nullptr)
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
                const auto seen = reach == nullptr ? range{0, queries} : reach->lanes_of({j, j + n}, queries);
                if (seen.empty()) continue;
                product_of_lanes<n, columns, registers>(seen.size(), tile + j * lanes<T, registers> + seen.begin,
                                                        rows<const T>{x[seen.begin] + first, x.stride},
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

/// y_i += Σ_j x_j[i] tile_j for `width` rows i of lanes, where x may be infinite or NaN, too.
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

/// Are all numbers of n queries, in the lanes of `width` rows, finite? Judged by their sums, which may overflow.
template <std::size_t registers, class T>
bool finite_lanes(std::size_t width, std::size_t n, const T* panel)
{
    using row = tiles::row<T, registers>;
    constexpr std::size_t all = lanes<T, registers>;
    row sum = row::all(0), other = sum;  // two, because an addition takes longer than to begin the next one
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
    T sums[all];  // lanes without queries do not matter
    sum.put(sums);
    return std::all_of(sums, sums + n, [](const T& x) { return x - x == T(0); });
}

/// Σ_i a_i b_i, summed in one register.
template <class T>
T inner(std::size_t n, const T* a, const T* b)
{
    using namespace simd;
    vec<T> sum{};
    each_register<T>(
        n, [&](std::size_t i, std::size_t some) { sum = fma(load_first(a + i, some), load_first(b + i, some), sum); });
    return simd::sum(sum);
}

/// Are all numbers of these rows finite? Judged by their sum.
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

/// f(registers, lane, rows) for the parts of a tile that are seen: registers from a lane on, from the first group that
/// sees one of the rows to the last. A lane's rows come in order.
template <std::size_t registers, class T>
HEED_SIMD_INLINE void each_part(const tile_reach& seen, const auto& f)
{
    constexpr std::size_t groups = lanes<T, registers> / lane_count;
    for (std::size_t row = 0, next = 0; row < seen.count; row = next) {
        std::size_t first = groups, last = 0;
        next = seen.count;
        for (std::size_t g = 0; g < groups; ++g) {
            const range& reach = seen.reach[g];
            if (row < reach.begin) next = std::min(next, reach.begin);
            if (row < reach.begin || reach.end <= row) continue;
            next = std::min(next, reach.end);
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

/// f(i, q) for squares of registers within `width` and `n`; edge(i, q) for each number behind them.
template <class T>
HEED_SIMD_INLINE void each_square(std::size_t width, std::size_t n, const auto& f, const auto& edge)
{
    const std::size_t whole = width / simd::lanes<T> * simd::lanes<T>, most = n / simd::lanes<T> * simd::lanes<T>;
    for (std::size_t q = 0; q < most; q += simd::lanes<T>)
        for (std::size_t i = 0; i < whole; i += simd::lanes<T>) f(i, q);
    for (std::size_t i = 0; i < width; ++i)
        for (std::size_t q = i < whole ? most : 0; q < n; ++q) edge(i, q);
}

/// to[i][q] = factor · from_q[i] for n queries; zeros in the other lanes.
template <std::size_t registers, class T>
void transposed(std::size_t width, std::size_t n, rows<const T> from, T factor, T* to)
{
    using namespace simd;
    constexpr std::size_t all = tiles::lanes<T, registers>;
    const auto square = [&](std::size_t i, std::size_t q) {
        vec<T> part[simd::lanes<T>];
        unrolled<simd::lanes<T>>([&](auto k) { part[k] = load(from[q + k] + i) * splat(factor); });
        simd::transpose<T>(part);
        unrolled<simd::lanes<T>>([&](auto k) { store(to + (i + k) * all + q, part[k]); });
    };
    each_square<T>(width, n, square, [&](std::size_t i, std::size_t q) { to[i * all + q] = factor * from[q][i]; });
    for (std::size_t i = 0; n < all && i < width; ++i) std::fill(to + i * all + n, to + (i + 1) * all, T(0));
}

/// to_q[i] (+)= by_q · from[i][q] for n queries.
template <std::size_t registers, bool add, class T>
void transposed_back(std::size_t width, std::size_t n, const T* from, const T* by, rows<T> to)
{
    using namespace simd;
    constexpr std::size_t all = tiles::lanes<T, registers>;
    const auto square = [&](std::size_t i, std::size_t q) {
        // Rows a power of two apart push each other out of the first cache.
        unrolled<simd::lanes<T>>([&](auto k) { __builtin_prefetch(to[q + k] + i, 1); });
        const vec<T> factor = load(by + q);
        vec<T> part[simd::lanes<T>];
        unrolled<simd::lanes<T>>([&](auto k) { part[k] = load(from + (i + k) * all + q) * factor; });
        simd::transpose<T>(part);
        unrolled<simd::lanes<T>>([&](auto k) {
            T* const at = to[q + k] + i;
            store(at, add ? load(at) + part[k] : part[k]);
        });
    };
    each_square<T>(width, n, square, [&](std::size_t i, std::size_t q) {
        to[q][i] = from[i * all + q] * by[q] + (add ? to[q][i] : T(0));
    });
}

/// to_{s+q}[i] += from[i][q] for n queries; `to` may be null.
template <std::size_t registers, class T>
void add_transposed(std::size_t width, std::size_t s, std::size_t n, const T* from, rows<T> to)
{
    if (to.data == nullptr) return;
    T ones[tiles::lanes<T, registers>];
    std::fill_n(ones, tiles::lanes<T, registers>, T(1));
    transposed_back<registers, true>(width, n, from, ones, to.from(s));
}

}  // namespace detail

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
    T sink = -std::numeric_limits<T>::infinity();  // a score whose weight goes nowhere
    const head* next = nullptr;                    // the head whose turn it is afterwards, if that is known
    const T* factors = nullptr;                    // of comparisons that have some
    std::size_t factor_count = 0;
    heed::detail::lane_memo* memo = nullptr;  // of the thread and the call: tiles with a function or a mask need it

    /// Where query s stands among the keys: the last one at the last key.
    std::int32_t place_of(std::size_t s) const
    {
        return static_cast<std::int32_t>(positions) - static_cast<std::int32_t>(queries_count) +
               static_cast<std::int32_t>(s);
    }
};

/// The gradients of one head, to be added to; null where nobody wants them.
template <class T>
struct head_gradients {
    rows<T> queries, keys, values;
    T* table = nullptr;    // of the table that the pair's function looks numbers up in
    T* factors = nullptr;  // of the comparison
    T* of_head = nullptr;  // of the rule's number of this head
};

/// f(registers) for rows of lanes that this many queries fill: one of two widths, since each is compiled.
template <class T>
void with_registers(std::size_t queries, auto&& f)
{
    constexpr std::size_t least = lane_count / simd::lanes<T>;  // a place has lane_count queries
    if (least == 1 && queries <= lanes<T, 1>) {
        f(std::integral_constant<std::size_t, least>{});
    } else {
        f(std::integral_constant<std::size_t, most_registers_of<T>>{});
    }
}

}  // namespace heed::kernels::tiles
