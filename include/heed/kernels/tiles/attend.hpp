// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/tiles/changes.hpp>
#include <heed/kernels/tiles/pairs.hpp>
#include <heed/kernels/tiles/rules.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>
#include <heed/simd/tables.hpp>

/// Contexts of a block of queries, tile by tile, and the backward pass.
///
///     C = W(Q Kᵀ) V            W: a rule of kernels/tiles/rules.hpp, softmax for one
///
/// Q Kᵀ stands for any comparison of kernels/tiles/pairs.hpp.
///
/// softmax online as in Milakov, Gimelshein 2018. A rule that selects finds its numbers of each row from all scores
/// first. The backward pass computes scores again, and weights from the rule's numbers.
namespace heed::kernels::tiles {

/// Is there room for all scores of a block of queries with so many keys? They have to stay in the second cache.
template <class T, std::size_t registers>
bool keeps_scores(std::size_t positions)
{
    return positions * lanes<T, registers> * sizeof(T) <= std::size_t{3} << 18;
}

/// Rows [begin, end) of `width` numbers that are needed soon, asked of memory a few lines at a time while something
/// else is computed: the rows of a head are short and far apart, and no processor guesses the next one.
template <class T>
class rows_ahead {
public:
    rows_ahead() = default;
    rows_ahead(const rows<T>& of, const range& wanted, std::size_t width)
    {
        if (of.data == nullptr || wanted.empty()) return;
        at_ = reinterpret_cast<const char*>(of[wanted.begin]);
        stride_ = of.stride * sizeof(T);
        bytes_ = width * sizeof(T);
        left_ = wanted.size();
    }

    /// Asks for so many lines more.
    HEED_SIMD_INLINE void ask(std::size_t lines)
    {
        for (; left_ > 0 && lines > 0; --lines) {
            __builtin_prefetch(at_ + seen_);
            seen_ += line;
            if (seen_ < bytes_) continue;
            seen_ = 0;
            at_ += stride_;
            --left_;
        }
    }

private:
    static constexpr std::size_t line = 64;

    const char* at_ = nullptr;
    std::size_t stride_ = 0, bytes_ = 0, left_ = 0, seen_ = 0;
};

/// What will be needed behind a tile of a block of n queries from s on: keys that no block has read before, and the
/// queries of the next block, be it of this head or of the next one.
template <std::size_t registers, class T>
class coming {
public:
    coming(const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what)
        : of_(of), next_(s + n < of.queries_count ? &of : of.next)
    {
        const auto end_of_block = [&](std::size_t first) {
            const std::size_t last = std::min(first + width, of.queries_count) - 1;
            const std::int32_t end = what.reach(of.place_of(first), of.place_of(last)).end;
            return std::min(of.positions, static_cast<std::size_t>(std::max(0, end)));
        };
        end_ = end_of_block(s);
        fresh_ = {s < width ? 0 : end_of_block(s - width), next_ == &of ? std::max(end_, end_of_block(s + n)) : end_};
        if (next_ == nullptr) return;
        const std::size_t first = next_ == &of ? s + n : 0;
        queries_ = {first, std::min(first + width, next_->queries_count)};
    }

    rows_ahead<const T> queries() const
    {
        return next_ == nullptr ? rows_ahead<const T>{} : rows_ahead<const T>{next_->queries, queries_, next_->width};
    }
    rows_ahead<const T> keys(std::size_t first) const { return behind(first, &head<T>::keys, &head<T>::width); }
    rows_ahead<const T> values(std::size_t first) const
    {
        return behind(first, &head<T>::values, &head<T>::value_width);
    }

    /// Rows of x that belong to the queries of the next block, if it is one of this head.
    template <class U>
    rows_ahead<U> of_queries(const rows<U>& x, std::size_t row_width) const
    {
        return next_ == &of_ ? rows_ahead<U>{x, queries_, row_width} : rows_ahead<U>{};
    }
    /// Rows of x that belong to the keys of the tile which begins with the first-th one.
    template <class U>
    rows_ahead<U> of_keys(const rows<U>& x, std::size_t first, std::size_t row_width) const
    {
        return {x, {std::max(fresh_.begin, first), std::min(fresh_.end, first + tiles::keys)}, row_width};
    }

private:
    static constexpr std::size_t width = lanes<T, registers>;

