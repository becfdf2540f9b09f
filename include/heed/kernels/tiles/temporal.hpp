// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/tiles/changes.hpp>
#include <heed/kernels/tiles/rules.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>
#include <heed/simd/tables.hpp>

/// Contexts of many queries in their order, where each key remembers the scores that it had, tile by tile:
///
///     u_tj = e_tj − β L_tj,  L_{t+1,j} = log(exp(L_tj − δ) + exp(e_tj)),  c_t = Σ_j softmax(u_t)_j v_j
///
/// after Sankaran et al. 2016, eq. 6-8 (β = 1, δ = 0).
///
/// A key's past does not depend on another key. **So keys lie in the lanes**, unlike kernels/tiles/attend.hpp: a tile
/// [queries][lanes] has a row for each query, L is one row of lanes, and a block of keys meets all queries in their
/// order before the next block. The backward pass runs each block twice: forward for L at each tile, and back.
namespace heed::kernels::tiles {

/// Queries of a tile whose keys lie in the lanes.
inline constexpr std::size_t queries = 48;

namespace detail {

/// A block of keys against all queries of a sentence, a tile at a time.
template <std::size_t registers, class T, class Pair, class Mask, class Past>
class block_of_keys {
public:
    static constexpr std::size_t width = lanes<T, registers>;
    using row = tiles::row<T, registers>;

    block_of_keys(const head<T>& of, const Pair& pair, const Mask& mask, const Past& past)
        : of_(of), pair_(pair), mask_(mask), past_(past), panel_(here_.template take<T>(of.width * width))
    {}

    /// Goes to the keys from `first` on.
    void go_to(std::size_t first)
    {
        first_ = first;
        n_ = std::min(width, of_.positions - first);
        transposed<registers>(of_.width, n_, of_.keys.from(first), of_.scale, panel_);
    }
    std::size_t keys() const { return n_; }

    /// Scores of `count` queries from s on, seen or not; `slopes`: ∂e / ∂(inner product) times the scale, or null.
    void scores(std::size_t s, std::size_t count, T* tile, T* slopes = nullptr) const
    {
        products(s, count, tile);
        if constexpr (changed) {
            if (slopes == nullptr) {
                each_place(s, count, [&](std::size_t at, const place& p) {
                    store_lanes(tile + at, heed::pack<T>(pair_(load_lanes(tile + at), heed::detail::for_score(p))));
                });
            } else {
                each_place(s, count, [&](std::size_t at, const place& p) {
                    const dual<T> e = pair_(dual<T>{load_lanes(tile + at), 1}, heed::detail::for_score(p));
                    store_lanes(tile + at, e.value);
                    store_lanes(slopes + at, e.slope * of_.scale);
                });
            }
        }
    }
    void products(std::size_t s, std::size_t count, T* tile) const
    {
        detail::products<registers, false>(count, of_.width, of_.queries[s], of_.queries.stride, 1, panel_, tile);
    }

    /// Goes on with L through a tile of scores: f(q, e, L) sees each query's, and L as it was before.
    HEED_SIMD_INLINE void remember(std::size_t count, const T* tile, row& L, const auto& f) const
    {
        for (std::size_t q = 0; q < count; ++q) {
            const row e = row::of(tile + q * width);
            f(q, e, L);
            simd::unrolled<registers>([&](auto c) { L.at[c] = past_.grown(L.at[c], e.at[c]); });
        }
    }

