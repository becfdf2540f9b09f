// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include <heed/core/workspace.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/kernels/tiles/prefetch.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/score_mod.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/kernels/tiles/transpose.hpp>
#include <heed/kernels/tiles/weights.hpp>
#include <heed/simd/lookup_table.hpp>
#include <heed/simd/simd.hpp>

/// The backward pass of a block of queries, tile by tile. It recomputes the scores, and the weights from the rule's
/// numbers.
///
///     dw_j = ∂c · v_j            ∂v_j += w_j ∂c
///     de_j = slope(w_j) (dw_j − m)            m: `center` of kernels/tiles/normalizer_rules.hpp
///     ∂q += scale Σ_j de_j k_j,  ∂k_j += scale · de_j q
///
/// `reference::backward` of kernels/tiles/reference.hpp computes the gradients in a plain loop over queries and keys;
/// tests compare the two.
namespace heed::inline HEED_TARGET::kernels::tiles {

namespace detail {

/// Prefetching for the backward pass: rows of the next block of queries, and of the next tile of keys.
template <std::size_t registers, class T>
struct backward_prefetch {
    prefetch<const T> queries, contexts, d_contexts, keys, values;
    prefetch<T> d_queries, d_keys, d_values;

    /// Selects the rows that are read after the tile that ends with this key.
    HEED_SIMD_INLINE void begin_tile(const next_rows<registers, T>& next, const head<T>& of,
                                     const head_gradients<T>& to, std::size_t end)
    {
        keys = next.keys(end);
        values = next.values(end);
        d_keys = next.of_keys(to.keys, end, of.width);
        d_values = next.of_keys(to.values, end, of.value_width);
    }
    HEED_SIMD_INLINE void begin_key()
    {
        queries.lines(1);
        contexts.lines(1);
        d_contexts.lines(1);
        d_queries.lines(1);
        keys.lines(8);
        values.lines(8);
        d_keys.lines(8);
        d_values.lines(8);
    }
};

/// The steps of `backward` for a block of queries. Rows of lanes are members between tiles, and locals within a tile,
/// so that they stay in registers.
template <std::size_t registers, class Compare, class T, class Rule>
class backward_pass {
public:
    using row = tiles::row<T, registers>;

    /// `selects`: products skip zero factors, which is slow, because some numbers are not finite.
    backward_pass(const query_block<T>& block, const Rule& rule, const forward_results<T>& from,
                  const head_gradients<T>& to, bool selects)
        : block_(block),
          rule_(rule),
          from_(from),
          to_(to),
          modifies_(block.mod.modifies),
          learns_(block.mod.learns && to.table != nullptr),
          compare_(block.of, block.s, block.n),
          z_(numbers_at<registers, Rule>(from.numbers, block.of.queries_count, block.s, block.n))
    {
        const head<T>& of = block.of;
        compare_.begin_back();
        d_panel_ = here_.take<T>(of.value_width * width);
        tile_.weights = here_.take<T>(tile_size);
        tile_.d_scores = here_.take<T>(tile_size);
        if (modifies_) tile_.slopes = here_.take<T>(tile_size);
        if (Rule::sequential) tile_.shares = here_.take<T>(tile_size);
        if (learns_) tile_.products = here_.take<T>(tile_size);
        transposed<registers>(of.value_width, block.n, from.d_contexts.from(block.s), T(1), d_panel_);
        selects_ = selects || !compare_.finite() || !finite_lanes<registers>(of.value_width, block.n, d_panel_);
    }

    /// The mean m of each query, which needs all tiles.
    void find_means()
    {
        T means[width] = {};
        if constexpr (Rule::mean == center::weights) {  // Σ_j w_j dw_j = dc · c
            for (std::size_t q = 0; q < block_.n; ++q)
                means[q] = dot(block_.of.value_width, from_.d_contexts[block_.s + q], from_.contexts[block_.s + q]);
        }
        mean_ = Rule::mean == center::slopes ? mean_by_slopes() : row::of(means);
        if constexpr (Rule::sequential) {
            if (!std::all_of(means, means + block_.n, [](const T& x) { return x - x == T(0); })) sum_earlier_keys();
        }
    }

    /// Adds the gradients of the tiles with wants(tile).
    HEED_SIMD_INLINE void add_gradients(const auto& wants)
    {
        const head<T>& of = block_.of;
        const next_rows<registers, T> next(block_);
        backward_prefetch<registers, T> ahead{next.queries(),
                                              next.of_queries(from_.contexts, of.value_width),
                                              next.of_queries(from_.d_contexts, of.value_width),
                                              {},
                                              {},
                                              {to_.queries, {block_.s, block_.s + block_.n}, of.width},
                                              {},
                                              {}};
        each_tile<registers, Rule::sequential>(block_, wants, [&](const visible_tile& visible) {
            if (!recompute_weights(visible)) return;
            ahead.begin_tile(next, of, to_, visible.first + visible.count);
            gradients_of_scores(visible, ahead);
            clear_lanes_without_queries(visible.count);
            through_score_mod(visible);
            if (to_.values.data != nullptr)
                arithmetic::template products_of_lanes<registers>(
                    !selects_, visible.count, block_.n, tile_.weights, from_.d_contexts.from(block_.s),
                    to_.values.from(visible.first), of.value_width, &visible);
            compare_.back(visible, tile_.d_scores, to_, selects_);
        });
    }