    /// Rows from the first-th on; behind the last one, the first of the next head.
    rows_ahead<const T> behind(std::size_t first, rows<const T> head<T>::*x, std::size_t head<T>::*row_width) const
    {
        if (first < end_ || next_ == nullptr || next_ == &of_) return of_keys(of_.*x, first, of_.*row_width);
        return {next_->*x, {0, std::min(tiles::keys, next_->positions)}, next_->*row_width};
    }

    const head<T>& of_;
    const head<T>* next_;
    range queries_, fresh_;
    std::size_t end_;
};

namespace detail {

/// Scores of a tile as function and mask have them.
template <class T>
void scores_of(const auto& compare, const head<T>& of, const tile_reach& seen, const changes<T>& what, T* tile)
{
    compare.scores(seen, tile);
    if (what.changed || !seen.all) what.scores(of, seen, tile, nullptr);
}

/// Scores become weights; f(j, c, weight), if there is one, sees each register. Returns whether one weight is not 0.
template <std::size_t registers, class Rule, class T>
HEED_SIMD_INLINE bool weights_of(std::size_t count, const Rule& rule,
                                 const std::array<row<T, registers>, Rule::numbers>& z, T* tile, const auto&... f)
{
    using namespace simd;
    mask<T> some{};
    for (std::size_t j = 0; j < count; ++j) {
        T* const at = tile + j * lanes<T, registers>;
        row<T, registers> weights = row<T, registers>::of(at);
        if constexpr (requires { rule.weights(z, weights); }) {
            rule.weights(z, weights);
        } else {
            unrolled<registers>([&](auto c) {
                std::array<vec<T>, Rule::numbers> numbers;
                unrolled<Rule::numbers>([&](auto i) { numbers[i] = z[i].at[c]; });
                weights.at[c] = rule.weight(weights.at[c], numbers);
            });
        }
        unrolled<registers>([&](auto c) {
            (f(j, c, weights.at[c]), ...);
            some |= weights.at[c] != 0;
        });
        weights.put(at);
    }
    return !Rule::sparse || any(some);
}

/// What a rule that runs changes on its way, for a row of lanes; nothing for other rules.
template <std::size_t registers, class Rule, class T>
struct running {};
template <std::size_t registers, class Rule, class T>
    requires(Rule::runs)
struct running<registers, Rule, T> : std::array<typename Rule::template stick<simd::vec<T>>, registers> {};

/// The same by any rule: one that runs takes its weights from `rest`, and writes what part of it each is to `parts`,
/// unless that is null.
template <std::size_t registers, class Rule, class T>
HEED_SIMD_INLINE bool weigh(std::size_t count, const Rule& rule, const std::array<row<T, registers>, Rule::numbers>& z,
                            [[maybe_unused]] running<registers, Rule, T>& rest, T* tile,
                            [[maybe_unused]] std::type_identity_t<T>* parts = nullptr, const auto&... f)
{
    using namespace simd;
    if constexpr (Rule::runs) {
        for (std::size_t j = count; j-- > 0;) {
            unrolled<registers>([&](auto c) {
                const std::size_t at = j * lanes<T, registers> + c * simd::lanes<T>;
                vec<T> part;
                store(tile + at, rule.next_weight(load(tile + at), rest[c], part));
                if (parts != nullptr) store(parts + at, part);
            });
        }
        return true;
    } else {
        return weights_of<registers>(count, rule, z, tile, f...);
    }
}

/// The rule's numbers of n queries from s on, and zeros behind them.
template <std::size_t registers, class Rule, class T>
auto numbers_at(const T* numbers, std::size_t queries, std::size_t s, std::size_t n)
{
    std::array<row<T, registers>, Rule::numbers> z;
    for (std::size_t i = 0; i < Rule::numbers; ++i) {
        T some[lanes<T, registers>] = {};
        std::copy_n(numbers + i * queries + s, n, some);
        z[i] = row<T, registers>::of(some);
    }
    return z;
}

/// The rule's numbers of each row, for a rule that selects: [numbers][lanes].
template <std::size_t registers, class T, class Rule>
void select_weights(const auto& compare, const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what,
                    const Rule& rule, T* tile, T* z)
{
    using namespace simd;
    constexpr std::size_t width = lanes<T, registers>;
    selection<registers, T, Rule> kept(rule);
    each_tile<registers>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
        scores_of(compare, of, seen, what, tile);
        kept.add(tile, seen.count);
    });
    if (!kept.finish(z)) return;
    if constexpr (requires {
                      rule.better(vec<T>{}, vec<T>{}, vec<T>{});
                  }) {  // so many weights that they are all nearly equal
        const T enough = 16 * std::numeric_limits<T>::epsilon();
        for (std::size_t round = 0; round < 60; ++round) {
            const auto now = numbers_at<registers, Rule>(z, width, 0, width);
            auto weights = row<T, registers>::all(0), slopes = weights;
            each_tile<registers>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
                scores_of(compare, of, seen, what, tile);
                weights_of<registers>(seen.count, rule, now, tile, [&](std::size_t, auto c, vec<T> w) {
                    weights.at[c] += w;
                    slopes.at[c] += rule.slope(w);
                });
            });
            T* const tau = z + width;
            T better[width];
            unrolled<registers>([&](auto c) {
                store(better + c * simd::lanes<T>, rule.better(now[1].at[c], weights.at[c], slopes.at[c]));
            });
            bool moved = false;
            for (std::size_t q = 0; q < n; ++q) {
                if (!kept.full(q)) continue;
                moved = moved || better[q] - tau[q] > enough * rule.scale(tau[q]);
                tau[q] = better[q];
            }
            if (!moved) break;
        }
    }
}

