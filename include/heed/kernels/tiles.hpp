// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heed/attention/place.hpp>
#include <heed/core/tables.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/simd.hpp>

/// Attention of many queries tile by tile: a block of queries against a block of keys, whose scores never leave the
/// cache.
///
///     C = softmax(Q Kᵀ) V            Vaswani et al. 2017, eq. 1; computed online as in Milakov, Gimelshein 2018
///
/// **Queries lie in the lanes.** A tile of scores [keys][lanes] has a row for each key, so that what a query needs of
/// all its scores (their greatest, their sum) is elementwise, and every product reads keys, values and gradients where
/// they lie, one number at a time, and one row of the tile:
///
///     e_j = Σ_i K_ji q_i,  c_i += Σ_j V_ji p_j
///
/// where i is a dimension, j a key, and e_j, q_i, c_i and p_j are rows of lanes.
///
/// Only a block's queries and its contexts are transposed, once for all keys. Going back, scores are computed again
/// from one number per query, ln Σ e^e.
namespace heed::kernels::tiles {

/// Registers of a row of lanes, at most; fewer for few queries.
inline constexpr std::size_t most_registers = simd::register_bytes == 64 ? 4 : 2;

/// The same of dual numbers, whose registers are two.
template <class T>
inline constexpr std::size_t most_registers_of = most_registers;
template <class T>
inline constexpr std::size_t most_registers_of<dual_number<T>> = most_registers / 2 < sizeof(T) / sizeof(float)
                                                                     ? sizeof(T) / sizeof(float)
                                                                     : most_registers / 2;

/// Queries of a block whose rows of lanes take `registers`.
template <class T, std::size_t registers>
inline constexpr std::size_t lanes = registers* simd::lanes<T>;

/// Rows of lanes that a product sums at once: their sums, a row of the panel and a factor fill the registers.
template <class T, std::size_t registers>
inline constexpr std::size_t rows_at_once = (simd::register_bytes == 64 ? 24 : 12) / (registers < 2 ? 2 : registers);
template <class T, std::size_t registers>
inline constexpr std::size_t rows_at_once<dual_number<T>, registers> =
    rows_at_once<T, 2 * registers> < 3 ? 3 : rows_at_once<T, 2 * registers>;

/// Keys of a tile.
inline constexpr std::size_t keys = 96;

/// Rows of numbers, `stride` apart: of one head, where it lies among others.
template <class T>
struct rows {
    T* data;
    std::size_t stride;

    T* operator[](std::size_t row) const { return data + row * stride; }
};

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
};

/// What the queries of a block see of a tile of `count` keys. A group is the lane_count queries of a place.
struct tile_reach {
    std::size_t count, groups;
    range reach[most_registers];  // rows that a group may see, the others it does not,
    range whole[most_registers];  // and of these the ones that it surely sees
    range common;                 // rows that all groups may see
    bool all;                     // does every query see all of them?

    /// Of `queries` lanes, those whose groups may see some of the rows.
    range lanes_of(const range& rows, std::size_t queries) const
    {
        if (common.begin <= rows.begin && rows.end <= common.end) return {0, queries};
        range seen{queries, 0};
        for (std::size_t g = 0; g < groups; ++g) {
            if (reach[g].end <= rows.begin || rows.end <= reach[g].begin) continue;
            seen = {std::min(seen.begin, g * lane_count), std::min(queries, (g + 1) * lane_count)};
        }
        return seen;
    }
};

namespace detail {

/// y_r (+)= Σ_k x[r·across + k·along] panel_k, for `count` rows r of lanes. Rows of the panel and of y are `stride`
/// apart.
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
    // Few registers: the keys that a register of queries sees alone come in eights.
    constexpr std::size_t most = registers < most_registers_of<T> ? 8 : rows_at_once<T, registers>;
    const auto take = [&](auto n) {
        for (; count >= n; count -= n, x += n * across, y += n * stride)
            product<n, registers, add>(depth, x, across, along, panel, y, stride);
    };
    take(std::integral_constant<std::size_t, most>{});
    if constexpr (most > 6) take(std::integral_constant<std::size_t, 6>{});
    take(std::integral_constant<std::size_t, 3>{});
    take(std::integral_constant<std::size_t, 1>{});
}

