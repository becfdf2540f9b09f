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
#include <heed/simd/dual_lanes.hpp>
#include <heed/simd/lanes.hpp>
#include <heed/simd/place.hpp>
#include <heed/simd/simd.hpp>
#include <heed/simd/tables.hpp>

/// What happens to the scores of a tile before they become weights: a function changes them, and a mask hides some.
///
/// A kernel that knew the types of functions and masks would be compiled for each combination, a second or more each;
/// so it calls one type, `changes`, once a tile. Only the loop over a tile is compiled for each.
namespace heed::kernels::tiles {

/// Scores as they are.
struct unmodified {};

/// A function as a loop over a tile keeps it: a copy if that is easy, since scores might alias the caller's function.
template <class Function>
using near_by = std::conditional_t<std::is_trivially_copyable_v<Function> && sizeof(Function) <= 512, const Function,
                                   const Function&>;

/// Scores as a function of them, of their place and of a table has them.
template <class Function, class Table>
struct modified_by_table {
    near_by<Function> f;
    Table table;

    HEED_SIMD_INLINE auto operator()(const auto& e, const place& p) const { return f(e, p, table); }
    /// The same with another view of the table.
    template <class Other>
    operator modified_by_table<Function, Other>() const
    {
        return {f, Other(table)};
    }
};

/// Every query sees every key.
struct unmasked {
    bool operator()(const place&) const { return true; }
    key_range reach(std::int32_t, std::int32_t) const { return heed::detail::all_keys; }
    key_range whole(std::int32_t, std::int32_t) const { return heed::detail::all_keys; }
};

/// The function and the mask of a call, whatever their types. Lanes of a tile are [keys][width]; query s is the first.
template <class T>
class changes {
public:
    bool changed = false;  // is there a function?
    bool learns = false;   // has it a table that learns?
    bool asks = false;     // is more known of a tile when the mask has been asked than `reach` and `whole` say?

    /// Keys that queries which stand at the keys first … last may see, and keys that all of them see.
    virtual key_range reach(std::int32_t first, std::int32_t last) const = 0;
    virtual key_range whole(std::int32_t first, std::int32_t last) const = 0;
    /// Asks the mask, and narrows what the groups of n queries may see of a tile: the first and last key that a group
    /// sees, and a run of keys that all of its queries see. Several keys are asked about at once while they are alike.
    virtual void ask(const head<T>& of, std::size_t n, tile_reach& seen) const = 0;

    /// Scores as the function changes them, −inf where a query does not see a key; and, unless `slopes` is null, their
    /// derivatives by the products, times `scale`, 0 where a query does not see a key.
    virtual void scores(const head<T>& of, const tile_reach& seen, T* tile, T* slopes) const = 0;
    /// Adds the gradient of the table.
    virtual void back_to_table(const head<T>& of, const tile_reach& seen, const T* products, const T* d_scores,
                               T* table) const = 0;

protected:
    ~changes() = default;
};

/// Leaves no tile out.
inline constexpr auto every_tile = [](std::size_t) { return true; };

namespace detail {

/// What each group of a block of queries sees of all keys, as a mask has it.
template <std::size_t registers, class T>
class block_reach {
public:
    block_reach(const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what)
    {
        for (std::size_t g = 0; g < groups; ++g) {
            reach_[g] = whole_[g] = {0, 0};
            const std::size_t first = g * lane_count, last = std::min(n, first + lane_count);
            if (first >= last) continue;
            const std::int32_t q0 = of.place_of(s + first), q1 = of.place_of(s + last - 1);
            reach_[g] = keys_of(what.reach(q0, q1), of.positions);
            whole_[g] = keys_of(what.whole(q0, q1), of.positions);
            all_ = all_.around(reach_[g]);
        }
    }
    /// Keys that one of the queries may see.
    const range& all() const { return all_; }

