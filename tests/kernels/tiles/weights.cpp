// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/weights.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/pairs.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::waves;

namespace {

template <class T>
constexpr double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());

/// Numbers that a rule selects from the scores of all keys, kept or tile by tile, give weights that sum to 1.
template <class T>
void check_selection(const auto& rule, std::size_t keys, double spread)
{
    head_of_numbers<T> x(20, keys, 3, 2);
    for (T& q : x.queries) q *= static_cast<T>(spread);
    const auto of = x.head();
    const tiles::unmodified plain;
    const not_behind mask;
    const tiles::changes_by<T, tiles::unmodified, not_behind> what(plain, mask);
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        const std::size_t n = std::min(x.S, width);
        const tiles::inner_product::block<registers, T> compare(of, 0, n);
        std::vector<T> all(x.P * width), tile(tiles::keys * width), kept(2 * width), by_tile(2 * width);
        const std::size_t count = tiles::detail::keep_scores<registers>(compare, of, 0, n, what, all.data());
        tiles::detail::settle_rows<registers>(count, rule, all.data(), kept.data());
        tiles::detail::select_weights<registers>(compare, of, 0, n, what, rule, tile.data(), by_tile.data());
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

TEST_CASE_TEMPLATE("a rule that selects finds the same numbers from kept scores and tile by tile", T, float, double)
{
    check_selection<T>(tiles::sparse_weights<1>{}, 50, 5);
    check_selection<T>(tiles::sparse_weights<1>{}, 700, 5);
    check_selection<T>(tiles::sparse_weights<2>{}, 700, 5);
    check_selection<T>(tiles::sparse_weights<1>{}, 700, 1e-3);  // more weights than are kept
    check_selection<T>(tiles::sparse_weights<2>{}, 700, 1e-3);
}

TEST_CASE("scores are kept while they fit the second cache")
{
    constexpr std::size_t most = (std::size_t{3} << 18) / (tiles::lanes<float, 1> * sizeof(float));
    CHECK(tiles::keeps_scores<float, 1>(most));
    CHECK_FALSE(tiles::keeps_scores<float, 1>(most + 1));
}

TEST_CASE_TEMPLATE("scores become weights in place; the numbers of lanes without a query are zeros", T, float, double)
{
    constexpr std::size_t width = tiles::lanes<T, 2>, S = width + 3, s = 2, n = width - 1;
    const auto numbers = waves<T>(2 * S, 1);
    const auto z = tiles::detail::numbers_at<2, tiles::softmax>(numbers.data(), S, s, n);
    T some[width];
    for (std::size_t i = 0; i < 2; ++i) {
        z[i].put(some);
        for (std::size_t q = 0; q < width; ++q) CHECK(some[q] == (q < n ? numbers[i * S + s + q] : T(0)));
    }
    const auto e = waves<T>(5 * width, 2);
    auto tile = e;
    std::size_t seen = 0;
    CHECK(tiles::detail::weights_of<2>(5, tiles::softmax{}, z, tile.data(),
                                       [&](std::size_t, auto, simd::vec<T>) { ++seen; }));
    CHECK(seen == 10);
    double worst = 0;
    for (std::size_t j = 0; j < 5; ++j) {
        for (std::size_t q = 0; q < n; ++q) {
            const double must = std::exp(static_cast<double>(e[j * width + q]) - static_cast<double>(numbers[s + q])) *
                                static_cast<double>(numbers[S + s + q]);
            worst = std::max(worst, std::fabs(static_cast<double>(tile[j * width + q]) - must));
        }
    }
    CHECK(worst <= rounding<T>);
    // A sparse rule tells whether any weight is left.
    std::vector<T> low(5 * width, T(-9));
    const auto none = [](std::size_t, auto, simd::vec<T>) {};
    const std::array<tiles::row<T, 2>, 2> top{tiles::row<T, 2>::all(T(0)), tiles::row<T, 2>::all(T(-0.5))};
    CHECK_FALSE(tiles::detail::weights_of<2>(5, tiles::sparse_weights<1>{}, top, low.data(), none));
    low.assign(5 * width, T(-9));
    low[3 * width + 1] = T(-0.25);
    CHECK(tiles::detail::weights_of<2>(5, tiles::sparse_weights<1>{}, top, low.data(), none));
    CHECK(low[3 * width + 1] == T(0.25));
}