    /// Are the sums over all keys finite? If not, the pass has to be repeated with `selects`.
    bool is_finite() { return selects_ || to_.queries.data == nullptr || compare_.sums_finite(); }

    /// Adds the sums over all keys to the gradients of the queries and of the rule's number.
    void finish()
    {
        compare_.add_to(to_);
        if constexpr (has_number) {
            T some[width];
            d_number_.put(some);
            for (std::size_t q = 0; to_.of_head != nullptr && q < block_.n; ++q)
                *to_.of_head += rule_.of_number(some[q]);
        }
    }

private:
    using arithmetic = arithmetic_of<Compare>;
    static constexpr std::size_t width = lanes<T, registers>, tile_size = tiles::keys * width;
    static constexpr bool has_number = requires(const Rule& rule, simd::vec<T> w) { rule.bend(w); };

    /// The arrays of a tile, [keys][lanes]; null if not needed.
    struct numbers_of_tile {
        T* weights = nullptr;
        T* d_scores = nullptr;  // initially the gradients of the weights
        T* slopes = nullptr;    // of the score_mod
        T* products = nullptr;  // scores before the score_mod, if its table is trained
        T* shares = nullptr;    // of a sequential rule
        T* earlier = nullptr;   // Σ_{i<j} w_i dw_i of all keys, of a sequential rule
    };

    /// Recomputes the weights of a tile, and stores their gradients in d_scores. Returns false if all weights are 0.
    bool recompute_weights(const visible_tile& visible)
    {
        const head<T>& of = block_.of;
        compare_.scores(visible, tile_.weights);
        if (tile_.products != nullptr) std::copy_n(tile_.weights, visible.count * width, tile_.products);
        if (modifies_ || !visible.is_full) block_.mod.apply(of, visible, tile_.weights, tile_.slopes);
        const auto z = z_;
        auto rest = rest_;
        const bool some = weigh<registers>(visible.count, rule_, z, rest, tile_.weights, tile_.shares);
        rest_ = rest;
        if (!some) return false;
        each_part<registers, T>(visible, [&](auto of_lanes, std::size_t lane, const range& rows) {
            arithmetic::template products<of_lanes, false>(
                rows.size(), of.value_width, of.values[visible.first + rows.begin], of.values.stride, 1,
                d_panel_ + lane, tile_.d_scores + rows.begin * width + lane, width);
        });
        fill_hidden(visible, T(0), tile_.d_scores);
        return true;
    }

    /// m = Σ_j slope_j dw_j / Σ_j slope_j
    row mean_by_slopes()
    {
        using namespace simd;
        row pulled = row::all(0), all = row::all(0);
        if constexpr (Rule::mean == center::slopes) {
            each_tile<registers>(block_, every_tile, [&](const visible_tile& visible) {
                if (!recompute_weights(visible)) return;
                const T *const weights = tile_.weights, *const d_weights = tile_.d_scores;
                for (std::size_t j = 0; j < visible.count; ++j) {
                    unrolled<registers>([&](auto c) {
                        const std::size_t at = j * width + c * simd::lanes<T>;
                        const vec<T> w = load(weights + at), slope = rule_.slope(w), sum = pulled.at[c];
                        all.at[c] += slope;
                        pulled.at[c] = select(w == vec<T>{}, sum, fma(slope, load(d_weights + at), sum));
                    });
                }
            });
            unrolled<registers>(
                [&](auto c) { pulled.at[c] = select(all.at[c] == vec<T>{}, vec<T>{}, pulled.at[c] / all.at[c]); });
        }
        return pulled;
    }

    /// Σ_{i<j} w_i dw_i for each key of a sequential rule, if Σ_i w_i dw_i − Σ_{i≥j} w_i dw_i is not finite.
    void sum_earlier_keys()
    {
        tile_.earlier = here_.take<T>(block_.of.positions * width);
        each_tile<registers, true>(block_, every_tile, [&](const visible_tile& visible) {
            recompute_weights(visible);
            for (std::size_t i = 0; i < visible.count * width; i += simd::lanes<T>)
                simd::store(tile_.earlier + visible.first * width + i,
                            rule_.pulled(simd::load(tile_.weights + i), simd::load(tile_.d_scores + i)));
        });
        rest_ = {};
        row sum = row::all(0);
        each_tile<registers>(block_, every_tile, [&](const visible_tile& visible) {
            for (std::size_t j = visible.first; j < visible.first + visible.count; ++j) {
                const row pulled = row::of(tile_.earlier + j * width);
                sum.put(tile_.earlier + j * width);
                simd::unrolled<registers>([&](auto c) { sum.at[c] += pulled.at[c]; });
            }
        });
    }

