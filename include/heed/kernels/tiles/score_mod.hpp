// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/dual_pack.hpp>
#include <heed/simd/lookup_table.hpp>
#include <heed/simd/pack.hpp>
#include <heed/simd/score_index.hpp>
#include <heed/simd/simd.hpp>

/// Scores of a tile before normalization: a score_mod changes them, and a mask_mod hides some.
///
///     e_j = score_mod(q · k_j, index), −∞ unless mask_mod(index)
///
/// As in FlexAttention, a tile that every query sees is a full block: the mask_mod is not evaluated there. Here each
/// group of lane_count queries has its own full rows.
///
/// A kernel templated on the types of functions and masks would be compiled for each combination, a second or more
/// each; so it calls one type, `score_mod`, once a tile. Only the loop over a tile is compiled for each combination.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// Unmodified scores.
struct unmodified {};

/// The form in which a tile loop stores a function: a copy if copying is trivial, since scores might alias
/// the caller's function.
template <class Function>
using near_by = std::conditional_t<std::is_trivially_copyable_v<Function> && sizeof(Function) <= 512, const Function,
                                   const Function&>;

/// A function of a score, its index and a table, with the table bound to it.
template <class Function, class Table>
struct modified_by_table {
    near_by<Function> f;
    Table table;

    HEED_SIMD_INLINE auto operator()(const auto& e, const score_index& p) const { return f(e, p, table); }
    /// The function with another view of the table.
    template <class Other>
    operator modified_by_table<Function, Other>() const
    {
        return {f, Other(table)};
    }
};

/// Every query sees every key.
struct unmasked {
    bool operator()(const score_index&) const { return true; }
    key_range visible_range(std::int32_t, std::int32_t) const { return heed::detail::all_keys; }
    key_range full_range(std::int32_t, std::int32_t) const { return heed::detail::all_keys; }
};

/// The score_mod and the mask_mod of a call, type-erased. Lanes of a tile are [keys][width]; query s is the first.
template <class T>
class score_mod {
public:
    bool modifies = false;        // is there a score_mod?
    bool learns = false;          // does it look up numbers in a trained table?
    bool evaluates_mask = false;  // does evaluating the mask narrow the visible range that it declares?

    /// The range of keys that queries at the keys first … last may see, and the range that all of these queries see.
    virtual key_range visible_range(std::int32_t first, std::int32_t last) const = 0;
    virtual key_range full_range(std::int32_t first, std::int32_t last) const = 0;
    /// Evaluates the mask, and narrows the rows of a tile that the groups of n queries may see: to the first and last
    /// key that a group sees, and a run of full rows. Several keys are evaluated together while they are alike.
    virtual void evaluate_mask(const head<T>& of, std::size_t n, visible_tile& visible) const = 0;

    /// Writes scores after the score_mod, −inf where a query does not see a key; and, unless `slopes` is null, their
    /// derivatives with respect to the products, times `scale`, 0 where a query does not see a key.
    virtual void apply(const head<T>& of, const visible_tile& visible, T* tile, T* slopes) const = 0;
    /// Adds the gradient of the table.
    virtual void table_gradient(const head<T>& of, const visible_tile& visible, const T* products, const T* d_scores,
                                T* table) const = 0;

protected:
    ~score_mod() = default;
};

/// A block of queries: n queries of a head from index s on, and the score_mod of the call. n ≤ lanes, or for `forward`
/// several blocks.
template <class T>
struct query_block {
    const head<T>& of;
    std::size_t s, n;
    const score_mod<T>& mod;
};

/// Skips no tile.
inline constexpr auto every_tile = [](std::size_t) { return true; };

namespace detail {

/// Evaluates the mask of a partial block, and drops keys that no query sees from its beginning and end.
template <class T>
[[gnu::noinline]] void narrow(const query_block<T>& block, visible_tile& visible)
{
    block.mod.evaluate_mask(block.of, block.n, visible);
    range all;
    for (std::size_t g = 0; g < visible.groups; ++g) all = all.around(visible.rows[g]);
    constexpr std::size_t few = 4;  // sums over dimensions take the same groups of keys as without a mask
    all = {all.begin / few * few, std::min((all.end + few - 1) / few * few, visible.count)};
    for (std::size_t g = 0; g < visible.groups; ++g) {
        const bool none = visible.rows[g].empty();
        for (range* const rows : {&visible.rows[g], &visible.full[g]})
            *rows = none ? range{} : range{rows->begin - all.begin, rows->end - all.begin};
    }
    visible.first += all.begin;
    visible.count = all.size();
    visible.conclude();
}

/// The keys that each group of a block of queries sees, by the ranges that the mask declares.
template <std::size_t registers, class T>
class block_visibility {
public:
    explicit block_visibility(const query_block<T>& block) : block_(block)
    {
        const head<T>& of = block.of;
        for (std::size_t g = 0; g < groups; ++g) {
            visible_[g] = full_[g] = {0, 0};
            const std::size_t first = g * lane_count, last = std::min(block.n, first + lane_count);
            if (first >= last) continue;
            const std::int32_t q0 = of.diagonal_of(block.s + first), q1 = of.diagonal_of(block.s + last - 1);
            visible_[g] = keys_of(block.mod.visible_range(q0, q1), of.positions);
            full_[g] = keys_of(block.mod.full_range(q0, q1), of.positions);
            any_ = any_.around(visible_[g]);
        }
    }
    /// The indices of the tiles with keys that a query of the block may see.
    range visible_tiles() const { return {any_.begin / tiles::keys, (any_.end + tiles::keys - 1) / tiles::keys}; }

    /// Calls f(visible) for this tile if any query of the block sees a key in it.
    void visit(std::size_t tile, const auto& f) const
    {
        const range keys{std::max(any_.begin, tile * tiles::keys), std::min(any_.end, (tile + 1) * tiles::keys)};
        if (keys.empty()) return;
        visible_tile visible = of_keys(keys);
        if (block_.mod.evaluates_mask && !visible.is_full) detail::narrow(block_, visible);
        if (visible.count > 0) f(std::as_const(visible));
    }

private:
    static constexpr std::size_t groups = lanes<T, registers> / lane_count;
    static_assert(groups * lane_count == lanes<T, registers> && groups <= most_registers);

    visible_tile of_keys(const range& keys) const
    {
        visible_tile visible{block_.s, keys.begin, keys.size(), groups, {}, {}, {}, false};
        const auto within = [&](const range& x) {
            return range{std::clamp(x.begin, keys.begin, keys.end) - keys.begin,
                         std::clamp(x.end, keys.begin, keys.end) - keys.begin};
        };
        for (std::size_t g = 0; g < groups; ++g) {
            const range rows = within(visible_[g]), full = within(full_[g]);
            visible.rows[g] = rows;
            visible.full[g] = {std::max(rows.begin, full.begin), std::min(rows.end, full.end)};
            if (visible.full[g].empty()) visible.full[g] = {rows.end, rows.end};
        }
        visible.conclude();
        return visible;
    }

    static range keys_of(const key_range& keys, std::size_t positions)
    {
        return {static_cast<std::size_t>(std::max(0, keys.begin)),
                std::min(positions, static_cast<std::size_t>(std::max(0, keys.end)))};
    }

    const query_block<T> block_;
    range visible_[groups], full_[groups], any_;
};

/// f(visible) for each tile of keys that a query of the block sees and for which `wants(tile)` holds, from the first or
/// the last.
template <std::size_t registers, bool from_the_last = false, class T>
void each_tile(const query_block<T>& block, const auto& wants, const auto& f)
{
    const block_visibility<registers, T> visibility(block);
    const range all = visibility.visible_tiles();
    for (std::size_t i = all.begin; i < all.end; ++i) {
        const std::size_t tile = from_the_last ? all.begin + all.end - 1 - i : i;
        if (wants(tile)) visibility.visit(tile, f);
    }
}

/// f(offset, index) for rows of a group of lanes. The head's memo keeps the results of functions, from `slot` on.
template <class T>
HEED_SIMD_INLINE void each_index(const head<T>& of, const visible_tile& visible, std::size_t group, const range& rows,
                                 const auto& f, std::size_t slot = 0)
{
    using heed::detail::strided_index;
    const std::size_t first = visible.first, width = visible.width(), s = visible.s + group * lane_count;
    const auto query = static_cast<std::int32_t>(of.first_query + s), here = of.diagonal_of(s);
    const auto batch = static_cast<std::int32_t>(of.batch), number = static_cast<std::int32_t>(of.number);
    heed::detail::lane_memo& memo = *of.memo;
    for (std::size_t j = rows.begin, end = rows.end; j < end; ++j) {
        heed::detail::lane_memo::call call{memo, slot};
        // Computations in double cannot use results that are kept as floats.
        heed::detail::lane_memo::call* const kept = std::is_same_v<plain_number<T>, float> ? &call : nullptr;
        score_index p;
        p.batch = batch;
        p.head = number;
        p.query = heed::detail::stepping(strided_index{true, query, 1, 0, kept});
        p.key = heed::detail::stepping(strided_index{true, static_cast<std::int32_t>(first + j), 0, 1, kept});
        p.diagonal = heed::detail::stepping(strided_index{true, here, 1, 0, kept});
        f(j * width + group * lane_count, p);
    }
}

/// Visibility of a set of keys: no query sees any, some queries see some, or every query sees every key.
enum class visible_to { none, some, every };

HEED_SIMD_INLINE bool any_of_lanes(const lane_mask::vector& which)
{
    simd::mask<float> bits;
    std::memcpy(&bits, &which, sizeof bits);
    return simd::any(bits);
}
HEED_SIMD_INLINE lane_mask first_lanes(std::size_t n)
{
    return heed::detail::counted_from(0) < static_cast<std::int32_t>(n);
}
/// `one`: queries that see at least one of the keys; `all`: queries that see all keys; `those`: the lanes of the
/// queries.
HEED_SIMD_INLINE visible_to visibility_of(const lane_mask& one, const lane_mask& all, const lane_mask& those)
{
    if (!any_of_lanes((one & those).at)) return visible_to::none;
    return any_of_lanes(((!all) & those).at) ? visible_to::some : visible_to::every;
}

/// Writes x to the rows that a group does not see.
template <class T>
[[gnu::noinline]] void fill_hidden(const visible_tile& visible, T x, T* tile)
{
    for (std::size_t g = 0; g < visible.groups; ++g) {
        const range hidden[] = {{0, visible.rows[g].begin}, {visible.rows[g].end, visible.count}};
        for (const range& rows : hidden)
            for (std::size_t j = rows.begin; j < rows.end; ++j)
                std::fill_n(tile + j * visible.width() + g * lane_count, lane_count, x);
    }
}

/// f(at, index, partial) for each visible index; if the constant `partial` is true, for indices that may be visible.
template <bool modifies, class T>
HEED_SIMD_INLINE void each_visible(const head<T>& of, const visible_tile& visible, const auto& f)
{
    for (std::size_t g = 0; g < visible.groups; ++g) {
        const range &rows_of_group = visible.rows[g], &full = visible.full[g];
        const range partial[] = {{rows_of_group.begin, full.begin}, {full.end, rows_of_group.end}};
        const auto each = [&](const range& rows, auto some) __attribute__((always_inline))
        {
            detail::each_index(
                of, visible, g,
                rows, [&](std::size_t at, const score_index& p) __attribute__((always_inline)) { f(at, p, some); });
        };
        for (const range& rows : partial) each(rows, std::true_type{});
        if constexpr (modifies) each(full, std::false_type{});
    }
}

using heed::detail::load_lanes, heed::detail::store_lanes;

/// The derivative with respect to the argument of a function with this slope: 0 if d is 0, as at a weight of 0, even if
/// the slope is infinite or NaN; and 0 if the slope is 0, as at a hidden score, even if d is NaN.
template <class T>
HEED_SIMD_INLINE simd::vec<T> through(simd::vec<T> d, simd::vec<T> slope)
{
    return simd::select((d == simd::vec<T>{}) | (slope == simd::vec<T>{}), simd::vec<T>{}, d * slope);
}

}  // namespace detail

/// The score_mod of these types; refers to both. Its loops are inlined: a call would pass an index through memory, and
/// recompute values that do not change from key to key.
template <class T, class Function, class Mask>
class score_mod_of final : public score_mod<T> {
public:
    score_mod_of(const Function& function, const Mask& mask) : function_(function), mask_(mask)
    {
        this->modifies = modified;
        this->learns = requires { function.table; };
        this->evaluates_mask = evaluated;
    }

    key_range visible_range(std::int32_t first, std::int32_t last) const override
    {
        return heed::detail::visible_range_of(mask_, first, last);
    }
    key_range full_range(std::int32_t first, std::int32_t last) const override
    {
        return heed::detail::full_range_of(mask_, first, last);
    }

    [[gnu::flatten]] void evaluate_mask(const head<T>& of, std::size_t n, visible_tile& visible) const override
    {
        if constexpr (evaluated) {
            for (std::size_t g = 0; g < visible.groups; ++g) {
                range &rows = visible.rows[g], &full = visible.full[g];
                if (rows.empty() || rows == full) continue;
                const bool declared = !full.empty();
                const lane_mask those = detail::first_lanes(n - g * lane_count);
                range left{rows.begin, declared ? full.begin : rows.end};
                // From the first row, then from the last: past hidden rows, then past full rows.
                for (const bool from_the_last : {false, true}) {
                    if (from_the_last && declared) left = {full.end, rows.end};
                    const std::size_t passed =
                        pass_alike_rows(of, visible, g, those, {from_the_last, full.empty()}, left);
                    if (from_the_last) {
                        rows.end = left.end + passed;
                        if (passed > 0) full = {left.end, rows.end};
                    } else {
                        rows.begin = left.begin - passed;
                        if (passed > 0) full = {rows.begin, left.begin};
                    }
                }
                if (full.empty()) full = {rows.end, rows.end};
            }
        }
    }

