// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/kernels/tiles/score_mod.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/kernels/tiles/weights.hpp>
#include <heed/simd/simd.hpp>

/// The first pass of rules with two passes: the numbers z of each row from all scores, τ of sparsemax and entmax or the
/// k-th largest score.
///
/// Few keys: all scores of a block of queries are kept for the second pass. Many keys: a selection keeps the scores of
/// each row that may have a weight, and both passes compute the tiles.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// Do all scores of a block of queries with this number of keys fit in the second-level cache?
template <class T, std::size_t registers>
bool keeps_scores(std::size_t positions)
{
    return positions * lanes<T, registers> * sizeof(T) <= std::size_t{3} << 18;
}

/// The largest scores of each lane's row, if they may have a weight: a list for each lane, [slot][lane].
template <std::size_t registers, class T, class Rule>
class selection {
public:
    explicit selection(const Rule& rule) : rule_(rule)
    {
        list_ = detail::filled(here_, width * (room + tiles::keys), lowest);
        top_ = detail::filled(here_, 3 * width, lowest);
        second_ = top_ + width;
        bound_ = second_ + width;
        std::fill_n(second_, width, static_cast<T>(Rule::first));
        count_ = detail::filled(here_, width, std::size_t{0});
    }

    /// Adds the scores of further keys.
    void add(const T* tile, std::size_t count)
    {
        using namespace simd;
        unrolled<registers>([&](auto c) {
            T *const tops = top_ + c * simd::lanes<T>, *const seconds = second_ + c * simd::lanes<T>;
            const T *const from = tile + c * simd::lanes<T>, *const bounds = bound_ + c * simd::lanes<T>;
            const vec<T> before = load(tops), none = splat(lowest), bound = load(bounds);
            vec<T> top = before;
            for (std::size_t j = 0; j < count; ++j) top = simd::max(load(from + j * width), top);  // not NaN
            store(tops, top);
            store(seconds, select(before == none, load(seconds), rule_.moved(load(seconds), top - before)));
            if (slots_ == 0) {
                for (std::size_t j = 0; j < count; ++j)
                    store(list_ + j * width + c * simd::lanes<T>, load(from + j * width));
                return;
            }
            for (std::size_t j = 0; j < count; ++j) {
                const T* const scores = from + j * width;
                if (!any(load(scores) > bound)) continue;
                for (std::size_t i = 0; i < simd::lanes<T>; ++i) {
                    const std::size_t q = c * simd::lanes<T> + i;
                    if (scores[i] > bounds[i]) list_[count_[q]++ * width + q] = scores[i];
                }
            }
        });
        if (slots_ == 0) std::fill_n(count_, width, count);
        slots_ = *std::max_element(count_, count_ + width);
        if (slots_ > rule_.kept()) solve();
        if (slots_ > room / 2) compact();
    }

    /// z of each row. Returns whether a row has more weights than fit here: its z is then only a starting value.
    bool finish(T* z)
    {
        solve();
        std::copy_n(top_, 2 * width, z);
        for (std::size_t q = 0; q < width; ++q)
            if (z[q] == lowest) z[q] = z[width + q] = T(0);
        return std::find(bound_, bound_ + width, -lowest) != bound_ + width;
    }
    bool full(std::size_t q) const { return bound_[q] == -lowest; }

private:
    static constexpr std::size_t width = lanes<T, registers>, room = scores_kept;
    static constexpr T lowest = -std::numeric_limits<T>::infinity();

    void solve()
    {
        using namespace simd;
        unrolled<registers>([&](auto c) {
            const std::size_t at = c * simd::lanes<T>;
            const vec<T> none = splat(lowest), top = select(load(top_ + at) == none, vec<T>{}, load(top_ + at));
            const vec<T> second = rule_.solve(slots_, list_ + at, width, top, load(second_ + at));
            store(second_ + at, second);
            store(bound_ + at, select(load(bound_ + at) == -none, -none, rule_.bound(top, second)));
        });
    }
    /// Drops scores without a weight. A full row accepts no more scores.
    void compact()
    {
        slots_ = 0;
        for (std::size_t q = 0; q < width; ++q) {
            std::size_t kept = 0;
            for (std::size_t j = 0; j < count_[q]; ++j) {
                const T e = list_[j * width + q];
                list_[kept * width + q] = e;
                kept += e > bound_[q] || full(q) ? 1 : 0;
            }
            for (; kept < std::min(rule_.kept(), count_[q]); ++kept) list_[kept * width + q] = bound_[q];
            for (std::size_t j = kept; j < count_[q]; ++j) list_[j * width + q] = lowest;
            count_[q] = kept;
            if (kept > room) bound_[q] = -lowest;
            slots_ = std::max(slots_, kept);
        }
    }

