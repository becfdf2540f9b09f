// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include <heed/kernels/tiles/changes.hpp>
#include <heed/kernels/tiles/rules.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>

/// Weights of a tile: its scores as function and mask have them, and what a rule of kernels/tiles/rules.hpp makes of
/// them with its numbers of each row, which a rule that selects finds from all scores of the row.
namespace heed::kernels::tiles {

/// Is there room for all scores of a block of queries with so many keys? They have to stay in the second cache.
template <class T, std::size_t registers>
bool keeps_scores(std::size_t positions)
{
    return positions * lanes<T, registers> * sizeof(T) <= std::size_t{3} << 18;
}

namespace detail {

/// Scores of a tile as function and mask have them.
template <std::size_t registers, class T>
void scores_of(const auto& compare, const head<T>& of, std::size_t s, std::size_t first, const tile_reach& seen,
               const changes<T>& what, T* tile)
{
    compare.scores(first, seen, tile);
    if (what.changed || !seen.all) what.scores(of, s, first, seen, lanes<T, registers>, tile);
}

/// Scores become weights; f(j, c, weight) sees each register. Returns whether one of them is not 0.
template <std::size_t registers, class Rule, class T>
HEED_SIMD_INLINE bool weights_of(std::size_t count, const Rule& rule,
                                 const std::array<row<T, registers>, Rule::numbers>& z, T* tile, const auto& f)
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
            f(j, c, weights.at[c]);
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

/// Scores become weights, for a rule that runs; and `parts` what it takes of the rest, unless they are null.
template <std::size_t registers, class Rule, class T>
HEED_SIMD_INLINE void weights_in_turn(std::size_t count, const Rule& rule, T* tile, T* parts,
                                      running<registers, Rule, T>& rest)
{
    using namespace simd;
    for (std::size_t j = count; j-- > 0;) {
        unrolled<registers>([&](auto c) {
            const std::size_t at = j * lanes<T, registers> + c * simd::lanes<T>;
            vec<T> part;
            store(tile + at, rule.next_weight(load(tile + at), rest[c], part));
            if (parts != nullptr) store(parts + at, part);
        });
    }
}

/// The rule's numbers of each row, for a rule that selects: [numbers][lanes].
template <std::size_t registers, class T, class Rule>
void select_weights(const auto& compare, const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what,
                    const Rule& rule, T* tile, T* z)
{
    using namespace simd;
    selection<registers, T, Rule> kept(rule);
    each_tile<registers>(of, s, n, what, every_tile, [&](std::size_t first, const tile_reach& seen) {
        scores_of<registers>(compare, of, s, first, seen, what, tile);
        kept.add(tile, seen.count);
    });
    if (!kept.finish(z)) return;
    if constexpr (requires {
                      rule.better(vec<T>{}, vec<T>{}, vec<T>{});
                  }) {  // so many weights that they are all nearly equal
        const T enough = 16 * std::numeric_limits<T>::epsilon();
        for (std::size_t round = 0; round < 60; ++round) {
            const std::array<row<T, registers>, 2> now{row<T, registers>::of(z),
                                                       row<T, registers>::of(z + lanes<T, registers>)};
            auto weights = row<T, registers>::all(0), slopes = weights;
            each_tile<registers>(of, s, n, what, every_tile, [&](std::size_t first, const tile_reach& seen) {
                scores_of<registers>(compare, of, s, first, seen, what, tile);
                weights_of<registers>(seen.count, rule, now, tile, [&](std::size_t, auto c, vec<T> w) {
                    weights.at[c] += w;
                    slopes.at[c] += rule.slope(w);
                });
            });
            T* const tau = z + lanes<T, registers>;
            T better[lanes<T, registers>];
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

/// All scores of a block of queries, where there is room for them: [keys that it reaches][lanes].
template <std::size_t registers, class T>
std::size_t keep_scores(const auto& compare, const head<T>& of, std::size_t s, std::size_t n, const changes<T>& what,
                        T* all)
{
    std::size_t kept = 0;
    each_tile<registers>(of, s, n, what, every_tile, [&](std::size_t first, const tile_reach& seen) {
        scores_of<registers>(compare, of, s, first, seen, what, all + kept * lanes<T, registers>);
        kept += seen.count;
    });
    return kept;
}

/// The rule's numbers of each row from all its scores: [numbers][lanes].
template <std::size_t registers, class T, class Rule>
void settle_rows(std::size_t count, const Rule& rule, const T* all, T* z)
{
    using namespace simd;
    constexpr std::size_t width = lanes<T, registers>;
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

}  // namespace detail

}  // namespace heed::kernels::tiles
