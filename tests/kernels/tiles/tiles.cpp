// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/tiles.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::waves;

namespace {

template <class T>
constexpr double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());

template <class T>
double far(T is, double must)
{
    return std::fabs(static_cast<double>(is) - must) / (1 + std::fabs(must));
}

}  // namespace

TEST_CASE_TEMPLATE("rows become lanes and come back; lanes without a query are zeros", T, float, double)
{
    tiles::with_registers<T>(1000, [](auto registers) {
        constexpr std::size_t all = tiles::lanes<T, registers>;
        for (const std::size_t n : {std::size_t{1}, all / 2 + 1, all}) {
            for (const std::size_t width : {std::size_t{1}, simd::lanes<T>, 2 * simd::lanes<T> + 3}) {
                const std::size_t stride = width + 2;
                const auto from = waves<T>(n * stride, 1), by = waves<T>(all, 2), start = waves<T>(n * stride, 3);
                std::vector<T> panel(width * all, T(9)), to = start, added = start;
                tiles::detail::transposed<registers>(width, n, tiles::rows<const T>{from.data(), stride}, T(0.5),
                                                     panel.data());
                const auto finite = [&] { return tiles::detail::finite_lanes<registers>(width, n, panel.data()); };
                CHECK(finite());
                for (std::size_t i = 0; i < width; ++i) {
                    for (std::size_t q = 0; q < all; ++q)
                        CHECK(panel[i * all + q] == (q < n ? T(0.5) * from[q * stride + i] : T(0)));
                }
                tiles::detail::transposed_back<registers, false>(width, n, panel.data(), by.data(),
                                                                 tiles::rows<T>{to.data(), stride});
                tiles::detail::add_transposed<registers>(width, 0, n, panel.data(),
                                                         tiles::rows<T>{added.data(), stride});
                for (std::size_t q = 0; q < n; ++q) {
                    for (std::size_t i = 0; i < stride; ++i) {
                        const double old = static_cast<double>(start[q * stride + i]),
                                     half = 0.5 * static_cast<double>(from[q * stride + i]);
                        CHECK(far(to[q * stride + i], i < width ? half * static_cast<double>(by[q]) : old) <=
                              rounding<T>);
                        CHECK(far(added[q * stride + i], i < width ? old + half : old) <= rounding<T>);
                    }
                }
                panel[(width - 1) * all + n - 1] = std::numeric_limits<T>::infinity();
                CHECK_FALSE(finite());
                panel[(width - 1) * all + n - 1] = 0;
                if (n < all) panel[n] = std::numeric_limits<T>::quiet_NaN();
                CHECK(finite());  // the lane has no query
            }
        }
    });
}

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
                // What is not finite counts for nothing where the tile has a 0.
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

TEST_CASE("what groups of queries see of a tile: its parts cover it once, and no row that nobody sees")
{
    using T = float;
    constexpr std::size_t registers = tiles::most_registers, groups = tiles::lanes<T, registers> / lane_count;
    tiles::tile_reach seen{0, 0, 20, groups, {}, {}, {}, false};
    for (std::size_t g = 0; g < groups; ++g) {
        seen.reach[g] = {2 * g, 11 + g};
        seen.whole[g] = {2 * g, 11};
    }
    seen.conclude();
    CHECK(seen.common == tiles::range{2 * (groups - 1), 11});
    CHECK_FALSE(seen.all);
    CHECK(seen.lanes_of({2 * (groups - 1), 11}, 1000) == tiles::range{0, 1000});
    CHECK(seen.lanes_of({0, 1}, 1000) == tiles::range{0, lane_count});
    CHECK(seen.lanes_of({15, 20}, 1000).empty());
    std::vector<int> covered(20 * groups);
    tiles::detail::each_part<registers, T>(seen, [&](auto some, std::size_t lane, const tiles::range& rows) {
        for (std::size_t row = rows.begin; row < rows.end; ++row)
            for (std::size_t g = lane / lane_count; g < lane / lane_count + some * groups / registers; ++g)
                ++covered[row * groups + g];
    });
    for (std::size_t row = 0; row < 20; ++row) {
        for (std::size_t g = 0; g < groups; ++g) {
            const bool reached = seen.reach[g].begin <= row && row < seen.reach[g].end;
            if (reached) CHECK(covered[row * groups + g] == 1);
            if (row >= 11 + groups) CHECK(covered[row * groups + g] == 0);
        }
    }
    for (std::size_t g = 0; g < groups; ++g) seen.reach[g] = seen.whole[g] = {0, 20};
    seen.conclude();
    CHECK(seen.all);
}

TEST_CASE("the last query stands at the last key")
{
    head_of_numbers<float> x(5, 9, 3, 2);
    const auto of = x.head();
    CHECK(of.place_of(0) == 4);
    CHECK(of.place_of(4) == 8);
}
