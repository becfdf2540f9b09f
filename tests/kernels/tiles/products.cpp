// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/products.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::far, test::rounding, test::waves;

TEST_CASE_TEMPLATE("products with a tile: plain loops agree for any number of rows and columns", T, float, double)
{
    tiles::with_registers<T>(1000, [](auto registers) {
        constexpr std::size_t all = tiles::lanes<T, registers>;
        for (const std::size_t count : {1u, 2u, 5u, 17u, 96u}) {
            const std::size_t depth = 7;
            const auto x = waves<T>(count * depth, 1), panel = waves<T>(depth * all, 2);
            std::vector<T> y(count * all, T(9)), added(count * all, T(1));
            tiles::detail::products<registers, false>(count, depth, x.data(), depth, 1, panel.data(), y.data());
            tiles::detail::products<registers, true>(count, depth, x.data(), depth, 1, panel.data(), added.data());
            double worst = 0;
            for (std::size_t r = 0; r < count; ++r) {
                for (std::size_t q = 0; q < all; ++q) {
                    double sum = 0;
                    for (std::size_t k = 0; k < depth; ++k)
                        sum += static_cast<double>(x[r * depth + k]) * static_cast<double>(panel[k * all + q]);
                    worst = std::max({worst, far(y[r * all + q], sum), far(added[r * all + q], 1 + sum)});
                }
            }
            CHECK(worst <= rounding<T>);
            for (const std::size_t width : {std::size_t{1}, simd::lanes<T>, 3 * simd::lanes<T> + 1}) {
                const std::size_t n = all - 1;
                auto tile = waves<T>(count * all, 4), of = waves<T>(n * width, 5);
                std::vector<T> sums(count * width, T(1)), selected = sums;
                tiles::detail::products_of_lanes<registers>(true, count, n, tile.data(),
                                                            tiles::rows<const T>{of.data(), width},
                                                            tiles::rows<T>{sums.data(), width}, width);
                std::vector<double> must(count * width, 1);
                for (std::size_t j = 0; j < count; ++j) {
                    for (std::size_t q = 0; q < n; ++q) {
                        for (std::size_t i = 0; i < width; ++i)
                            must[j * width + i] +=
                                static_cast<double>(tile[j * all + q]) * static_cast<double>(of[q * width + i]);
                    }
                }
                double most = 0;
                for (std::size_t i = 0; i < must.size(); ++i) most = std::max(most, far(sums[i], must[i]));
                CHECK(most <= rounding<T>);
                // Infinite and NaN values do not contribute where the tile has a 0.
                for (std::size_t i = 0; i < width; ++i) of[i] = std::numeric_limits<T>::quiet_NaN();
                for (std::size_t j = 0; j < count; ++j) tile[j * all] = 0;
                tiles::detail::products_of_lanes<registers>(false, count, n, tile.data(),
                                                            tiles::rows<const T>{of.data(), width},
                                                            tiles::rows<T>{selected.data(), width}, width);
                CHECK(std::all_of(selected.begin(), selected.end(), [](T e) { return std::isfinite(e); }));
                CHECK_FALSE(tiles::detail::finite_rows(n, width, tiles::rows<const T>{of.data(), width}));
                CHECK(tiles::detail::finite_rows(n - 1, width, tiles::rows<const T>{of.data() + width, width}));
            }
        }
    });
}
