// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/kernels/tiles/prefetch.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/score_mod.hpp>
#include <heed/kernels/tiles/selection.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/kernels/tiles/transpose.hpp>
#include <heed/kernels/tiles/weights.hpp>
#include <heed/simd/simd.hpp>

/// Contexts of a block of queries, tile by tile, as in FlashAttention.
///
///     C = W(Q Kᵀ) V            W: a rule of kernels/tiles/normalizer_rules.hpp, such as softmax
///
/// Q Kᵀ may be any comparison of kernels/tiles/comparisons.hpp. `reference::forward` of kernels/tiles/reference.hpp
/// computes the contexts in a plain loop over queries and keys; tests compare the two.
///
/// softmax takes one pass, the online softmax of Milakov, Gimelshein 2018. For other rules the numbers are known, or
/// found in a first pass.
namespace heed::inline HEED_TARGET::kernels::tiles {

namespace detail {

/// Σ_j w_j v_j and Σ_j w_j of a block of queries. The rows of lanes `sum`, Σ_j w_j, and `top`, the maximum score, are
/// locals of the caller, so that they stay in registers.
///
/// Many keys are summed in blocks of keys_of_sum (kernels/block_sums.hpp); few keys are one block.
template <std::size_t registers, class T, class Rule, class Arithmetic>
class context_sums {
public:
    using row = tiles::row<T, registers>;

    context_sums(const query_block<T>& block, scratch& here)
        : size_(block.of.value_width * width), of_(block.of), values_(filled(here, size_ + width, T(0)))
    {
        if (of_.positions <= keys_of_sum) return;
        before_ = filled(here, 2 * (size_ + width), T(0));
        lost_ = before_ + size_ + width;
    }

    /// Σ_j w_j v_j, [value_width][lanes].
    T* values() const { return values_; }

    /// Begins the tile with this first key. Tiles may be skipped: a tile's block follows from its first key.
    HEED_SIMD_INLINE void begin_tile(std::size_t first, const row& top, row& sum)
    {
        if (before_ == nullptr || first / keys_of_sum == block_) return;
        block_ = first / keys_of_sum;
        finish_block(top, sum);
        sum = row::all(0);
    }

    /// Rescales the current sums for a larger `top`.
    HEED_SIMD_INLINE void rescale(const row& factor)
    {
        T* const values = values_;
        for (std::size_t i = 0, end = of_.value_width; i < end; ++i) {
            T* const at = values + i * width;
            simd::unrolled<registers>([&](auto c) {
                simd::store(at + c * simd::lanes<T>, simd::load(at + c * simd::lanes<T>) * factor.at[c]);
            });
        }
    }

    /// Adds the keys of a tile of weights to Σ_j w_j v_j.
    void add(const visible_tile& visible, const T* weights)
    {
        each_part<registers, T>(visible, [&](auto some, std::size_t lane, const range& rows) {
            Arithmetic::template add_values<some>(of_, {visible.first + rows.begin, visible.first + rows.end},
                                                  weights + rows.begin * width + lane, values_ + lane, width);
        });
    }

    /// After the last tile: values() and `sum` are those of all keys.
    HEED_SIMD_INLINE void finish(const row& top, row& sum)
    {
        using namespace simd;
        if (!begun_) return;
        join_block(top, sum, [&](std::size_t at, vec<T> all, vec<T> rest) {  // NaN next to a sum that is not finite
            store(values_ + at, select(rest == rest, all + rest, all));
        });
        sum = row::of(values_ + size_);
    }

private:
    static constexpr std::size_t width = lanes<T, registers>;
    static constexpr T lowest = -std::numeric_limits<T>::infinity();

    /// Adds a block's sums to those of the earlier blocks. `top` and `sum` by value: the caller has them in registers.
    [[gnu::noinline]] void finish_block(row top, row sum)
    {
        using namespace simd;
        if (begun_) {
            join_block(top, sum, [&](std::size_t at, vec<T> all, vec<T> rest) {
                store(before_ + at, all);
                store(lost_ + at, rest);
                store(values_ + at, vec<T>{});
            });
        } else {
            sum.put(values_ + size_);
            std::swap(before_, values_);
            begun_ = true;
        }
        top_before_ = top;
    }