/// The same where there is room for all scores, [keys that a query reaches][lanes].
template <std::size_t registers, class T, class Rule>
void settle_rows(const auto& compare, const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what,
                 const Rule& rule, T* all, T* z)
{
    using namespace simd;
    constexpr std::size_t width = lanes<T, registers>;
    std::size_t count = 0;
    each_tile<registers>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
        scores_of(compare, of, seen, what, all + count * width);
        count += seen.count;
    });
    const vec<T> none = splat(-std::numeric_limits<T>::infinity());
    unrolled<registers>([&](auto c) {
        const T* const scores = all + c * simd::lanes<T>;
        vec<T> top = none;
        for (std::size_t j = 0; j < count; ++j) top = simd::max(load(scores + j * width), top);  // not NaN
        const auto empty = top == none;
        top = select(empty, vec<T>{}, top);
        const vec<T> second = rule.settle(count, scores, width, top, splat(static_cast<T>(Rule::first)));
        store(z + c * simd::lanes<T>, top);
        store(z + width + c * simd::lanes<T>, select(empty, vec<T>{}, second));
    });
}

/// Contexts from the rule's numbers z [numbers][lanes] where a value is infinite or NaN: skips values without a weight.
template <std::size_t registers, class Rule, class T>
[[gnu::noinline]] void selected_contexts(const auto& compare, const head<T>& of, std::size_t s, std::size_t n,
                                         const changes<T>& what, const Rule& rule, const T* z, T* tile,
                                         rows<T> contexts)
{
    constexpr std::size_t width = lanes<T, registers>;
    for (std::size_t q = 0; q < n; ++q) std::fill_n(contexts[s + q], of.value_width, T(0));
    const auto now = numbers_at<registers, Rule>(z, width, 0, width);
    running<registers, Rule, T> rest;
    each_tile<registers, Rule::runs>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
        scores_of(compare, of, seen, what, tile);
        weigh<registers>(seen.count, rule, now, rest, tile);
        for (std::size_t j = 0; j < seen.count; ++j) {
            for (std::size_t q = 0; q < n; ++q) {
                const T w = tile[j * width + q];
                for (std::size_t i = 0; w != T(0) && i < of.value_width; ++i)
                    contexts[s + q][i] += w * of.values[seen.first + j][i];
            }
        }
    });
}

}  // namespace detail

/// Contexts of `n` ≤ lanes queries from s on, 0 where one sees nothing; `numbers` [Rule::numbers, queries] of the head.
template <std::size_t registers, class Compare = inner_product, class T, class Rule>
void forward(const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what, const Rule& rule,
             rows<T> contexts, T* numbers)
{
    using namespace simd;
    using row = tiles::row<T, registers>;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    constexpr std::size_t width = lanes<T, registers>;
    scratch here;
    const typename Compare::template block<registers, T> compare(of, s, n);
    T* const tile = here.take<T>(tiles::keys * width);
    T* const sums = detail::filled(here, of.value_width * width, T(0));
    T* const z = detail::filled(here, std::max(Rule::numbers, std::size_t{2}) * width, T(0));
    row sum = row::all(0);
    // Sums over the keys before this block, relative to `tops_before`, and their rounding errors: of the values, then
    // of the divisor. Few keys are one block.
    const bool blocks = of.positions > keys_of_sum;
    const std::size_t size = of.value_width * width;
    T* const before = blocks ? detail::filled(here, 2 * (size + width), T(0)) : nullptr;
    T* const lost = before + (blocks ? size + width : 0);
    row tops_before = row::all(lowest);
    std::size_t block_now = 0;
    // `all` and `top` by value, so that they stay in registers elsewhere.
    const auto end_block = [ =, &tops_before ]([[maybe_unused]] row top, row all) __attribute__((noinline))
    {
        (void)tops_before;
        row factor = row::all(1);
        if constexpr (Rule::online) {
            unrolled<registers>([&](auto c) {
                const vec<T> base = select(top.at[c] == splat(lowest), vec<T>{}, top.at[c]);
                factor.at[c] = simd::exp(tops_before.at[c] - base);
            });
            tops_before = top;
        }
        const auto join = [&](std::size_t at, auto c, vec<T> more) {
            const vec<T> faded = load(before + at) * factor.at[c], together = faded + more;
            store(lost + at, load(lost + at) * factor.at[c] + kernels::detail::lost_in_sum(faded, more, together));
            store(before + at, together);
        };
        for (std::size_t i = 0; i < of.value_width; ++i) {
            unrolled<registers>([&](auto c) {
                const std::size_t at = i * width + c * simd::lanes<T>;
                join(at, c, load(sums + at));
                store(sums + at, vec<T>{});
            });
        }
        unrolled<registers>([&](auto c) { join(size + c * simd::lanes<T>, c, all.at[c]); });
    };
    // Tiles may be left out: what belongs together follows from where they stand.
    const auto go_to = [&](std::size_t first, const row& top) {
        if (!blocks || first / keys_of_sum == block_now) return;
        block_now = first / keys_of_sum;
        end_block(top, sum);
        sum = row::all(0);
    };
    const auto add = [&](const tile_reach& seen, const T* weights) {
        detail::each_part<registers, T>(seen, [&](auto some, std::size_t lane, const range& rows) {
            detail::products<some, true>(of.value_width, rows.size(), of.values[seen.first + rows.begin], 1,
                                         of.values.stride, weights + rows.begin * width + lane, sums + lane, width);
        });
    };
    if constexpr (Rule::online) {
        row top = row::all(of.sink);
        if (of.sink > lowest) sum = row::all(1);
        bool begun = false;
        const coming<registers, T> next(of, s, n, what);
        auto next_queries = next.queries();
        rows_ahead<T> results(contexts, {s, s + n}, of.value_width);
        detail::each_tile<registers>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
            go_to(seen.first, top);
            detail::scores_of(compare, of, seen, what, tile);
            row now = top;
            for (std::size_t j = 0; j < seen.count; ++j) {
                const row e = row::of(tile + j * width);
                unrolled<registers>([&](auto c) { now.at[c] = simd::max(now.at[c], e.at[c]); });
            }
            row factor;  // of what has been summed so far; a query that has seen nothing stays at 0
            unrolled<registers>([&](auto c) {
                const vec<T> base = select(now.at[c] == splat(lowest), vec<T>{}, now.at[c]);
                factor.at[c] = simd::exp(top.at[c] - base);
                sum.at[c] *= factor.at[c];
                top.at[c] = now.at[c];
                now.at[c] = base;
            });
            const std::size_t behind = seen.first + seen.count;
            auto next_keys = next.keys(behind), next_values = next.values(behind);
            for (std::size_t j = 0; j < seen.count; ++j) {
                next_queries.ask(2);
                results.ask(2);
                next_keys.ask(8);
                next_values.ask(8);
                T* const at = tile + j * width;
                unrolled<registers>([&](auto c) {
                    const vec<T> p = simd::exp(load(at + c * simd::lanes<T>) - now.at[c]);
                    sum.at[c] += p;
                    store(at + c * simd::lanes<T>, p);
                });
            }
            if (begun) {
                for (std::size_t i = 0; i < of.value_width; ++i) {
                    T* const at = sums + i * width;
                    unrolled<registers>(
                        [&](auto c) { store(at + c * simd::lanes<T>, load(at + c * simd::lanes<T>) * factor.at[c]); });
                }
            }
            begun = true;
            add(seen, tile);
        });
        if (blocks) end_block(top, sum);
        top.put(z);
    } else {
        T* const all =
            Rule::selects && keeps_scores<T, registers>(of.positions) ? here.take<T>(of.positions * width) : nullptr;
        if constexpr (Rule::selects) {
            if (all != nullptr) {
                detail::settle_rows<registers>(compare, of, s, n, what, rule, all, z);
            } else {
                detail::select_weights<registers>(compare, of, s, n, what, rule, tile, z);
            }
        }
        auto now = detail::numbers_at<registers, Rule>(z, width, 0, width);
        if constexpr (Rule::divides) now.back() = row::all(1);  // the divisor is the sum of these weights
        detail::running<registers, Rule, T> rest;
        T* at = all;
        detail::each_tile<registers, Rule::runs>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
            go_to(seen.first, sum);
            T* const scores = all != nullptr ? std::exchange(at, at + seen.count * width) : tile;
            if (all == nullptr) detail::scores_of(compare, of, seen, what, scores);
            const auto divisor = [&](std::size_t, auto c, vec<T> w) {
                if constexpr (Rule::divides) sum.at[c] += w;
            };
            if (detail::weigh<registers>(seen.count, rule, now, rest, scores, nullptr, divisor)) add(seen, scores);
        });
        if (blocks) end_block(sum, sum);
    }
    if (blocks) {  // `lost` is NaN beside what is not finite
        const auto both = [&](std::size_t at) {
            const vec<T> all = load(before + at), rest = load(lost + at);
            return select(rest == rest, all + rest, all);
        };
        for (std::size_t at = 0; at < size; at += simd::lanes<T>) store(sums + at, both(at));
        unrolled<registers>([&](auto c) { sum.at[c] = both(size + c * simd::lanes<T>); });
    }
    T factors[width];
    constexpr bool divides = Rule::online || Rule::divides;
    unrolled<registers>([&](auto c) {
        vec<T> factor = splat(T(1));
        if constexpr (divides) {
            const auto none = sum.at[c] == vec<T>{};
            T *const top = z + c * simd::lanes<T>, *const last = top + (Rule::numbers - 1) * width;
            factor = select(none, vec<T>{}, 1 / sum.at[c]);
            store(top, select(none, vec<T>{}, load(top)));
            store(last, factor);
        }
        store(factors + c * simd::lanes<T>, factor);
    });
    for (std::size_t i = 0; i < Rule::numbers; ++i) std::copy_n(z + i * width, n, numbers + i * of.queries_count + s);
    // The values of hidden keys, which have a weight of 0, may be NaN.
    if (!detail::finite_lanes<registers>(of.value_width, n, sums))
        return detail::selected_contexts<registers>(compare, of, s, n, what, rule, z, tile, contexts);
    detail::transposed_back<registers, false>(of.value_width, n, sums, factors, contexts.from(s));
}

/// Goes back through the contexts of `n` queries from s on, over the tiles `tile` with wants(tile). Where a weight is
/// 0, as at a hidden key, nothing comes back, whatever the key, its value, the query and ∂c are. Products of what is
/// not finite select, which is slow: `selects`.
template <std::size_t registers, class Compare = inner_product, class T, class Rule, class Wants>
void backward(const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what, const Rule& rule,
              rows<const T> contexts, const T* numbers, rows<const T> d_contexts, const head_gradients<T>& to,
              const Wants& wants, bool selects = false)
{
    using namespace simd;
    using row = tiles::row<T, registers>;
    constexpr std::size_t width = lanes<T, registers>;
    const bool changed = what.changed, learning = what.learns && to.table != nullptr;
    scratch here;
    typename Compare::template block<registers, T> compare(of, s, n);
    compare.begin_back();
    T* const d_panel = here.take<T>(of.value_width * width);
    const auto tile = [&](bool wanted = true) { return wanted ? here.take<T>(tiles::keys * width) : nullptr; };
    T *const weights = tile(), *const d_scores = tile(), *const slopes = tile(changed), *const parts = tile(Rule::runs),
             *const products_alone = tile(learning);
    T* const means = detail::filled(here, width, T(0));
    detail::transposed<registers>(of.value_width, n, d_contexts.from(s), T(1), d_panel);
    selects = selects || !compare.finite() || !detail::finite_lanes<registers>(of.value_width, n, d_panel);
    const auto z = detail::numbers_at<registers, Rule>(numbers, of.queries_count, s, n);
    [[maybe_unused]] row later = row::all(0);
    detail::running<registers, Rule, T> rest;
    // Weights, and in d_scores their gradients; whether there is a weight at all.
    const auto weigh = [&](const tile_reach& seen) {
        compare.scores(seen, weights);
        if (products_alone != nullptr) std::copy_n(weights, seen.count * width, products_alone);
        if (changed || !seen.all) what.scores(of, seen, weights, slopes);
        if (!detail::weigh<registers>(seen.count, rule, z, rest, weights, parts)) return false;
        detail::each_part<registers, T>(seen, [&](auto some, std::size_t lane, const range& rows) {
            detail::products<some, false>(rows.size(), of.value_width, of.values[seen.first + rows.begin],
                                          of.values.stride, 1, d_panel + lane, d_scores + rows.begin * width + lane,
                                          width);
        });
        detail::fill_unseen(seen, T(0), d_scores);
        return true;
    };
    if constexpr (Rule::mean == centre::weights) {  // Σ_j w_j dw_j = dc · c
        for (std::size_t q = 0; q < n; ++q)
            means[q] = detail::inner(of.value_width, d_contexts[s + q], contexts[s + q]);
    } else if constexpr (Rule::mean == centre::slopes) {
        row pulled = row::all(0), all = row::all(0);
        detail::each_tile<registers>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
            if (!weigh(seen)) return;
            for (std::size_t j = 0; j < seen.count; ++j) {
                unrolled<registers>([&](auto c) {
                    const std::size_t at = j * width + c * simd::lanes<T>;
                    const vec<T> w = load(weights + at), slope = rule.slope(w), sum = pulled.at[c];
                    all.at[c] += slope;
                    pulled.at[c] = select(w == vec<T>{}, sum, fma(slope, load(d_scores + at), sum));
                });
            }
        });
        unrolled<registers>([&](auto c) {
            store(means + c * simd::lanes<T>, select(all.at[c] == vec<T>{}, vec<T>{}, pulled.at[c] / all.at[c]));
        });
    }
    const row mean = row::of(means);
    [[maybe_unused]] T* befores = nullptr;  // Σ_{i<j} w_i dw_i, where Σ w_i dw_i − what follows would not do
    if constexpr (Rule::runs) {
        if (!std::all_of(means, means + n, [](const T& x) { return x - x == T(0); })) {
            befores = here.take<T>(of.positions * width);
            detail::each_tile<registers, true>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
                weigh(seen);
                for (std::size_t i = 0; i < seen.count * width; i += simd::lanes<T>)
                    store(befores + seen.first * width + i, rule.pulled(load(weights + i), load(d_scores + i)));
            });
            rest = {};
            row sum = row::all(0);
            detail::each_tile<registers>(of, s, n, what, every_tile, [&](const tile_reach& seen) {
                for (std::size_t j = seen.first; j < seen.first + seen.count; ++j) {
                    const row pulled = row::of(befores + j * width);
                    sum.put(befores + j * width);
                    unrolled<registers>([&](auto c) { sum.at[c] += pulled.at[c]; });
                }
            });
        }
    }
    constexpr bool shaped = requires(vec<T> w) { rule.bend(w); };
    [[maybe_unused]] row bent = row::all(0);  // what comes back to the rule's number
    const coming<registers, T> next(of, s, n, what);
    auto next_queries = next.queries();
    auto next_contexts = next.of_queries(contexts, of.value_width),
         next_d = next.of_queries(d_contexts, of.value_width);
    rows_ahead<T> results(to.queries, {s, s + n}, of.width);
    detail::each_tile<registers, Rule::runs>(of, s, n, what, wants, [&](const tile_reach& seen) {
        if (!weigh(seen)) return;
        const std::size_t first = seen.first, count = seen.count;
        const auto clear_lanes = [&] {  // without queries: nothing keeps their weights from being infinite
            for (std::size_t j = 0; n < width && j < count; ++j)
                std::fill(d_scores + j * width + n, d_scores + (j + 1) * width, T(0));
        };
        const std::size_t behind = first + count;
        auto next_keys = next.keys(behind), next_values = next.values(behind);
        auto next_d_keys = next.of_keys(to.keys, behind, of.width),
             next_d_values = next.of_keys(to.values, behind, of.value_width);
        for (std::size_t j = count; j-- > 0;) {
            next_queries.ask(1);
            next_contexts.ask(1);
            next_d.ask(1);
            results.ask(1);
            next_keys.ask(8);
            next_values.ask(8);
            next_d_keys.ask(8);
            next_d_values.ask(8);
            unrolled<registers>([&](auto c) {
                const std::size_t at = j * width + c * simd::lanes<T>;
                const vec<T> w = load(weights + at);
                vec<T> d;
                if constexpr (Rule::runs) {
                    const vec<T> part = load(parts + at), pulled = rule.pulled(w, load(d_scores + at));
                    later.at[c] = rule.later_than(part, later.at[c] + pulled, mean.at[c]);
                    const std::size_t key = (first + j) * width + c * simd::lanes<T>;
                    d = rule.gradient(part, pulled,
                                      befores == nullptr ? mean.at[c] - later.at[c] : load(befores + key));
                } else {
                    const vec<T> by = load(d_scores + at) - mean.at[c];  // NaN, if a hidden value is
                    const auto nothing = w == vec<T>{};
                    d = select(nothing, vec<T>{}, rule.slope(w) * by);
                    if constexpr (shaped) {
                        if (to.of_head != nullptr) bent.at[c] += select(nothing, vec<T>{}, rule.bend(w) * by);
                    }
                }
                store(d_scores + at, changed ? d : d * splat(of.scale));
            });
        }
        clear_lanes();
        if (learning) what.back_to_table(of, seen, products_alone, d_scores, to.table);
        if (changed) {
            for (std::size_t i = 0; i < count * width; i += simd::lanes<T>)
                store(d_scores + i, detail::through<T>(load(d_scores + i), load(slopes + i)));
            clear_lanes();
        }
        if (to.values.data != nullptr)
            detail::products_of_lanes<registers>(!selects, count, n, weights, d_contexts.from(s), to.values.from(first),
                                                 of.value_width, &seen);
        compare.back(seen, d_scores, to, selects);
    });
    if (!selects && to.queries.data != nullptr && !compare.sums_finite())
        return backward<registers, Compare>(
            of, s, n, what, rule, contexts, numbers, d_contexts,
            head_gradients<T>{to.queries, {nullptr, 0}, {nullptr, 0}, nullptr, to.factors, to.of_head}, wants, true);
    compare.add_to(to);
    if constexpr (shaped) {
        T some[width];
        bent.put(some);
        for (std::size_t q = 0; to.of_head != nullptr && q < n; ++q) *to.of_head += rule.of_number(some[q]);
    }
}

}  // namespace heed::kernels::tiles