    scratch here_;
    const Rule& rule_;
    std::size_t slots_ = 0;
    T *list_, *top_, *second_, *bound_;
    std::size_t* count_;
};

namespace detail {

/// A step of Newton's method for τ, from weights and slopes summed over all tiles, for the rows with more scores than
/// fit in a selection. Returns whether τ [lanes] of any row has moved.
template <std::size_t registers, class T, class Rule>
bool refine(const auto& compare, const query_block<T>& block, const selection<registers, T, Rule>& kept,
            const Rule& rule, T* tile, T* z)
{
    using namespace simd;
    constexpr std::size_t width = lanes<T, registers>;
    const T enough = 16 * std::numeric_limits<T>::epsilon();
    const auto now = numbers_at<registers, Rule>(z, width, 0, width);
    auto weights = row<T, registers>::all(0), slopes = weights;
    each_tile<registers>(block, every_tile, [&](const visible_tile& visible) {
        score_tile(compare, block, visible, tile);
        weights_of<registers>(visible.count, rule, now, tile, [&](std::size_t, auto c, vec<T> w) {
            weights.at[c] += w;
            slopes.at[c] += rule.slope(w);
        });
    });
    T* const tau = z + width;
    T better[width];
    unrolled<registers>(
        [&](auto c) { store(better + c * simd::lanes<T>, rule.better(now[1].at[c], weights.at[c], slopes.at[c])); });
    bool moved = false;
    for (std::size_t q = 0; q < block.n; ++q) {
        if (!kept.full(q)) continue;
        moved = moved || better[q] - tau[q] > enough * rule.scale(tau[q]);
        tau[q] = better[q];
    }
    return moved;
}

/// The rule's numbers of each row, [numbers][lanes], if the scores of a tile are discarded before the next tile.
template <std::size_t registers, class T, class Rule>
void numbers_tile_by_tile(const auto& compare, const query_block<T>& block, const Rule& rule, T* tile, T* z)
{
    selection<registers, T, Rule> kept(rule);
    each_tile<registers>(block, every_tile, [&](const visible_tile& visible) {
        score_tile(compare, block, visible, tile);
        kept.add(tile, visible.count);
    });
    if (!kept.finish(z)) return;
    // A row has more weights than fit, all nearly equal.
    if constexpr (requires(simd::vec<T> x) { rule.better(x, x, x); }) {
        for (std::size_t round = 0; round < 60; ++round)
            if (!refine<registers>(compare, block, kept, rule, tile, z)) break;
    }
}

/// The rule's numbers if all scores are kept, [keys that a query may see][lanes].
template <std::size_t registers, class T, class Rule>
void numbers_of_kept_scores(const auto& compare, const query_block<T>& block, const Rule& rule, T* all, T* z)
{
    using namespace simd;
    constexpr std::size_t width = lanes<T, registers>;
    std::size_t count = 0;
    each_tile<registers>(block, every_tile, [&](const visible_tile& visible) {
        score_tile(compare, block, visible, all + count * width);
        count += visible.count;
    });
    const vec<T> none = splat(-std::numeric_limits<T>::infinity());
    unrolled<registers>([&](auto c) {
        const T* const scores = all + c * simd::lanes<T>;
        vec<T> top = none;
        for (std::size_t j = 0; j < count; ++j) top = simd::max(load(scores + j * width), top);  // not NaN
        const auto empty = top == none;
        top = select(empty, vec<T>{}, top);
        const vec<T> second = rule.solve(count, scores, width, top, splat(static_cast<T>(Rule::first)));
        store(z + c * simd::lanes<T>, top);
        store(z + width + c * simd::lanes<T>, select(empty, vec<T>{}, second));
    });
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET::kernels::tiles