    /// −inf where a query of the tile does not see a key. Returns whether one sees any.
    bool hide(std::size_t s, std::size_t count, T* tile) const
    {
        const std::int32_t q0 = of_.place_of(s), q1 = of_.place_of(s + count - 1),
                           begin = static_cast<std::int32_t>(first_), end = static_cast<std::int32_t>(first_ + n_);
        const key_range reach = heed::detail::reach_of(mask_, q0, q1);
        if (reach.end <= begin || reach.begin >= end) return false;
        constexpr T lowest = -std::numeric_limits<T>::infinity();
        constexpr bool asks = !heed::detail::told_by_ranges<Mask>;
        lane_mask seen(!asks);
        if (heed::detail::whole_of(mask_, q0, q1).contains(begin, end - 1)) {
            seen = true;
        } else {
            each_place(s, count, [&](std::size_t at, const place& p) {
                const lane_mask sees(mask_(p));
                if constexpr (asks) seen = seen | (sees & first_lanes(n_ - std::min(n_, at % width)));
                store_lanes(tile + at, select(sees, load_lanes(tile + at), lowest));
            });
        }
        if (n_ < width) {
            for (std::size_t q = 0; q < count; ++q) std::fill(tile + q * width + n_, tile + (q + 1) * width, lowest);
        }
        return any_of_lanes(seen.at);
    }

    /// What comes back to the numbers that the pair's function looked up.
    void add_to_table(std::size_t s, std::size_t count, const T* products, const T* d_scores, T* table) const
    {
        heed::detail::add_to_table(
            pair_.f, pair_.table, table, [&](const auto& come_back) __attribute__((always_inline)) {
                each_place(
                    s, count, [&](std::size_t at, const place& p) __attribute__((always_inline)) {
                        come_back(load_lanes(products + at), heed::detail::for_score(p), load_lanes(d_scores + at));
                    });
            });
    }

    static constexpr bool changed = !std::is_same_v<Pair, unmodified>;

private:
    /// f(at, place) for each register of a tile of `count` queries from s on.
    HEED_SIMD_INLINE void each_place(std::size_t s, std::size_t count, const auto& f) const
    {
        constexpr std::size_t groups = width / lane_count;
        static_assert(groups * lane_count == width);
        place p;
        p.batch = static_cast<std::int32_t>(of_.batch);
        p.head = static_cast<std::int32_t>(of_.number);
        for (std::size_t q = 0; q < count; ++q) {
            p.query = heed::pack<std::int32_t>(static_cast<std::int32_t>(of_.first_query + s + q));
            p.here = heed::pack<std::int32_t>(of_.place_of(s + q));
            simd::unrolled<groups>([&](auto g) {
                place here = p;
                for (std::size_t i = 0; i < lane_count; ++i)
                    here.key.at[i] = static_cast<std::int32_t>(first_ + g * lane_count + i);
                f(q * width + g * lane_count, here);
            });
        }
    }

    const head<T>& of_;
    const Pair& pair_;
    const Mask& mask_;
    const Past& past_;
    scratch here_;
    T* panel_;
    std::size_t first_ = 0, n_ = 0;
};

/// L of a block of keys; −inf in the lanes behind them.
template <std::size_t registers, class T>
row<T, registers> past_of(const T* history, std::size_t n)
{
    T all[lanes<T, registers>];
    std::fill(std::copy_n(history, n, all), all + lanes<T, registers>, -std::numeric_limits<T>::infinity());
    return row<T, registers>::of(all);
}

/// Contexts to which very many blocks of keys are added, keys_of_part at a time: see kernels/block_sums.hpp.
template <class T>
class contexts_in_blocks {
public:
    contexts_in_blocks(const head<T>& of, rows<T> contexts, scratch& here)
        : queries_(of.queries_count), width_(of.value_width), positions_(of.positions), contexts_(contexts)
    {
        if (positions_ <= keys_of_part) return;
        part_ = here.take<T>(2 * queries_ * width_ + queries_);
        std::fill_n(part_, 2 * queries_ * width_, T(0));
        std::fill_n(tops(), queries_, -std::numeric_limits<T>::infinity());
    }

    /// Where the keys at work are added, beside the greatest score so far.
    rows<T> now() const { return part_ == nullptr ? contexts_ : rows<T>{part_, width_}; }

    /// The keys before `end` have been added.
    void next(std::size_t end, const T* greatest)
    {
        if (part_ == nullptr || (end % keys_of_part != 0 && end < positions_)) return;
        for (std::size_t s = 0; s < queries_; ++s) {
            using std::exp;
            T *const part = part_ + s * width_, *const lost = part + queries_ * width_;
            const T top = greatest[s], base = top == -std::numeric_limits<T>::infinity() ? T(0) : top;
            const auto fade = [by = simd::splat(exp(tops()[s] - base))](auto v) { return v * by; };
            tops()[s] = top;
            simd::transform(width_, contexts_[s], fade, contexts_[s]);
            simd::transform(width_, lost, fade, lost);
            kernels::detail::add_and_keep(width_, contexts_[s], lost, part);
            std::fill_n(part, width_, T(0));
            if (end >= positions_) kernels::detail::add_lost(width_, contexts_[s], lost);
        }
    }

private:
    static constexpr std::size_t keys_of_part = 4096;

    T* tops() const { return part_ + 2 * queries_ * width_; }

    std::size_t queries_, width_, positions_;
    rows<T> contexts_;
    T* part_ = nullptr;  // [S,D] of the keys at work, [S,D] what rounding has lost, [S] the greatest scores before them
};

}  // namespace detail

/// Contexts of all queries of a sentence. `history` [positions] is L before them, and becomes L after them. `numbers`
/// [2, queries]: each query's greatest score and 1 / divisor. A query that sees nothing gets 0.
template <std::size_t registers, class T, class Pair, class Mask, class Past>
void forward_in_order(const head<T>& of, const Pair& pair, const Mask& mask, const Past& past, rows<T> contexts,
                      T* history, T* numbers)
{
    using namespace simd;
    using row = tiles::row<T, registers>;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    constexpr std::size_t width = lanes<T, registers>;
    scratch here;
    T* const tile = here.take<T>(tiles::queries * width);
    T* const tops = numbers;
    auto* const sums = detail::filled(here, of.queries_count, in_double<T>(0));
    std::fill_n(tops, of.queries_count, lowest);
    for (std::size_t s = 0; s < of.queries_count; ++s) std::fill_n(contexts[s], of.value_width, T(0));
    detail::contexts_in_blocks<T> blocks(of, contexts, here);
    const rows<T> now = blocks.now();
    const bool finite = detail::finite_rows(of.positions, of.value_width, of.values);
    detail::block_of_keys<registers, T, Pair, Mask, Past> block(of, pair, mask, past);
    for (std::size_t first = 0; first < of.positions; first += width) {
        block.go_to(first);
        row L = detail::past_of<registers>(history + first, block.keys());
        for (std::size_t s = 0; s < of.queries_count; s += tiles::queries) {
            const std::size_t count = std::min(tiles::queries, of.queries_count - s);
            block.scores(s, count, tile);
            block.remember(count, tile, L, [&](std::size_t q, const row& e, const row& before) {
                unrolled<registers>([&](auto c) {
                    store(tile + q * width + c * simd::lanes<T>, past.modulated(e.at[c], before.at[c]));
                });
            });
            if (!block.hide(s, count, tile)) continue;
            for (std::size_t q = 0; q < count; ++q) {
                row u = row::of(tile + q * width);
                vec<T> greatest = u.at[0];
                unrolled<registers>([&](auto c) { greatest = simd::max(u.at[c], greatest); });
                const T before = tops[s + q], top = std::max(before, simd::max(greatest));
                const T base = top == lowest ? T(0) : top;
                vec<T> sum{};
                unrolled<registers>([&](auto c) {
                    u.at[c] = simd::exp(u.at[c] - splat(base));
                    sum += u.at[c];
                });
                u.put(tile + q * width);
                tops[s + q] = top;
                if (top != before) {  // what has been summed so far, for a greater divisor
                    using std::exp;
                    const T factor = exp(before - base);
                    sums[s + q] *= static_cast<in_double<T>>(factor);
                    each_register<T>(of.value_width, [&](std::size_t i, std::size_t some) {
                        T* const c = now[s + q] + i;
                        store_first(c, load_first(c, some) * splat(factor), some);
                    });
                }
                sums[s + q] += static_cast<in_double<T>>(simd::sum(sum));
            }
            // The value of a hidden key, which has a weight of 0, may be NaN.
            detail::products_of_lanes<registers>(finite, count, block.keys(), tile, of.values.from(first), now.from(s),
                                                 of.value_width);
        }
        T after[width];
        L.put(after);
        std::copy_n(after, block.keys(), history + first);
        blocks.next(first + width, tops);
    }
    for (std::size_t s = 0; s < of.queries_count; ++s) {
        const T sum = static_cast<T>(sums[s]), by = sum == 0 ? T(0) : T(1) / sum;
        for (std::size_t i = 0; i < of.value_width; ++i) contexts[s][i] *= by;
        tops[s] = sum == 0 ? T(0) : tops[s];
        numbers[of.queries_count + s] = by;
    }
}

/// Goes back through them. `history` is L before the first query; `d_after` the gradient of L after the last one, or
/// null, and `d_before` where that of L before the first one is added, or null.
template <std::size_t registers, class T, class Pair, class Mask, class Past>
void backward_in_order(const head<T>& of, const Pair& pair, const Mask& mask, const Past& past, rows<const T> contexts,
                       const T* numbers, rows<const T> d_contexts, const T* history, const T* d_after, T* d_before,
                       const head_gradients<T>& to)
{
    using namespace simd;
    using row = tiles::row<T, registers>;
    using block_of_keys = detail::block_of_keys<registers, T, Pair, Mask, Past>;
    constexpr std::size_t width = lanes<T, registers>, size = tiles::queries * width;
    constexpr bool learns = requires { pair.table; };
    scratch here;
    const std::size_t blocks = (of.queries_count + tiles::queries - 1) / tiles::queries;
    T* const begins = here.take<T>(blocks * width);  // L before each tile
    T* const pasts = here.take<T>(size + width);     // L before each query, and after the last
    const auto room = [&](bool wanted = true) { return wanted ? here.take<T>(size) : nullptr; };
    T *const weights = room(), *const modulated = room(), *const d_scores = room(),  // weights: first the scores
                                                              *const slopes = room(block_of_keys::changed),
             *const products_alone = room(learns && to.table != nullptr);
    const auto panel = [&](std::size_t rows) { return here.take<T>(rows * width); };
    T *const d_panel = panel(of.value_width), *const d_keys = panel(of.width), *const d_values = panel(of.value_width);
    // Where a weight is 0, as at a hidden key, nothing comes back, whatever the key, its value, the query and ∂c are.
    const bool finite = detail::finite_rows(of.positions, of.width, of.keys) &&
                        detail::finite_rows(of.queries_count, of.width, of.queries) &&
                        detail::finite_rows(of.queries_count, of.value_width, d_contexts);
    const auto add_products = [&](std::size_t wide, std::size_t count, rows<const T> x, const T* tile, T* y) {
        if (finite) return detail::products<registers, true>(wide, count, x.data, 1, x.stride, tile, y);
        detail::selected_products<registers>(wide, count, x, tile, y);
    };
    block_of_keys block(of, pair, mask, past);
    for (std::size_t first = 0; first < of.positions; first += width) {
        block.go_to(first);
        const std::size_t n = block.keys();
        detail::transposed<registers>(of.value_width, n, of.values.from(first), T(1), d_panel);
        std::fill_n(d_keys, of.width * width, T(0));
        std::fill_n(d_values, of.value_width * width, T(0));
        row L = detail::past_of<registers>(history + first, n);
        for (std::size_t b = 0; b < blocks; ++b) {
            L.put(begins + b * width);
            if (b + 1 == blocks) break;
            block.scores(b * tiles::queries, tiles::queries, weights);
            block.remember(tiles::queries, weights, L, [](std::size_t, const row&, const row&) {});
        }
        T of_history[width] = {};
        if (d_after != nullptr) std::copy_n(d_after + first, n, of_history);
        row d_L = row::of(of_history);
        for (std::size_t b = blocks; b-- > 0;) {
            const std::size_t s = b * tiles::queries, count = std::min(tiles::queries, of.queries_count - s);
            if (products_alone != nullptr) block.products(s, count, products_alone);
            block.scores(s, count, weights, slopes);
            L = row::of(begins + b * width);
            block.remember(count, weights, L, [&](std::size_t q, const row& e, const row& before) {
                before.put(pasts + q * width);
                unrolled<registers>([&](auto c) {
                    store(modulated + q * width + c * simd::lanes<T>, past.modulated(e.at[c], before.at[c]));
                });
            });
            L.put(pasts + count * width);
            const bool seen = block.hide(s, count, modulated);
            if (seen)
                detail::products<registers, false>(count, of.value_width, d_contexts[s], d_contexts.stride, 1, d_panel,
                                                   d_scores);
            for (std::size_t q = count; q-- > 0;) {
                // Σ_j w_j dw_j = dc · c
                const T mean = seen ? detail::inner(of.value_width, d_contexts[s + q], contexts[s + q]) : T(0);
                const vec<T> top = splat(numbers[s + q]), by = splat(numbers[of.queries_count + s + q]);
                unrolled<registers>([&](auto c) {
                    const std::size_t at = q * width + c * simd::lanes<T>;
                    const vec<T> e = load(weights + at), before = load(pasts + at), after = load(pasts + at + width);
                    vec<T> weight{}, d_u{};
                    if (seen) {
                        const vec<T> u = load(modulated + at);
                        weight = select(hidden(u), vec<T>{}, simd::exp(u - top) * by);  // which may be NaN
                        d_u = select(weight == vec<T>{}, vec<T>{}, weight * (load(d_scores + at) - splat(mean)));
                    }
                    vec<T> d_e = d_u + past.share_of_score(e, after, d_L.at[c]);
                    d_L.at[c] = past.share_of_past(before, after, d_L.at[c]) + past.slope_of_past(before, d_u);
                    if constexpr (block_of_keys::changed) {
                        if (products_alone == nullptr) d_e = detail::through<T>(d_e, load(slopes + at));
                    } else {
                        d_e *= splat(of.scale);
                    }
                    store(weights + at, weight);
                    store(d_scores + at, d_e);
                });
            }
            if constexpr (learns) {
                if (products_alone != nullptr) {
                    for (std::size_t q = 0; q < count; ++q)
                        std::fill(d_scores + q * width + n, d_scores + (q + 1) * width, T(0));
                    block.add_to_table(s, count, products_alone, d_scores, to.table);
                    for (std::size_t i = 0; i < count * width; i += simd::lanes<T>)
                        store(d_scores + i, detail::through<T>(load(d_scores + i), load(slopes + i)));
                }
            }
            if (to.values.data != nullptr && seen)
                add_products(of.value_width, count, d_contexts.from(s), weights, d_values);
            if (to.keys.data != nullptr) add_products(of.width, count, of.queries.from(s), d_scores, d_keys);
            if (to.queries.data != nullptr)
                detail::products_of_lanes<registers>(finite, count, n, d_scores, of.keys.from(first),
                                                     to.queries.from(s), of.width);
        }
        d_L.put(of_history);
        for (std::size_t j = 0; d_before != nullptr && j < n; ++j) d_before[first + j] += of_history[j];
        detail::add_transposed<registers>(of.width, first, n, d_keys, to.keys);
        detail::add_transposed<registers>(of.value_width, first, n, d_values, to.values);
    }
}

}  // namespace heed::kernels::tiles
