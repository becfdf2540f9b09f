// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/weights.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include <heed/kernels/tiles/comparisons.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::rounding, test::waves;

TEST_CASE_TEMPLATE("scores become weights in place; lanes without a query have zeros", T, float, double)
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
    std::size_t visible = 0;
    CHECK(tiles::detail::weights_of<2>(5, tiles::softmax{}, z, tile.data(),
                                       [&](std::size_t, auto, simd::vec<T>) { ++visible; }));
    CHECK(visible == 10);
    double worst = 0;
    for (std::size_t j = 0; j < 5; ++j) {
        for (std::size_t q = 0; q < n; ++q) {
            const double must = std::exp(static_cast<double>(e[j * width + q]) - static_cast<double>(numbers[s + q])) *
                                static_cast<double>(numbers[S + s + q]);
            worst = std::max(worst, std::fabs(static_cast<double>(tile[j * width + q]) - must));
        }
    }
    CHECK(worst <= rounding<T>);
    // A sparse rule reports whether any weight remains.
    std::vector<T> low(5 * width, T(-9));
    const auto none = [](std::size_t, auto, simd::vec<T>) {};
    const std::array<tiles::row<T, 2>, 2> top{tiles::row<T, 2>::all(T(0)), tiles::row<T, 2>::all(T(-0.5))};
    CHECK_FALSE(tiles::detail::weights_of<2>(5, tiles::sparse_weights<1>{}, top, low.data(), none));
    low.assign(5 * width, T(-9));
    low[3 * width + 1] = T(-0.25);
    CHECK(tiles::detail::weights_of<2>(5, tiles::sparse_weights<1>{}, top, low.data(), none));
    CHECK(low[3 * width + 1] == T(0.25));
}

TEST_CASE_TEMPLATE("scores of a tile: products after the score_mod, -inf where the mask_mod hides a key", T, float,
                   double)
{
    head_of_numbers<T> x(4, 9, 3, 2);
    const auto of = x.head();
    const auto twice = [](auto e, const score_index&) { return 2 * e; };
    const not_behind mask;
    const tiles::score_mod_of<T, std::remove_const_t<decltype(twice)>, not_behind> mod(twice, mask);
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        const tiles::query_block<T> block{of, 0, x.S, mod};
        const tiles::inner_product::block<registers, T> compare(of, 0, x.S);
        tiles::detail::each_tile<registers>(block, tiles::every_tile, [&](const tiles::visible_tile& visible) {
            std::vector<T> tile(visible.count * width);
            tiles::detail::score_tile(compare, block, visible, tile.data());
            for (std::size_t j = 0; j < visible.count; ++j) {
                for (std::size_t q = 0; q < x.S; ++q) {
                    const T e = tile[j * width + q];
                    if (j <= q + 5) {  // the last of 4 queries is at the last of 9 keys
                        CHECK(std::fabs(static_cast<double>(e) - 2 * x.score(q, j)) <= rounding<T>);
                    } else {
                        CHECK(e == -std::numeric_limits<T>::infinity());
                    }
                }
            }
        });
    });
}