    /// Converts gradients of weights to those of scores, from the last key to the first.
    HEED_SIMD_INLINE void gradients_of_scores(const visible_tile& visible, backward_prefetch<registers, T>& ahead)
    {
        using namespace simd;
        const numbers_of_tile tile = tile_;
        const bool modifies = modifies_;
        const T scale = block_.of.scale;
        const row mean = mean_;
        row later = later_, d_number = d_number_;
        for (std::size_t j = visible.count; j-- > 0;) {
            ahead.begin_key();
            unrolled<registers>([&](auto c) {
                const std::size_t at = j * width + c * simd::lanes<T>;
                vec<T> d;
                if constexpr (Rule::sequential) {
                    d = sequential_gradient(tile, at, visible.first * width, mean.at[c], later.at[c]);
                } else {
                    d = gradient(tile, at, mean.at[c], d_number.at[c]);
                }
                store(tile.d_scores + at, modifies ? d : d * splat(scale));
            });
        }
        later_ = later;
        d_number_ = d_number;
    }

    /// de = slope(w) (dw − m) for a register of a tile; adds to the gradient of the rule's number.
    HEED_SIMD_INLINE simd::vec<T> gradient(const numbers_of_tile& tile, std::size_t at, simd::vec<T> mean,
                                           [[maybe_unused]] simd::vec<T>& d_number) const
    {
        using namespace simd;
        const vec<T> w = load(tile.weights + at), by = load(tile.d_scores + at) - mean;  // NaN, if a hidden value is
        const auto nothing = w == vec<T>{};
        const vec<T> d = select(nothing, vec<T>{}, rule_.slope(w) * by);
        if constexpr (has_number) {
            if (to_.of_head != nullptr) d_number += select(nothing, vec<T>{}, rule_.bend(w) * by);
        }
        return d;
    }

    /// de for a sequential rule, for the tile that starts at index `first` of all keys. `later`: Σ w_i dw_i of the
    /// later keys, to which this key's term is added.
    HEED_SIMD_INLINE simd::vec<T> sequential_gradient(const numbers_of_tile& tile, std::size_t at, std::size_t first,
                                                      simd::vec<T> mean, simd::vec<T>& later) const
    {
        using namespace simd;
        const vec<T> share = load(tile.shares + at),
                     pulled = rule_.pulled(load(tile.weights + at), load(tile.d_scores + at));
        later = rule_.later_than(share, later + pulled, mean);
        return rule_.gradient(share, pulled, tile.earlier == nullptr ? mean - later : load(tile.earlier + first + at));
    }

    /// Clears lanes without queries; their weights may be infinite.
    void clear_lanes_without_queries(std::size_t count)
    {
        const std::size_t n = block_.n;
        for (std::size_t j = 0; n < width && j < count; ++j)
            std::fill(tile_.d_scores + j * width + n, tile_.d_scores + (j + 1) * width, T(0));
    }

    /// Converts gradients of modified scores to those of the products; adds to the gradient of the table.
    void through_score_mod(const visible_tile& visible)
    {
        if (learns_) block_.mod.table_gradient(block_.of, visible, tile_.products, tile_.d_scores, to_.table);
        if (!modifies_) return;
        for (std::size_t i = 0; i < visible.count * width; i += simd::lanes<T>)
            simd::store(tile_.d_scores + i, through<T>(simd::load(tile_.d_scores + i), simd::load(tile_.slopes + i)));
        clear_lanes_without_queries(visible.count);
    }

    const query_block<T>& block_;
    const Rule& rule_;
    const forward_results<T>& from_;
    const head_gradients<T>& to_;
    bool modifies_, learns_, selects_;
    scratch here_;
    typename Compare::template block<registers, T> compare_;
    std::array<row, Rule::numbers> z_;  // the rule's numbers
    row mean_;                          // m of each query
    row later_ = row::all(0);           // Σ_i w_i dw_i of the keys after a tile
    row d_number_ = row::all(0);        // the gradient of the rule's number
    carried<registers, Rule, T> rest_;
    T* d_panel_;  // ∂c in lanes, [value_width][lanes]
    numbers_of_tile tile_;
};

}  // namespace detail

/// Adds the gradients of a block of queries, over the tiles with wants(tile). If a weight is 0, as at a hidden key, the
/// gradient is 0 for any key, value, query and ∂c, including NaN.
template <std::size_t registers, class Compare = inner_product, class T, class Rule, class Wants>
void backward(const query_block<T>& block, const Rule& rule, const forward_results<T>& from,
              const head_gradients<T>& to, const Wants& wants, bool selects = false)
{
    [[maybe_unused]] const typename detail::arithmetic_of<Compare>::scope products;
    detail::backward_pass<registers, Compare, T, Rule> pass(block, rule, from, to, selects);
    pass.find_means();
    pass.add_gradients(wants);
    if (pass.is_finite()) return pass.finish();
    // Keys and values have their gradients already: recompute only those of the queries.
    const head_gradients<T> rest{to.queries, {nullptr, 0}, {nullptr, 0}, nullptr, to.factors, to.of_head};
    backward<registers, Compare>(block, rule, from, rest, wants, true);
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles
