// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/tiles/key_block.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/kernels/tiles/transpose.hpp>
#include <heed/simd/simd.hpp>

/// Contexts of many queries in order, tile by tile, where each key has a history of its earlier scores:
///
///     u_tj = e_tj − β L_tj,  L_{t+1,j} = log(exp(L_tj − δ) + exp(e_tj)),  c_t = Σ_j softmax(u_t)_j v_j
///
/// after Sankaran et al. 2016, eq. 6-8 (β = 1, δ = 0). `reference::forward_in_order` and `backward_in_order` of
/// kernels/tiles/reference.hpp compute these in plain loops; tests compare the two.
///
/// A key's history does not depend on other keys. **So the lanes hold keys**, unlike kernels/tiles/forward.hpp: a tile
/// [queries][lanes] has a row for each query, L is one row of lanes, and a block of keys processes all queries in order
/// before the next block. The backward pass runs each block twice: forward for L at each tile, and backward.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// The gradients of a history: of L after the last query, or null, and the destination for the gradient of L before the
/// first query, or null.
template <class T>
struct history_gradients {
    const T* after;
    T* before;
};

namespace detail {

/// Contexts that accumulate very many blocks of keys, keys_of_part at a time: see kernels/block_sums.hpp.
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

    /// The destination of the current keys, relative to the maximum score so far.
    rows<T> now() const { return part_ == nullptr ? contexts_ : rows<T>{part_, width_}; }

    /// Called after the keys before `end` have been added.
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
    T* part_ = nullptr;  // [S,D] of the current keys, [S,D] rounding errors, [S] earlier maxima
};

/// The steps of `forward_in_order` for one width of key blocks.
template <std::size_t registers, class Sentence>
class forward_pass_in_order {
public:
    using T = typename Sentence::number;
    using row = tiles::row<T, registers>;

    forward_pass_in_order(const Sentence& sentence, rows<T> contexts, T* numbers)
        : sentence_(sentence),
          contexts_(contexts),
          tops_(numbers),
          divisors_(numbers + sentence.of.queries_count),
          tile_(here_.template take<T>(tiles::queries * width)),
          sums_(filled(here_, sentence.of.queries_count, in_double<T>(0))),
          blocks_(sentence.of, contexts, here_),
          keys_(sentence)
    {
        const head<T>& of = sentence_.of;
        std::fill_n(tops_, of.queries_count, lowest);
        for (std::size_t s = 0; s < of.queries_count; ++s) std::fill_n(contexts_[s], of.value_width, T(0));
        now_ = blocks_.now();
        finite_ = finite_rows(of.positions, of.value_width, of.values);
    }

    /// Adds the keys from `first` on to all contexts. `history`: their L, before the first query and after the last.
    void add_keys(std::size_t first, T* history)
    {
        const head<T>& of = sentence_.of;
        keys_.go_to(first);
        row L = past_of<registers>(history, keys_.keys());
        for (std::size_t s = 0; s < of.queries_count; s += tiles::queries) {
            const std::size_t count = std::min(tiles::queries, of.queries_count - s);
            keys_.scores(s, count, tile_);
            modulate(count, L);
            if (!keys_.hide(s, count, tile_)) continue;
            for (std::size_t q = 0; q < count; ++q) online_softmax(s + q, tile_ + q * width);
            // The value of a hidden key, which has a weight of 0, may be NaN.
            products_of_lanes<registers>(finite_, count, keys_.keys(), tile_, of.values.from(first), now_.from(s),
                                         of.value_width);
        }
        T after[width];
        L.put(after);
        std::copy_n(after, keys_.keys(), history);
        blocks_.next(first + width, tops_);
    }

    /// Divides the contexts by their sums, and writes the divisors.
    void finish()
    {
        const head<T>& of = sentence_.of;
        for (std::size_t s = 0; s < of.queries_count; ++s) {
            const T sum = static_cast<T>(sums_[s]), by = sum == 0 ? T(0) : T(1) / sum;
            for (std::size_t i = 0; i < of.value_width; ++i) contexts_[s][i] *= by;
            tops_[s] = sum == 0 ? T(0) : tops_[s];
            divisors_[s] = by;
        }
    }

private:
    static constexpr std::size_t width = lanes<T, registers>;
    static constexpr T lowest = -std::numeric_limits<T>::infinity();

    /// Replaces the scores of a tile with u = e − β L, and updates L.
    HEED_SIMD_INLINE void modulate(std::size_t count, row& L)
    {
        T* const tile = tile_;
        const auto& past = sentence_.past;
        keys_.remember(count, tile, L, [&](std::size_t q, const row& e, const row& before) {
            simd::unrolled<registers>([&](auto c) {
                simd::store(tile + q * width + c * simd::lanes<T>, past.modulated(e.at[c], before.at[c]));
            });
        });
    }

    /// Online softmax of a query: its row of the tile becomes e^{u_j − top}, which is added to its sum. A larger top
    /// rescales the sum and the context.
    HEED_SIMD_INLINE void online_softmax(std::size_t query, T* at)
    {
        using namespace simd;
        row u = row::of(at);
        vec<T> greatest = u.at[0];
        unrolled<registers>([&](auto c) { greatest = simd::max(u.at[c], greatest); });
        const T before = tops_[query], top = std::max(before, simd::max(greatest));
        const T base = top == lowest ? T(0) : top;
        vec<T> sum{};
        unrolled<registers>([&](auto c) {
            u.at[c] = simd::exp(u.at[c] - splat(base));
            sum += u.at[c];
        });
        u.put(at);
        tops_[query] = top;
        if (top != before) {
            using std::exp;
            const T factor = exp(before - base);
            sums_[query] *= static_cast<in_double<T>>(factor);
            each_register<T>(sentence_.of.value_width, [&](std::size_t i, std::size_t some) {
                T* const c = now_[query] + i;
                store_first(c, load_first(c, some) * splat(factor), some);
            });
        }
        sums_[query] += static_cast<in_double<T>>(simd::sum(sum));
    }

    const Sentence& sentence_;
    rows<T> contexts_, now_{};  // now_: the destination of the current keys
    T *tops_, *divisors_;       // of each query: the maximum u, and 1 / Σ_j e^{u_j − top}
    scratch here_;
    T* tile_;
    in_double<T>* sums_;
    contexts_in_blocks<T> blocks_;
    key_block<registers, Sentence> keys_;
    bool finite_;
};

/// The steps of `backward_in_order` for one width of key blocks.
template <std::size_t registers, class Sentence>
class backward_pass_in_order {
public:
    using T = typename Sentence::number;
    using row = tiles::row<T, registers>;

    backward_pass_in_order(const Sentence& sentence, const forward_results<T>& from, const head_gradients<T>& to)
        : sentence_(sentence),
          from_(from),
          to_(to),
          keys_(sentence),
          tiles_((sentence.of.queries_count + tiles::queries - 1) / tiles::queries)
    {
        const head<T>& of = sentence.of;
        begins_ = here_.template take<T>(tiles_ * width);
        tile_.states = here_.template take<T>(tile_size + width);
        tile_.weights = here_.template take<T>(tile_size);
        tile_.modulated = here_.template take<T>(tile_size);
        tile_.d_scores = here_.template take<T>(tile_size);
        if (modified) tile_.slopes = here_.template take<T>(tile_size);
        if (learns && to.table != nullptr) tile_.products = here_.template take<T>(tile_size);
        values_ = here_.template take<T>(of.value_width * width);
        d_keys_ = here_.template take<T>(of.width * width);
        d_values_ = here_.template take<T>(of.value_width * width);
        finite_ = finite_rows(of.positions, of.width, of.keys) && finite_rows(of.queries_count, of.width, of.queries) &&
                  finite_rows(of.queries_count, of.value_width, from.d_contexts);
    }

    /// Adds the gradients of the keys from `first` on. `history`: their L before the first query.
    void add_keys(std::size_t first, const T* history, const history_gradients<T>& d_history)
    {
        const head<T>& of = sentence_.of;
        keys_.go_to(first);
        const std::size_t n = keys_.keys();
        transposed<registers>(of.value_width, n, of.values.from(first), T(1), values_);
        std::fill_n(d_keys_, of.width * width, T(0));
        std::fill_n(d_values_, of.value_width * width, T(0));
        remember_tiles(past_of<registers>(history, n));
        T of_history[width] = {};
        if (d_history.after != nullptr) std::copy_n(d_history.after + first, n, of_history);
        row d_L = row::of(of_history);
        for (std::size_t b = tiles_; b-- > 0;) {
            const std::size_t s = b * tiles::queries, count = std::min(tiles::queries, of.queries_count - s);
            const bool visible = recompute_scores(s, count, row::of(begins_ + b * width));
            gradients_of_scores(s, count, visible, d_L);
            if constexpr (learns) {
                if (tile_.products != nullptr) through_score_mod(s, count);
            }
            accumulate(first, s, count, visible);
        }
        d_L.put(of_history);
        for (std::size_t j = 0; d_history.before != nullptr && j < n; ++j) d_history.before[first + j] += of_history[j];
        add_transposed<registers>(of.width, first, n, d_keys_, to_.keys);
        add_transposed<registers>(of.value_width, first, n, d_values_, to_.values);
    }

private:
    static constexpr std::size_t width = lanes<T, registers>, tile_size = tiles::queries * width;
    static constexpr bool modified = key_block<registers, Sentence>::modified;
    static constexpr bool learns = requires(const typename Sentence::function_type& f) { f.table; };

    /// The arrays of a tile, [queries][lanes]; null if not needed.
    struct numbers_of_tile {
        T* states = nullptr;     // L before each query, and after the last
        T* weights = nullptr;    // initially the scores
        T* modulated = nullptr;  // u = e − β L
        T* d_scores = nullptr;   // initially the gradients of the weights
        T* slopes = nullptr;     // of the score_mod
        T* products = nullptr;   // scores before the score_mod, if its table is trained
    };

    /// Forward: L before each tile of queries.
    void remember_tiles(row L)
    {
        for (std::size_t b = 0; b < tiles_; ++b) {
            L.put(begins_ + b * width);
            if (b + 1 == tiles_) break;
            keys_.scores(b * tiles::queries, tiles::queries, tile_.weights);
            keys_.remember(tiles::queries, tile_.weights, L, [](std::size_t, const row&, const row&) {});
        }
    }

    /// Recomputes the scores of a tile, L before each query, u, and the gradients of the weights. Returns whether a
    /// query sees a key.
    HEED_SIMD_INLINE bool recompute_scores(std::size_t s, std::size_t count, row L)
    {
        const numbers_of_tile tile = tile_;
        const auto& past = sentence_.past;
        if (tile.products != nullptr) keys_.products(s, count, tile.products);
        keys_.scores(s, count, tile.weights, tile.slopes);
        keys_.remember(count, tile.weights, L, [&](std::size_t q, const row& e, const row& before) {
            before.put(tile.states + q * width);
            simd::unrolled<registers>([&](auto c) {
                simd::store(tile.modulated + q * width + c * simd::lanes<T>, past.modulated(e.at[c], before.at[c]));
            });
        });
        L.put(tile.states + count * width);
        const bool visible = keys_.hide(s, count, tile.modulated);
        if (visible)
            products<registers, false>(count, sentence_.of.value_width, from_.d_contexts[s], from_.d_contexts.stride, 1,
                                       values_, tile.d_scores);
        return visible;
    }

    /// Computes weights, and replaces gradients of weights with those of scores, from the last query to the first. d_L:
    /// the gradient of L after the tile, then before it.
    HEED_SIMD_INLINE void gradients_of_scores(std::size_t s, std::size_t count, bool visible, row& d_L)
    {
        using namespace simd;
        const numbers_of_tile tile = tile_;
        const head<T>& of = sentence_.of;
        const auto& past = sentence_.past;
        for (std::size_t q = count; q-- > 0;) {
            // Σ_j w_j dw_j = dc · c
            const T mean = visible ? dot(of.value_width, from_.d_contexts[s + q], from_.contexts[s + q]) : T(0);
            const vec<T> top = splat(from_.numbers[s + q]), by = splat(from_.numbers[of.queries_count + s + q]);
            unrolled<registers>([&](auto c) {
                const std::size_t at = q * width + c * simd::lanes<T>;
                const vec<T> e = load(tile.weights + at), before = load(tile.states + at),
                             after = load(tile.states + at + width);
                vec<T> weight{}, d_u{};
                if (visible) {
                    const vec<T> u = load(tile.modulated + at);
                    weight = select(hidden(u), vec<T>{}, simd::exp(u - top) * by);  // may be NaN
                    d_u = select(weight == vec<T>{}, vec<T>{}, weight * (load(tile.d_scores + at) - splat(mean)));
                }
                vec<T> d_e = d_u + past.share_of_score(e, after, d_L.at[c]);
                d_L.at[c] = past.share_of_past(before, after, d_L.at[c]) + past.slope_of_past(before, d_u);
                if constexpr (modified) {
                    if (tile.products == nullptr) d_e = through<T>(d_e, load(tile.slopes + at));
                } else {
                    d_e *= splat(of.scale);
                }
                store(tile.weights + at, weight);
                store(tile.d_scores + at, d_e);
            });
        }
    }