    /// f(where, Σ, its rounding error) for each register of the sums of a block and of the earlier blocks.
    HEED_SIMD_INLINE void join_block([[maybe_unused]] const row& top, const row& sum, const auto& f)
    {
        using namespace simd;
        row factor = row::all(1);
        if constexpr (Rule::online) {
            unrolled<registers>([&](auto c) {
                const vec<T> base = select(top.at[c] == splat(lowest), vec<T>{}, top.at[c]);
                factor.at[c] = simd::exp(top_before_.at[c] - base);
            });
        }
        sum.put(values_ + size_);
        for (std::size_t i = 0; i <= of_.value_width; ++i) {
            unrolled<registers>([&](auto c) {
                const std::size_t at = i * width + c * simd::lanes<T>;
                const vec<T> faded = load(before_ + at) * factor.at[c], more = load(values_ + at), all = faded + more;
                f(at, all, load(lost_ + at) * factor.at[c] + kernels::detail::lost_in_sum(faded, more, all));
            });
        }
    }

    std::size_t size_;
    const head<T>& of_;
    T* values_;  // at the end of a block also the divisor
    // The values of the earlier blocks of keys, relative to `top_before_`, and rounding errors. Null: there is one
    // block.
    T *before_ = nullptr, *lost_ = nullptr;
    row top_before_ = row::all(lowest);
    std::size_t block_ = 0;
    bool begun_ = false;  // is there an earlier block?
};

/// Prefetching for the forward pass: the queries and contexts of the next blocks, and the next tile of keys.
template <class T>
struct forward_prefetch {
    prefetch<const T> queries, keys, values;
    prefetch<T> contexts;
    std::size_t lines_of_key;  // requested for each key of a tile

    HEED_SIMD_INLINE void begin_key()
    {
        queries.lines(2);
        contexts.lines(2);
        keys.lines(lines_of_key);
        values.lines(lines_of_key);
    }
};

/// The steps of `forward` for a block of queries; `tile` [keys][lanes] holds its scores.
template <std::size_t registers, class Compare, class T, class Rule>
class forward_pass {
public:
    using row = tiles::row<T, registers>;

    forward_pass(const query_block<T>& block, const Rule& rule, T* tile)
        : block_(block),
          rule_(rule),
          visibility_(block),
          compare_(block.of, block.s, block.n),
          sums_(block, here_),
          tile_(tile),
          top_(row::all(block.of.sink)),
          sum_(row::all(block.of.sink > lowest ? T(1) : T(0)))
    {
        z_ = filled(here_, std::max(Rule::numbers, std::size_t{2}) * width, T(0));
    }

    const block_visibility<registers, T>& visibility() const { return visibility_; }

    /// Online softmax of a tile: adds e^{e_j − top} and e^{e_j − top} v_j to sums, where top is the maximum score so
    /// far.
    void add_tile(const visible_tile& visible, forward_prefetch<T>& ahead)
    {
        row top = top_, sum = sum_;
        sums_.begin_tile(visible.first, top, sum);
        score_tile(compare_, block_, visible, tile_);
        row base = greatest(visible.count, top);
        const row factor = raise_top(top, sum, base);
        exponentials(visible.count, base, sum, ahead);
        if (begun_) sums_.rescale(factor);
        begun_ = true;
        sums_.add(visible, tile_);
        top_ = top;
        sum_ = sum;
    }
    /// After the last tile. Returns the sum.
    row sum_of_all()
    {
        row sum = sum_;
        sums_.finish(top_, sum);
        top_.put(z_);
        return sum;
    }

    /// The first of two passes: the rule's numbers from all scores. Does nothing for rules with known numbers.
    void first_pass()
    {
        if constexpr (Rule::two_passes) {
            if (keeps_scores<T, registers>(block_.of.positions)) {
                kept_ = here_.take<T>(block_.of.positions * width);
                numbers_of_kept_scores<registers>(compare_, block_, rule_, kept_, z_);
            } else {
                numbers_tile_by_tile<registers>(compare_, block_, rule_, tile_, z_);
            }
        }
    }