    [[gnu::flatten]] void apply(const head<T>& of, const visible_tile& visible, T* tile, T* slopes) const override
    {
        if (!modified && visible.is_full) return;
        const near_by<Function> f = function_;
        if (!modified || slopes == nullptr) {
            detail::each_visible<modified>(
                of, visible, [&](std::size_t at, const score_index& p, auto partial) __attribute__((always_inline)) {
                    heed::pack<T> e = detail::load_lanes(tile + at);
                    if constexpr (modified) e = heed::pack<T>(f(e, heed::detail::for_score(p)));
                    if constexpr (partial) e = select(lane_mask(mask_(p)), e, lowest);
                    detail::store_lanes(tile + at, e);
                });
        } else if constexpr (modified) {
            detail::each_visible<true>(
                of, visible, [&](std::size_t at, const score_index& p, auto partial) __attribute__((always_inline)) {
                    const dual<T> e = f(dual<T>{detail::load_lanes(tile + at), 1}, heed::detail::for_score(p));
                    heed::pack<T> value = e.value, slope = e.slope * of.scale;
                    if constexpr (partial) {
                        const lane_mask sees(mask_(p));
                        value = select(sees, value, lowest);
                        slope = select(sees, slope, T(0));
                    }
                    detail::store_lanes(tile + at, value);
                    detail::store_lanes(slopes + at, slope);
                });
            detail::fill_hidden(visible, T(0), slopes);
        }
        detail::fill_hidden(visible, lowest, tile);
    }

    void table_gradient(const head<T>& of, const visible_tile& visible, const T* products, const T* d_scores,
                        T* table) const override
    {
        if constexpr (requires(const Function& function) { function.table; }) {
            const near_by<Function> f = function_;
            heed::detail::add_to_table(
                f.f, f.table, table, [&](const auto& come_back) __attribute__((always_inline)) {
                    for (std::size_t g = 0; g < visible.groups; ++g) {
                        detail::each_index(
                            of, visible, g,
                            visible.rows[g], [&](std::size_t at, const score_index& p) __attribute__((always_inline)) {
                                come_back(detail::load_lanes(products + at), heed::detail::for_score(p),
                                          detail::load_lanes(d_scores + at));
                            });
                    }
                });
        }
    }

private:
    /// How rows are evaluated: from which end, and whether full rows are searched.
    struct search {
        bool from_the_last, for_full;
    };

    /// Removes hidden rows from one end of `left` and, if full rows are searched, the full rows that follow. Returns
    /// the number of full rows.
    HEED_SIMD_INLINE std::size_t pass_alike_rows(const head<T>& of, const visible_tile& visible, std::size_t group,
                                                 const lane_mask& those, const search& how, range& left) const
    {
        using detail::visible_to;
        std::size_t full = 0, at_once = 1;
        bool closely = false;
        visible_to before = visible_to::some;
        while (!left.empty()) {
            const std::size_t n_rows = std::min(at_once, left.size());
            const range rows =
                how.from_the_last ? range{left.end - n_rows, left.end} : range{left.begin, left.begin + n_rows};
            lane_mask one(false), all(true);  // queries that see at least one row, and those that see all
            detail::each_index(
                of, visible, group, rows,
                [&](std::size_t, const score_index& p) __attribute__((always_inline)) {
                    const lane_mask sees(mask_(p));
                    one = one | sees;
                    all = all & sees;
                },
                slot_of_mask);
            const visible_to now = detail::visibility_of(one, all, those);
            if (now == visible_to::some || (now == visible_to::every ? !how.for_full : full > 0)) {
                if (n_rows == 1) break;
                closely = true;  // row by row, while they are like the rows before
                at_once = 1;
                continue;
            }
            if (now == visible_to::every) full += n_rows;
            (how.from_the_last ? left.end = rows.begin : left.begin = rows.end);
            closely = closely && now == before;
            at_once = closely ? 1 : rows_at_once_evaluated;
            before = now;
        }
        return full;
    }

    static constexpr bool modified = !std::is_same_v<Function, unmodified>;
    static constexpr std::size_t rows_at_once_evaluated = 16;
    static constexpr bool evaluated = !heed::detail::told_by_ranges<Mask>;
    static constexpr T lowest = -std::numeric_limits<T>::infinity();
    // A mask that is evaluated separately has other slots than a function: they would evict each other's numbers.
    static constexpr std::size_t slot_of_mask = modified ? heed::detail::lane_memo::slots / 2 : 0;

    const Function& function_;
    const Mask& mask_;
};

}  // namespace heed::inline HEED_TARGET::kernels::tiles