    /// Of some keys, what the queries from s on see.
    tile_reach of(std::size_t s, const range& keys) const
    {
        tile_reach seen{s, keys.begin, keys.size(), groups, {}, {}, {}, false};
        const auto rows = [&](const range& x) {
            return range{std::clamp(x.begin, keys.begin, keys.end) - keys.begin,
                         std::clamp(x.end, keys.begin, keys.end) - keys.begin};
        };
        for (std::size_t g = 0; g < groups; ++g) {
            const range reach = rows(reach_[g]), whole = rows(whole_[g]);
            seen.reach[g] = reach;
            seen.whole[g] = {std::max(reach.begin, whole.begin), std::min(reach.end, whole.end)};
            if (seen.whole[g].empty()) seen.whole[g] = {reach.end, reach.end};
        }
        seen.conclude();
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

/// What queries see of a tile of keys when the mask has been asked. Keys before and behind that are left out.
template <class T>
[[gnu::noinline]] void narrow(const head<T>& of, std::size_t n, const changes<T>& what, tile_reach& seen)
{
    what.ask(of, n, seen);
    range all;
    for (std::size_t g = 0; g < seen.groups; ++g) all = all.around(seen.reach[g]);
    constexpr std::size_t few = 4;  // sums over dimensions take as many keys at once: the same ones as without a mask
    all = {all.begin / few * few, std::min((all.end + few - 1) / few * few, seen.count)};
    for (std::size_t g = 0; g < seen.groups; ++g) {
        const bool none = seen.reach[g].empty();
        for (range* const rows : {&seen.reach[g], &seen.whole[g]})
            *rows = none ? range{} : range{rows->begin - all.begin, rows->end - all.begin};
    }
    seen.first += all.begin;
    seen.count = all.size();
    seen.conclude();
}

/// f(reach) for each tile of keys that queries s … s + n − 1 see and that `wants(tile)`, from the first or the last.
template <std::size_t registers, bool from_the_last = false, class T>
void each_tile(const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what, const auto& wants,
               const auto& f)
{
    const block_reach<registers, T> reach(of, s, n, what);
    const std::size_t begin = reach.all().begin, end = reach.all().end;
    const std::size_t first_tile = begin / tiles::keys, last_tile = (end + tiles::keys - 1) / tiles::keys;
    for (std::size_t i = first_tile; i < last_tile; ++i) {
        const std::size_t tile = from_the_last ? first_tile + last_tile - 1 - i : i;
        if (!wants(tile)) continue;
        const range keys{std::max(begin, tile * tiles::keys), std::min(end, (tile + 1) * tiles::keys)};
        if (keys.empty()) continue;
        tile_reach seen = reach.of(s, keys);
        if (what.asks && !seen.all) detail::narrow(of, n, what, seen);
        if (seen.count > 0) f(std::as_const(seen));
    }
}

/// f(offset, place) for rows of a group of lanes. The head's memo keeps the numbers that functions find, from `slot`
/// on.
template <class T>
HEED_SIMD_INLINE void each_place(const head<T>& of, const tile_reach& seen, std::size_t group, const range& rows,
                                 const auto& f, std::size_t slot = 0)
{
    using heed::detail::lane_steps;
    const std::size_t first = seen.first, width = seen.width(), s = seen.s + group * lane_count;
    const auto query = static_cast<std::int32_t>(of.first_query + s), here = of.place_of(s);
    const auto batch = static_cast<std::int32_t>(of.batch), number = static_cast<std::int32_t>(of.number);
    heed::detail::lane_memo& memo = *of.memo;
    for (std::size_t j = rows.begin, end = rows.end; j < end; ++j) {
        heed::detail::lane_memo::call call{memo, slot};
        // Whatever computes in doubles has no use for numbers kept as floats.
        heed::detail::lane_memo::call* const kept = std::is_same_v<plain_number<T>, float> ? &call : nullptr;
        place p;
        p.batch = batch;
        p.head = number;
        p.query = heed::detail::stepping(lane_steps{true, query, 1, 0, kept});
        p.key = heed::detail::stepping(lane_steps{true, static_cast<std::int32_t>(first + j), 0, 1, kept});
        p.here = heed::detail::stepping(lane_steps{true, here, 1, 0, kept});
        f(j * width + group * lane_count, p);
    }
}

/// Which queries see some keys: none sees any, some see some, or every query every key.
enum class seen_by { none, some, every };

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
/// `one`: who sees one of some keys; `all`: who sees all of them; `those`: the lanes of the queries.
HEED_SIMD_INLINE seen_by who_sees(const lane_mask& one, const lane_mask& all, const lane_mask& those)
{
    if (!any_of_lanes((one & those).at)) return seen_by::none;
    return any_of_lanes(((!all) & those).at) ? seen_by::some : seen_by::every;
}

/// x in the rows that a group does not see.
template <class T>
[[gnu::noinline]] void fill_unseen(const tile_reach& seen, T x, T* tile)
{
    for (std::size_t g = 0; g < seen.groups; ++g) {
        const range unseen[] = {{0, seen.reach[g].begin}, {seen.reach[g].end, seen.count}};
        for (const range& rows : unseen)
            for (std::size_t j = rows.begin; j < rows.end; ++j)
                std::fill_n(tile + j * seen.width() + g * lane_count, lane_count, x);
    }
}

/// f(at, place, partial) for each place that is seen, or may be seen if `partial`: a constant.
template <bool changed, class T>
HEED_SIMD_INLINE void each_seen(const head<T>& of, const tile_reach& seen, const auto& f)
{
    for (std::size_t g = 0; g < seen.groups; ++g) {
        const range &reach = seen.reach[g], &whole = seen.whole[g];
        const range partial[] = {{reach.begin, whole.begin}, {whole.end, reach.end}};
        const auto each = [&](const range& rows, auto some) __attribute__((always_inline))
        {
            detail::each_place(
                of, seen, g,
                rows, [&](std::size_t at, const place& p) __attribute__((always_inline)) { f(at, p, some); });
        };
        for (const range& rows : partial) each(rows, std::true_type{});
        if constexpr (changed) each(whole, std::false_type{});
    }
}

using heed::detail::load_lanes, heed::detail::store_lanes;

/// The derivative by the argument of a function with this slope: 0 where d is 0, as at a weight of 0, even if the slope
/// is infinite or NaN; and where the slope is 0, as at a hidden score, even if d is NaN.
template <class T>
HEED_SIMD_INLINE simd::vec<T> through(simd::vec<T> d, simd::vec<T> slope)
{
    return simd::select((d == simd::vec<T>{}) | (slope == simd::vec<T>{}), simd::vec<T>{}, d * slope);
}

}  // namespace detail

/// `changes` of these types; refers to both. Its loops are flat: a call would pass a place through memory, and compute
/// anew what does not change from key to key.
template <class T, class Pair, class Mask>
class changes_by final : public changes<T> {
public:
    changes_by(const Pair& pair, const Mask& mask) : pair_(pair), mask_(mask)
    {
        this->changed = function;
        this->learns = requires { pair.table; };
        this->asks = asked;
    }