    /// The second pass: sums w_j v_j, with weights by the rule's numbers. Returns Σ_j w_j if the rule divides by it.
    HEED_SIMD_INLINE row second_pass()
    {
        auto z = numbers_at<registers, Rule>(z_, width, 0, width);
        if constexpr (Rule::divides) z.back() = row::all(1);  // the divisor is the sum of these weights
        carried<registers, Rule, T> rest;
        row sum = row::all(0);
        T* next = kept_;
        each_tile<registers, Rule::sequential>(block_, every_tile, [&](const visible_tile& visible) {
            sums_.begin_tile(visible.first, sum, sum);
            T* const scores = kept_ != nullptr ? std::exchange(next, next + visible.count * width) : tile_;
            if (kept_ == nullptr) score_tile(compare_, block_, visible, scores);
            const auto divisor = [&](std::size_t, auto c, simd::vec<T> w) {
                if constexpr (Rule::divides) sum.at[c] += w;
            };
            if (weigh<registers>(visible.count, rule_, z, rest, scores, nullptr, divisor)) sums_.add(visible, scores);
        });
        sums_.finish(sum, sum);
        return sum;
    }

    /// Writes the contexts, divided by `sum` if the rule divides, and the rule's numbers.
    HEED_SIMD_INLINE void write(const row& sum, rows<T> contexts, T* numbers)
    {
        using namespace simd;
        const head<T>& of = block_.of;
        T factors[width];
        unrolled<registers>([&](auto c) {
            vec<T> factor = splat(T(1));
            if constexpr (Rule::online || Rule::divides) {
                const auto none = sum.at[c] == vec<T>{};
                T *const top = z_ + c * simd::lanes<T>, *const last = top + (Rule::numbers - 1) * width;
                factor = select(none, vec<T>{}, 1 / sum.at[c]);
                store(top, select(none, vec<T>{}, load(top)));
                store(last, factor);
            }
            store(factors + c * simd::lanes<T>, factor);
        });
        for (std::size_t i = 0; i < Rule::numbers; ++i)
            std::copy_n(z_ + i * width, block_.n, numbers + i * of.queries_count + block_.s);
        // The values of hidden keys, which have a weight of 0, may be NaN.
        if (!finite_lanes<registers>(of.value_width, block_.n, sums_.values())) return write_selected(contexts);
        transposed_back<registers, false>(of.value_width, block_.n, sums_.values(), factors, contexts.from(block_.s));
    }

private:
    static constexpr std::size_t width = lanes<T, registers>;
    static constexpr T lowest = -std::numeric_limits<T>::infinity();

    /// The maximum of `top` and of the scores of a tile.
    HEED_SIMD_INLINE row greatest(std::size_t count, row top) const
    {
        const T* const tile = tile_;
        row tops[] = {top, top, top, top};  // four chains hide the latency of a maximum
        simd::in_groups<4>(0, count, [&](auto some, std::size_t j) {
            simd::unrolled<some>([&](auto r) {
                const row e = row::of(tile + (j + r) * width);
                simd::unrolled<registers>([&](auto c) { tops[r].at[c] = simd::max(tops[r].at[c], e.at[c]); });
            });
        });
        simd::unrolled<registers>([&](auto c) {
            top.at[c] = simd::max(simd::max(tops[0].at[c], tops[1].at[c]), simd::max(tops[2].at[c], tops[3].at[c]));
        });
        return top;
    }

    /// Online softmax, the update: `now` becomes the new top, to be subtracted from the scores; it is 0 for a query
    /// that has seen no key. Returns the factor of the sums so far.
    HEED_SIMD_INLINE static row raise_top(row& top, row& sum, row& now)
    {
        using namespace simd;
        row factor;
        unrolled<registers>([&](auto c) {
            const vec<T> base = select(now.at[c] == splat(lowest), vec<T>{}, now.at[c]);
            factor.at[c] = simd::exp(top.at[c] - base);
            sum.at[c] *= factor.at[c];
            top.at[c] = now.at[c];
            now.at[c] = base;
        });
        return factor;
    }

    /// Replaces the scores of a tile with e^{e_j − base}, and adds these to the sum.
    HEED_SIMD_INLINE void exponentials(std::size_t count, const row& base, row& sum, forward_prefetch<T>& ahead)
    {
        using namespace simd;
        T* const tile = tile_;
        row more = sum;
        for (std::size_t j = 0; j < count; ++j) {
            ahead.begin_key();
            T* const at = tile + j * width;
            unrolled<registers>([&](auto c) {
                const vec<T> p = simd::exp_of_nonpositive(load(at + c * simd::lanes<T>) - base.at[c]);
                more.at[c] += p;
                store(at + c * simd::lanes<T>, p);
            });
        }
        sum = more;
    }

    /// Contexts if a value is infinite or NaN: skips values without a weight.
    [[gnu::noinline]] void write_selected(rows<T> contexts)
    {
        const head<T>& of = block_.of;
        const std::size_t s = block_.s, n = block_.n;
        for (std::size_t q = 0; q < n; ++q) std::fill_n(contexts[s + q], of.value_width, T(0));
        const auto z = numbers_at<registers, Rule>(z_, width, 0, width);
        carried<registers, Rule, T> rest;
        each_tile<registers, Rule::sequential>(block_, every_tile, [&](const visible_tile& visible) {
            score_tile(compare_, block_, visible, tile_);
            weigh<registers>(visible.count, rule_, z, rest, tile_);
            for (std::size_t j = 0; j < visible.count; ++j) {
                for (std::size_t q = 0; q < n; ++q) {
                    const T w = tile_[j * width + q];
                    for (std::size_t i = 0; w != T(0) && i < of.value_width; ++i)
                        contexts[s + q][i] += w * of.values[visible.first + j][i];
                }
            }
        });
    }

    const query_block<T> block_;
    const Rule& rule_;
    scratch here_;
    block_visibility<registers, T> visibility_;
    typename Compare::template block<registers, T> compare_;
    context_sums<registers, T, Rule, arithmetic_of<Compare>> sums_;
    T *tile_, *z_;       // scores, then weights, [keys][lanes]; the rule's numbers [numbers][lanes]
    T* kept_ = nullptr;  // the scores of all keys that a query may see, if they are kept
    // Online softmax: the maximum score so far, and the sum of the weights.
    row top_, sum_;
    bool begun_ = false;
};

/// Keys and values of a tile, copied to rows that are close together. The rows of one of several heads are often a
/// power of two apart, and evict each other from the caches.
template <class T>
class packed_tile {
public:
    static bool pays(const head<T>& of, std::size_t blocks) { return blocks >= 4 && of.keys.stride > of.width; }

    packed_tile(const head<T>& of, scratch& here)
        : of_(of),
          keys_{here.take<T>(tiles::keys * stride(of.width)), stride(of.width)},
          values_{here.take<T>(tiles::keys * stride(of.value_width)), stride(of.value_width)}
    {}

    /// Makes `to`, a copy of the head, read the keys and values of this tile from here.
    void pack(std::size_t tile, head<T>& to)
    {
        if (tile == tile_) return;
        tile_ = tile;
        to.keys = copied(of_.keys, of_.width, keys_);
        to.values = copied(of_.values, of_.value_width, values_);
    }

private:
    /// An odd number of cache lines, so that rows do not compete for the same lines of a cache.
    static std::size_t stride(std::size_t width)
    {
        constexpr std::size_t line = std::max<std::size_t>(1, 64 / sizeof(T));
        return ((width + line - 1) / line | 1) * line;
    }
    rows<const T> copied(const rows<const T>& from, std::size_t width, const rows<T>& to) const
    {
        const std::size_t first = tile_ * tiles::keys, count = std::min(tiles::keys, of_.positions - first);
        for (std::size_t j = 0; j < count; ++j) std::copy_n(from[first + j], width, to[j]);
        return {to.data, to.stride, first};
    }

    const head<T>& of_;
    rows<T> keys_, values_;
    std::size_t tile_ = static_cast<std::size_t>(-1);
};

template <class Arithmetic, class T>
struct packed_tile_named_by {
    using type = packed_tile<T>;
};
template <class Arithmetic, class T>
    requires requires { typename Arithmetic::packed_tile; }
struct packed_tile_named_by<Arithmetic, T> {
    using type = typename Arithmetic::packed_tile;
};
/// The copy of keys and values that several blocks read: an arithmetic may name its own.
template <class Arithmetic, class T>
using packed_tile_of = typename packed_tile_named_by<Arithmetic, T>::type;

/// The maximum number of query blocks in a call of `forward`.
template <class Compare, class Rule>
inline constexpr std::size_t most_blocks = 1;
template <class Compare, class Rule>
    requires(Rule::online&& Compare::most_blocks > 1)
inline constexpr std::size_t most_blocks<Compare, Rule> = Compare::most_blocks;

/// Online softmax of several blocks of queries, tile by tile: the blocks read a tile of keys in turn.
template <std::size_t registers, class Compare, class T, class Rule>
void online_softmax(const query_block<T>& all, const Rule& rule, rows<T> contexts, T* numbers)
{
    using pass = forward_pass<registers, Compare, T, Rule>;
    constexpr std::size_t width = lanes<T, registers>, most = most_blocks<Compare, Rule>;
    const std::size_t count = (all.n + width - 1) / width;
    const next_rows<registers, T> next(all);
    forward_prefetch<T> ahead{
        next.queries(), {}, {}, {contexts, {all.s, all.s + all.n}, all.of.value_width}, (8 + count - 1) / count};
    scratch here;
    T* const tile = here.take<T>(tiles::keys * width);
    head<T> of = all.of;
    using packed_tile = packed_tile_of<arithmetic_of<Compare>, T>;
    std::optional<packed_tile> packed;
    if (packed_tile::pays(of, count)) packed.emplace(all.of, here);
    std::optional<pass> blocks[most];
    range visible_tiles;
    for (std::size_t b = 0; b < count; ++b) {
        const std::size_t s = all.s + b * width;
        blocks[b].emplace(query_block<T>{of, s, std::min(width, all.s + all.n - s), all.mod}, rule, tile);
        visible_tiles = visible_tiles.around(blocks[b]->visibility().visible_tiles());
    }
    for (std::size_t nth = visible_tiles.begin; nth < visible_tiles.end; ++nth) {
        const std::size_t end = (nth + 1) * tiles::keys;
        ahead.keys = next.keys(end);
        ahead.values = next.values(end);
        for (std::size_t b = 0; b < count; ++b) {
            blocks[b]->visibility().visit(nth, [&](const visible_tile& visible) {
                if (packed) packed->pack(nth, of);
                blocks[b]->add_tile(visible, ahead);
            });
        }
    }
    packed.reset();
    of = all.of;  // contexts that are not finite are recomputed
    for (std::size_t b = 0; b < count; ++b) blocks[b]->write(blocks[b]->sum_of_all(), contexts, numbers);
}

}  // namespace detail

/// The best number of query blocks for a call of `forward`: their queries and sums stay in the second-level cache.
template <std::size_t registers, class Compare, class Rule, class T>
std::size_t blocks_at_once(const head<T>& of)
{
    const std::size_t sums = of.positions <= keys_of_sum ? 1 : 3,  // context_sums also stores those of earlier keys
        numbers = std::max<std::size_t>(1, of.width + sums * of.value_width);
    return std::clamp((std::size_t{1} << 19) / (numbers * lanes<T, registers> * sizeof(T)), std::size_t{1},
                      detail::most_blocks<Compare, Rule>);
}

/// Contexts of one or several blocks of queries, at most blocks_at_once(); 0 for a query that sees no key; `numbers`
/// [Rule::numbers, queries] of the head.
template <std::size_t registers, class Compare = inner_product, class T, class Rule>
void forward(const query_block<T>& block, const Rule& rule, rows<T> contexts, T* numbers)
{
    [[maybe_unused]] const typename detail::arithmetic_of<Compare>::scope products;
    if constexpr (Rule::online) {
        detail::online_softmax<registers, Compare>(block, rule, contexts, numbers);
    } else {
        scratch here;
        detail::forward_pass<registers, Compare, T, Rule> pass(block, rule,
                                                               here.take<T>(tiles::keys * lanes<T, registers>));
        pass.first_pass();
        pass.write(pass.second_pass(), contexts, numbers);
    }
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles
