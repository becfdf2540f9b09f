// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/selection.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/comparisons.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::rounding, test::waves;

namespace {

template <class T, std::size_t n>
double weight_of(const auto& rule, double e, const std::array<double, n>& z)
{
    std::array<simd::vec<T>, n> numbers;
    for (std::size_t i = 0; i < n; ++i) numbers[i] = simd::splat(static_cast<T>(z[i]));
    return static_cast<double>(rule.weight(simd::splat(static_cast<T>(e)), numbers)[0]);
}

/// The results of a selection for a row [count] in tiles, where each lane adds its index to the scores.
template <class T, class Rule>
std::vector<T> selected(const Rule& rule, const std::vector<T>& scores, bool& kept)
{
    constexpr std::size_t width = simd::lanes<T>;
    tiles::selection<1, T, Rule> found(rule);
    for (std::size_t first = 0; first < scores.size(); first += tiles::keys) {
        const std::size_t count = std::min(tiles::keys, scores.size() - first);
        std::vector<T> tile(count * width);
        for (std::size_t j = 0; j < count; ++j)
            for (std::size_t q = 0; q < width; ++q) tile[j * width + q] = scores[first + j] + static_cast<T>(q);
        found.add(tile.data(), count);
    }
    std::vector<T> z(2 * width);
    kept = !found.finish(z.data());
    return z;
}

/// Checks that the numbers of a rule, from kept scores or tile by tile, give weights that sum to 1.
template <class T>
void check_selection(const auto& rule, std::size_t keys, double spread)
{
    head_of_numbers<T> x(20, keys, 3, 2);
    for (T& q : x.queries) q *= static_cast<T>(spread);
    const auto of = x.head();
    const tiles::unmodified plain;
    const not_behind mask;
    const tiles::score_mod_of<T, tiles::unmodified, not_behind> mod(plain, mask);
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        const std::size_t n = std::min(x.S, width);
        const tiles::inner_product::block<registers, T> compare(of, 0, n);
        std::vector<T> all(x.P * width), tile(tiles::keys * width), kept(2 * width), by_tile(2 * width);
        const tiles::query_block<T> block{of, 0, n, mod};
        tiles::detail::numbers_of_kept_scores<registers>(compare, block, rule, all.data(), kept.data());
        tiles::detail::numbers_tile_by_tile<registers>(compare, block, rule, tile.data(), by_tile.data());
        for (std::size_t q = 0; q < n; ++q) {
            CHECK(kept[q] == by_tile[q]);
            double of_kept = 0, of_tiles = 0;
            for (std::size_t j = 0; j + x.S <= keys + q; ++j) {
                CHECK(std::fabs(static_cast<double>(all[j * width + q]) - x.score(q, j)) <= spread * rounding<T>);
                const auto weight = [&](const std::vector<T>& z) {
                    return static_cast<double>(rule.weight(
                        simd::splat(all[j * width + q]), std::array{simd::splat(z[q]), simd::splat(z[width + q])})[0]);
                };
                of_kept += weight(kept);
                of_tiles += weight(by_tile);
            }
            CHECK(std::fabs(of_kept - 1) <= 40 * rounding<T>);
            CHECK(std::fabs(of_tiles - 1) <= 40 * rounding<T>);
        }
    });
}

}  // namespace

TEST_CASE_TEMPLATE("rules that select find τ, or the k-th largest score, of a row in tiles", T, float, double)
{
    constexpr std::size_t width = simd::lanes<T>;
    const auto scores = waves<T>(700, 1, 40);
    bool kept = false;
    const auto check_sums = [&](const auto& rule) {
        const auto z = selected(rule, scores, kept);
        CHECK(kept);
        for (std::size_t q = 0; q < width; ++q) {
            double sum = 0;
            for (const T e : scores)
                sum += weight_of<T, 2>(rule, static_cast<double>(e + static_cast<T>(q)),
                                       {static_cast<double>(z[q]), static_cast<double>(z[width + q])});
            CHECK(std::fabs(sum - 1) <= 40 * rounding<T>);
        }
    };
    check_sums(tiles::sparse_weights<1>{});
    check_sums(tiles::sparse_weights<2>{});
    auto sorted = scores;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (const std::size_t k : {1u, 7u, 100u}) {
        const auto z = selected(tiles::top_k{k}, scores, kept);
        CHECK(kept);
        for (std::size_t q = 0; q < width; ++q) {
            CHECK(z[q] == sorted[0] + static_cast<T>(q));
            CHECK(z[width + q] == sorted[k - 1] + static_cast<T>(q));
        }
    }
    CHECK(tiles::top_k{160}.fits());
    CHECK_FALSE(tiles::top_k{161}.fits());
    // More nearly equal scores than the buffer holds; rows without a visible key.
    selected(tiles::sparse_weights<1>{}, std::vector<T>(400, T(1)), kept);
    CHECK_FALSE(kept);
    const auto z = selected(tiles::sparse_weights<1>{}, std::vector<T>(9, -std::numeric_limits<T>::infinity()), kept);
    CHECK(std::all_of(z.begin(), z.end(), [](T e) { return e == 0; }));
}

TEST_CASE_TEMPLATE("a rule with two passes finds the same numbers from kept scores and tile by tile", T, float, double)
{
    check_selection<T>(tiles::sparse_weights<1>{}, 50, 5);
    check_selection<T>(tiles::sparse_weights<1>{}, 700, 5);
    check_selection<T>(tiles::sparse_weights<2>{}, 700, 5);
    check_selection<T>(tiles::sparse_weights<1>{}, 700, 1e-3);  // more weights than the buffer holds
    check_selection<T>(tiles::sparse_weights<2>{}, 700, 1e-3);
}

TEST_CASE("scores are kept while they fit in the L2 cache")
{
    constexpr std::size_t most = (std::size_t{3} << 18) / (tiles::lanes<float, 1> * sizeof(float));
    CHECK(tiles::keeps_scores<float, 1>(most));
    CHECK_FALSE(tiles::keeps_scores<float, 1>(most + 1));
}