    key_range reach(std::int32_t first, std::int32_t last) const override
    {
        return heed::detail::reach_of(mask_, first, last);
    }
    key_range whole(std::int32_t first, std::int32_t last) const override
    {
        return heed::detail::whole_of(mask_, first, last);
    }

    [[gnu::flatten]] void ask(const head<T>& of, std::size_t n, tile_reach& seen) const override
    {
        if constexpr (asked) {
            using detail::seen_by;
            for (std::size_t g = 0; g < seen.groups; ++g) {
                range &reach = seen.reach[g], &whole = seen.whole[g];
                if (reach.empty() || reach == whole) continue;
                const bool told = !whole.empty();
                const lane_mask those = detail::first_lanes(n - g * lane_count);
                range left{reach.begin, told ? whole.begin : reach.end};
                // From the first row, then from the last: past rows that nobody sees, then past those that all see.
                for (const bool from_the_last : {false, true}) {
                    if (from_the_last && told) left = {whole.end, reach.end};
                    const bool counts = whole.empty();  // is a run of rows that all queries see looked for?
                    std::size_t full = 0, at_once = 1;
                    bool closely = false;
                    seen_by before = seen_by::some;
                    while (!left.empty()) {
                        const std::size_t n_rows = std::min(at_once, left.size());
                        const range rows =
                            from_the_last ? range{left.end - n_rows, left.end} : range{left.begin, left.begin + n_rows};
                        lane_mask one(false), all(true);  // who sees one of the rows, and all of them
                        detail::each_place(
                            of, seen, g, rows,
                            [&](std::size_t, const place& p) __attribute__((always_inline)) {
                                const lane_mask sees(mask_(p));
                                one = one | sees;
                                all = all & sees;
                            },
                            slot_of_questions);
                        const seen_by now = detail::who_sees(one, all, those);
                        if (now == seen_by::some || (now == seen_by::every ? !counts : full > 0)) {
                            if (n_rows == 1) break;
                            closely = true;  // row by row, as long as they are like those before
                            at_once = 1;
                            continue;
                        }
                        if (now == seen_by::every) full += n_rows;
                        (from_the_last ? left.end = rows.begin : left.begin = rows.end);
                        closely = closely && now == before;
                        at_once = closely ? 1 : rows_of_a_question;
                        before = now;
                    }
                    if (from_the_last) {
                        reach.end = left.end + full;
                        if (full > 0) whole = {left.end, reach.end};
                    } else {
                        reach.begin = left.begin - full;
                        if (full > 0) whole = {reach.begin, left.begin};
                    }
                }
                if (whole.empty()) whole = {reach.end, reach.end};
            }
        }
    }

    [[gnu::flatten]] void scores(const head<T>& of, const tile_reach& seen, T* tile, T* slopes) const override
    {
        if (!function && seen.all) return;
        const near_by<Pair> pair = pair_;
        if (!function || slopes == nullptr) {
            detail::each_seen<function>(
                of, seen, [&](std::size_t at, const place& p, auto partial) __attribute__((always_inline)) {
                    heed::pack<T> e = detail::load_lanes(tile + at);
                    if constexpr (function) e = heed::pack<T>(pair(e, heed::detail::for_score(p)));
                    if constexpr (partial) e = select(lane_mask(mask_(p)), e, lowest);
                    detail::store_lanes(tile + at, e);
                });
        } else if constexpr (function) {
            detail::each_seen<true>(
                of, seen, [&](std::size_t at, const place& p, auto partial) __attribute__((always_inline)) {
                    const dual<T> e = pair(dual<T>{detail::load_lanes(tile + at), 1}, heed::detail::for_score(p));
                    heed::pack<T> value = e.value, slope = e.slope * of.scale;
                    if constexpr (partial) {
                        const lane_mask sees(mask_(p));
                        value = select(sees, value, lowest);
                        slope = select(sees, slope, T(0));
                    }
                    detail::store_lanes(tile + at, value);
                    detail::store_lanes(slopes + at, slope);
                });
            detail::fill_unseen(seen, T(0), slopes);
        }
        detail::fill_unseen(seen, lowest, tile);
    }

    void back_to_table(const head<T>& of, const tile_reach& seen, const T* products, const T* d_scores,
                       T* table) const override
    {
        if constexpr (requires(const Pair& pair) { pair.table; }) {
            const near_by<Pair> pair = pair_;
            heed::detail::add_to_table(
                pair.f, pair.table, table, [&](const auto& come_back) __attribute__((always_inline)) {
                    for (std::size_t g = 0; g < seen.groups; ++g) {
                        detail::each_place(
                            of, seen, g,
                            seen.reach[g], [&](std::size_t at, const place& p) __attribute__((always_inline)) {
                                come_back(detail::load_lanes(products + at), heed::detail::for_score(p),
                                          detail::load_lanes(d_scores + at));
                            });
                    }
                });
        }
    }

private:
    static constexpr bool function = !std::is_same_v<Pair, unmodified>;
    static constexpr std::size_t rows_of_a_question = 16;
    static constexpr bool asked = !heed::detail::told_by_ranges<Mask>;
    static constexpr T lowest = -std::numeric_limits<T>::infinity();
    // A mask that is asked alone has other slots than a function: the two would drive each other's numbers out.
    static constexpr std::size_t slot_of_questions = function ? heed::detail::lane_memo::slots / 2 : 0;

    const Pair& pair_;
    const Mask& mask_;
};

}  // namespace heed::kernels::tiles