/// y_j += Σ_q tile_jq x_q over `columns` registers of columns and, if `some`, the first of one more: for `count` rows j
/// of a tile.
template <std::size_t count, std::size_t columns, std::size_t registers, class T>
HEED_SIMD_INLINE void product_of_lanes(std::size_t queries, const T* tile, rows<const T> x, rows<T> y, std::size_t some)
{
    using namespace simd;
    const auto get = [&](const T* from, std::size_t c) {
        return c + 1 < columns || some == simd::lanes<T> ? load(from + c * simd::lanes<T>)
                                                         : load(from + c * simd::lanes<T>, some);
    };
    vec<T> sum[count][columns];
    unrolled<count>([&](auto j) { unrolled<columns>([&](auto c) { sum[j][c] = get(y[j], c); }); });
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
            c + 1 < columns || some == simd::lanes<T> ? store(to, sum[j][c]) : store(to, sum[j][c], some);
        });
    });
}

/// The same for all rows and columns; with a reach, only over lanes that see a row.
template <std::size_t registers, class T>
void products_of_lanes(std::size_t count, std::size_t queries, const T* tile, rows<const T> x, rows<T> y,
                       std::size_t width, const tile_reach* reach = nullptr)
{
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

/// f(registers, lane, rows) for the parts of a tile that are seen: so many registers from a lane on. Rows that all
/// groups see are one part; what they see before and behind it is one for each. A lane's rows come in order.
template <std::size_t registers, class T>
HEED_SIMD_INLINE void each_part(const tile_reach& seen, const auto& f)
{
    constexpr std::size_t groups = lanes<T, registers> / lane_count;
    const auto alone = [&](bool behind) {
        if constexpr (groups > 1) {
            for (std::size_t g = 0; g < groups; ++g) {
                const range& reach = seen.reach[g];
                const range rows = behind ? range{std::max(reach.begin, seen.common.end), reach.end}
                                          : range{reach.begin, seen.common.begin};
                if (!rows.empty()) f(std::integral_constant<std::size_t, registers / groups>{}, g * lane_count, rows);
            }
        }
    };
    alone(false);
    if (!seen.common.empty()) f(std::integral_constant<std::size_t, registers>{}, std::size_t{0}, seen.common);
    alone(true);
}

/// f(i, q) for squares of registers that cover the first `width` and `n`, as far as they fit; edge(i, q) for each
/// number behind them.
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
    transposed_back<registers, true>(width, n, from, ones, rows<T>{to[s], to.stride});
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
    const T* factors = nullptr;                    // [width], of comparisons that have some

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

/// Scores as they are.
struct unmodified {};

/// Scores as a function of them, of their place and of a table has them.
template <class Function, class Table>
struct modified_by_table {
    const Function& f;
    Table table;

    HEED_SIMD_INLINE auto operator()(const auto& e, const place& p) const { return f(e, p, table); }
    /// The same with another view of the table.
    template <class Other>
    operator modified_by_table<Function, Other>() const
    {
        return {f, Other(table)};
    }
};

/// A function as a loop over a tile keeps it: a copy where that is easy, so that what tables are stays in registers.
/// (The compiler takes the scores that are written for something that may lie where the caller's function lies.)
template <class Pair>
struct nearby {
    using type = std::conditional_t<std::is_trivially_copyable_v<Pair>, const Pair, const Pair&>;
};
template <class Function, class T, std::size_t N>
struct nearby<modified_by_table<Function, lane_table<T, N>>> {
    using type = const modified_by_table<Function, heed::detail::table_of_tile<T, N>>;
};
template <class Pair>
using kept_near = typename nearby<Pair>::type;

/// Every query sees every key.
struct unmasked {
    bool operator()(const place&) const { return true; }
    key_range whole(std::int32_t, std::int32_t) const { return heed::detail::all_keys; }
};

namespace detail {

/// What each group of a block of queries sees of all keys, as a mask has it.
template <std::size_t registers, class T>
class block_reach {
public:
    template <class Mask>
    block_reach(const head<T>& of, std::size_t s, std::size_t n, const Mask& mask)
    {
        for (std::size_t g = 0; g < groups; ++g) {
            reach_[g] = whole_[g] = {0, 0};
            const std::size_t first = g * lane_count, last = std::min(n, first + lane_count);
            if (first >= last) continue;
            const std::int32_t q0 = of.place_of(s + first), q1 = of.place_of(s + last - 1);
            reach_[g] = keys_of(heed::detail::reach_of(mask, q0, q1), of.positions);
            whole_[g] = keys_of(heed::detail::whole_of(mask, q0, q1), of.positions);
            if (reach_[g].empty()) continue;
            all_ = all_.empty() ? reach_[g]
                                : range{std::min(all_.begin, reach_[g].begin), std::max(all_.end, reach_[g].end)};
        }
    }
    /// Keys that one of the queries may see.
    const range& all() const { return all_; }

    tile_reach of(const range& keys) const
    {
        tile_reach seen{keys.size(), groups, {}, {}, {0, keys.size()}, true};
        const auto rows = [&](const range& x) {
            return range{std::clamp(x.begin, keys.begin, keys.end) - keys.begin,
                         std::clamp(x.end, keys.begin, keys.end) - keys.begin};
        };
        for (std::size_t g = 0; g < groups; ++g) {
            const range reach = rows(reach_[g]), whole = rows(whole_[g]);
            seen.reach[g] = reach;
            seen.whole[g] = {std::max(reach.begin, whole.begin), std::min(reach.end, whole.end)};
            if (seen.whole[g].empty()) seen.whole[g] = {reach.end, reach.end};
            seen.common = {std::max(seen.common.begin, reach.begin), std::min(seen.common.end, reach.end)};
            seen.all = seen.all && seen.whole[g].size() == keys.size();
        }
        if (seen.common.empty()) seen.common = {0, 0};
        return seen;
    }

private:
    static constexpr std::size_t groups = lanes<T, registers> / lane_count;
    static_assert(groups * lane_count == lanes<T, registers> && groups <= most_registers);

    static range keys_of(const key_range& keys, std::size_t positions)
    {
        return {static_cast<std::size_t>(std::max(0, keys.begin)),
                std::min(positions, static_cast<std::size_t>(std::max(0, keys.end)))};
    }

    range reach_[groups], whole_[groups], all_;
};

/// The tiles of keys that queries s … s + n − 1 may see: f(first, reach) for each that `wants(tile)`, from the first or
/// from the last.
template <std::size_t registers, bool from_the_last = false, class T, class Mask>
void each_tile(const head<T>& of, std::size_t s, std::size_t n, const Mask& mask, const auto& wants, const auto& f)
{
    const block_reach<registers, T> reach(of, s, n, mask);
    const std::size_t begin = reach.all().begin, end = reach.all().end;
    const std::size_t first_tile = begin / tiles::keys, last_tile = (end + tiles::keys - 1) / tiles::keys;
    for (std::size_t i = first_tile; i < last_tile; ++i) {
        const std::size_t tile = from_the_last ? first_tile + last_tile - 1 - i : i;
        if (!wants(tile)) continue;
        const range keys{std::max(begin, tile * tiles::keys), std::min(end, (tile + 1) * tiles::keys)};
        if (!keys.empty()) f(keys.begin, reach.of(keys));
    }
}

/// f(at, place) for rows of a group of lanes in a tile: `at` is their offset there.
template <std::size_t registers, class T>
HEED_SIMD_INLINE void each_place(const head<T>& of, std::size_t s, std::size_t group, std::size_t first,
                                 const range& rows, const auto& f)
{
    const auto query = heed::detail::counted_from(of.first_query + s + group * lane_count),
               here = heed::detail::counted_from(of.place_of(s + group * lane_count));
    for (std::size_t j = rows.begin; j < rows.end; ++j) {
        place p;
        p.batch = static_cast<std::int32_t>(of.batch);
        p.head = static_cast<std::int32_t>(of.number);
        p.query.at = query.at;
        p.key.at = heed::pack<std::int32_t>(static_cast<std::int32_t>(first + j)).at;
        p.here.at = here.at;
        f(j * lanes<T, registers> + group * lane_count, p);
    }
}

/// x in the rows that a group does not see.
template <std::size_t registers, class T>
void fill_unseen(const tile_reach& seen, std::size_t group, T x, T* tile)
{
    const range unseen[] = {{0, seen.reach[group].begin}, {seen.reach[group].end, seen.count}};
    for (const range& rows : unseen)
        for (std::size_t j = rows.begin; j < rows.end; ++j)
            std::fill_n(tile + j * lanes<T, registers> + group * lane_count, lane_count, x);
}
template <std::size_t registers, class T>
void fill_unseen(const tile_reach& seen, T x, T* tile)
{
    for (std::size_t g = 0; g < seen.groups; ++g) fill_unseen<registers>(seen, g, x, tile);
}

/// f(at, place, partial) for each place that is seen, or may be seen if `partial`: a constant.
template <std::size_t registers, bool changed, class T>
HEED_SIMD_INLINE void each_seen(const head<T>& of, std::size_t s, std::size_t first, const tile_reach& seen,
                                const auto& f)
{
    for (std::size_t g = 0; g < seen.groups; ++g) {
        const range &reach = seen.reach[g], &whole = seen.whole[g];
        const range partial[] = {{reach.begin, whole.begin}, {whole.end, reach.end}};
        for (const range& rows : partial)
            each_place<registers>(of, s, g, first, rows,
                                  [&](std::size_t at, const place& p) { f(at, p, std::true_type{}); });
        if constexpr (changed)
            each_place<registers>(of, s, g, first, whole,
                                  [&](std::size_t at, const place& p) { f(at, p, std::false_type{}); });
    }
}

template <class T>
HEED_SIMD_INLINE heed::pack<T> lanes_at(const T* x)
{
    return heed::detail::load_lanes(x);
}
template <class T>
HEED_SIMD_INLINE void put_lanes(T* x, const heed::pack<T>& v)
{
    heed::detail::store_lanes(x, v);
}

/// The derivative by what a function with this slope was given. Where nothing comes back, as to a weight of 0, the
/// slope may be infinite or NaN; and a hidden score, whose slope is 0, has none, even if another one made its whole row
/// NaN.
template <class T>
HEED_SIMD_INLINE simd::vec<T> through(simd::vec<T> d, simd::vec<T> slope)
{
    return simd::select((d == simd::vec<T>{}) | (slope == simd::vec<T>{}), simd::vec<T>{}, d * slope);
}

/// Scores as the pair's function changes them; −inf where a query does not see a key. Flat: a function that is called
/// takes a place from memory, and computes anew what does not change from key to key.
template <std::size_t registers, class T, class Pair, class Mask>
[[gnu::flatten]] void modify(const head<T>& of, std::size_t s, std::size_t first, const tile_reach& seen,
                             const Pair& changes, const Mask& mask, T* tile)
{
    constexpr bool changed = !std::is_same_v<Pair, unmodified>;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    if (!changed && seen.all) return;
    const kept_near<Pair> pair = changes;
    each_seen<registers, changed>(of, s, first, seen, [&](std::size_t at, const place& p, auto partial) {
        heed::pack<T> e = lanes_at(tile + at);
        if constexpr (changed) e = heed::pack<T>(pair(e, heed::detail::for_score(p)));
        if constexpr (partial) e = select(lane_mask(mask(p)), e, lowest);
        put_lanes(tile + at, e);
    });
    fill_unseen<registers>(seen, lowest, tile);
}

}  // namespace detail

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