    /// Adds to the gradient of the table, and converts gradients of modified scores to those of the products.
    void through_score_mod(std::size_t s, std::size_t count)
    {
        const std::size_t n = keys_.keys();
        for (std::size_t q = 0; q < count; ++q)
            std::fill(tile_.d_scores + q * width + n, tile_.d_scores + (q + 1) * width, T(0));
        keys_.add_to_table(s, count, tile_.products, tile_.d_scores, to_.table);
        for (std::size_t i = 0; i < count * width; i += simd::lanes<T>)
            simd::store(tile_.d_scores + i, through<T>(simd::load(tile_.d_scores + i), simd::load(tile_.slopes + i)));
    }

    /// Adds a tile to the gradients of values, keys and queries.
    void accumulate(std::size_t first, std::size_t s, std::size_t count, bool visible)
    {
        const head<T>& of = sentence_.of;
        if (to_.values.data != nullptr && visible)
            add_products(of.value_width, count, from_.d_contexts.from(s), tile_.weights, d_values_);
        if (to_.keys.data != nullptr) add_products(of.width, count, of.queries.from(s), tile_.d_scores, d_keys_);
        if (to_.queries.data != nullptr)
            products_of_lanes<registers>(finite_, count, keys_.keys(), tile_.d_scores, of.keys.from(first),
                                         to_.queries.from(s), of.width);
    }
    /// If a weight is 0, as at a hidden key, the gradient is 0 for any key, value, query and ∂c, including NaN.
    void add_products(std::size_t wide, std::size_t count, rows<const T> x, const T* tile, T* y) const
    {
        if (finite_) return products<registers, true>(wide, count, x.data, 1, x.stride, tile, y);
        selected_products<registers>(wide, count, x, tile, y);
    }

    const Sentence& sentence_;
    const forward_results<T>& from_;
    const head_gradients<T>& to_;
    scratch here_;
    key_block<registers, Sentence> keys_;
    std::size_t tiles_;  // of queries
    T* begins_;          // L before each tile
    numbers_of_tile tile_;
    T *values_, *d_keys_, *d_values_;  // of the block of keys, in lanes
    bool finite_;
};

}  // namespace detail

/// Contexts of all queries of a sentence. `history` [positions] is L before the first query, and becomes L after the
/// last query. `numbers` [2, queries]: each query's maximum score and 1 / divisor. A query that sees no key gets 0.
template <std::size_t registers, class Sentence>
void forward_in_order(const Sentence& sentence, rows<typename Sentence::number> contexts,
                      typename Sentence::number* history, typename Sentence::number* numbers)
{
    detail::forward_pass_in_order<registers, Sentence> pass(sentence, contexts, numbers);
    constexpr std::size_t width = lanes<typename Sentence::number, registers>;
    for (std::size_t first = 0; first < sentence.of.positions; first += width) pass.add_keys(first, history + first);
    pass.finish();
}

/// Adds the gradients. `history` is L before the first query.
template <std::size_t registers, class Sentence, class T = typename Sentence::number>
void backward_in_order(const Sentence& sentence, const forward_results<T>& from, const T* history,
                       const history_gradients<T>& d_history, const head_gradients<T>& to)
{
    detail::backward_pass_in_order<registers, Sentence> pass(sentence, from, to);
    for (std::size_t first = 0; first < sentence.of.positions; first += lanes<T, registers>)
        pass.add_keys(first, history + first, d_history);
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles
