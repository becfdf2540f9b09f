// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/bfloat16_products.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/bfloat16.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using support::rounded_to_bfloat16;
using test::waves;

namespace {

using tiles::detail::arithmetic_of_pairs, tiles::detail::arithmetic_of_rounded_floats;
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// A sum of products of rounded numbers, and the sum of their magnitudes.
struct sum_of_products {
    double sum = 0, size = 0;

    void add(float a, float b)
    {
        const double product = static_cast<double>(rounded_to_bfloat16(a)) * rounded_to_bfloat16(b);
        sum += product;
        size += std::fabs(product);
    }
};

/// Is this the sum, except for rounding it in float after each addition?
bool is_near(float is, const sum_of_products& must, std::size_t additions)
{
    return std::fabs(is - must.sum) <= std::ldexp(must.size * static_cast<double>(additions + 2), -24);
}

}  // namespace

TEST_CASE_TEMPLATE("products round their operands to bfloat16, and nothing else", Arithmetic,
                   arithmetic_of_pairs<false>, arithmetic_of_pairs<true>, arithmetic_of_rounded_floats)
{
    [[maybe_unused]] const typename Arithmetic::scope products;
    for (const std::size_t queries : {1u, 1000u}) {
        tiles::with_registers<float>(queries, [](auto registers) {
            constexpr std::size_t all = tiles::lanes<float, registers>;
            for (const std::size_t count : {1u, 2u, 7u, 17u, 96u}) {
                for (const std::size_t depth : {1u, 2u, 7u, 64u, 97u}) {
                    const std::size_t stride = all + 3;
                    auto panel = waves<float>(depth * stride, 2);
                    for (const bool in_rows : {false, true}) {
                        // Rows of x are `depth` numbers in a row, or columns are `count` numbers; behind them is NaN.
                        const std::size_t length = (in_rows ? depth : count) + 2, number = in_rows ? count : depth;
                        auto x = waves<float>(length * number, 1);
                        for (std::size_t i = 0; i < x.size(); ++i)
                            if (i % length >= length - 2) x[i] = no_number;
                        x.resize(x.size() - 2);  // nothing is read behind the last row
                        const std::size_t across = in_rows ? length : 1, along = in_rows ? 1 : length;
                        std::vector<float> y(count * stride, 9), added(count * stride, 1);
                        Arithmetic::template products<registers, false>(count, depth, x.data(), across, along,
                                                                        panel.data(), y.data(), stride);
                        Arithmetic::template products<registers, true>(count, depth, x.data(), across, along,
                                                                       panel.data(), added.data(), stride);
                        std::size_t wrong = 0;
                        for (std::size_t r = 0; r < count; ++r) {
                            for (std::size_t q = 0; q < stride; ++q) {
                                sum_of_products must;
                                for (std::size_t k = 0; q < all && k < depth; ++k)
                                    must.add(x[r * across + k * along], panel[k * stride + q]);
                                wrong += q < all ? !is_near(y[r * stride + q], must, depth) : y[r * stride + q] != 9;
                                must.sum += 1;
                                must.size += 1;
                                wrong +=
                                    q < all ? !is_near(added[r * stride + q], must, depth) : added[r * stride + q] != 1;
                            }
                        }
                        CAPTURE(count);
                        CAPTURE(depth);
                        CAPTURE(in_rows);
                        CHECK(wrong == 0);
                    }
                }
            }
        });
    }
}

TEST_CASE_TEMPLATE(
    "products of lanes: the same; lanes without queries are not read, those that see no row are left out", Arithmetic,
    arithmetic_of_pairs<false>, arithmetic_of_pairs<true>, arithmetic_of_rounded_floats)
{
    [[maybe_unused]] const typename Arithmetic::scope products;
    tiles::with_registers<float>(1000, [](auto registers) {
        constexpr std::size_t all = tiles::lanes<float, registers>, one = simd::lanes<float>;
        for (const std::size_t count : {1u, 4u, 17u, 96u}) {
            for (const std::size_t width : {std::size_t{1}, one, 3 * one + 1, 7 * one - 1}) {
                for (const std::size_t queries : {all, all - 1, std::size_t{1}}) {
                    // The first group sees the first half of the rows, and the others see the last half.
                    tiles::visible_tile visible{};
                    visible.count = count;
                    visible.groups = all / lane_count;
                    for (std::size_t g = 0; g < visible.groups; ++g)
                        visible.rows[g] = g == 0 ? tiles::range{0, count / 2} : tiles::range{count / 2, count};
                    visible.conclude();
                    auto tile = waves<float>(count * all, 4);
                    const auto sees = [&](std::size_t j, std::size_t q) { return (j < count / 2) == (q < lane_count); };
                    for (std::size_t i = 0; i < tile.size(); ++i)
                        if (!sees(i / all, i % all)) tile[i] = 0;  // of a hidden key
                    for (std::size_t i = 0; i < tile.size(); ++i)
                        if (i % all >= queries) tile[i] = no_number;
                    const auto of = waves<float>(queries * width, 5);
                    const tiles::rows<const float> x{of.data(), width};
                    std::vector<float> whole(count * width, 1), seen = whole;
                    const auto sum = [&](std::vector<float>& y, const tiles::visible_tile* rows) {
                        Arithmetic::template products_of_lanes<registers>(
                            true, count, queries, tile.data(), x, tiles::rows<float>{y.data(), width}, width, rows);
                    };
                    sum(whole, nullptr);
                    sum(seen, &visible);
                    std::size_t wrong = 0;
                    for (std::size_t j = 0; j < count; ++j) {
                        for (std::size_t i = 0; i < width; ++i) {
                            sum_of_products must{1, 1};
                            for (std::size_t q = 0; q < queries; ++q) must.add(tile[j * all + q], of[q * width + i]);
                            wrong += !is_near(whole[j * width + i], must, queries);
                            wrong += !is_near(seen[j * width + i], must, queries);
                        }
                    }
                    CAPTURE(count);
                    CAPTURE(width);
                    CAPTURE(queries);
                    CHECK(wrong == 0);
                }
            }
        }
    });
}

TEST_CASE_TEMPLATE("products of lanes: lanes that see no row of a group of rows may hold anything", Arithmetic,
                   arithmetic_of_pairs<false>, arithmetic_of_pairs<true>, arithmetic_of_rounded_floats)
{
    [[maybe_unused]] const typename Arithmetic::scope products;
    // A group's lanes are not multiplied by rows that it does not see: the NaN of its tile does not get there.
    constexpr std::size_t registers = tiles::most_registers, all = tiles::lanes<float, registers>, width = 3;
    if constexpr (all > lane_count) {
        tiles::visible_tile visible{};
        visible.count = 96;
        visible.groups = all / lane_count;
        for (std::size_t g = 0; g < visible.groups; ++g)
            visible.rows[g] = g == 0 ? tiles::range{0, 0} : tiles::range{0, 96};
        visible.conclude();
        std::vector<float> tile(96 * all, 1), y(96 * width, 0);
        const std::vector<float> of(all * width, 1);
        for (std::size_t i = 0; i < tile.size(); ++i)
            if (i % all < lane_count) tile[i] = no_number;
        Arithmetic::template products_of_lanes<registers>(true, 96, all, tile.data(),
                                                          tiles::rows<const float>{of.data(), width},
                                                          tiles::rows<float>{y.data(), width}, width, &visible);
        CHECK(std::all_of(y.begin(), y.end(), [](float e) { return e == static_cast<float>(all - lane_count); }));
    }
}

TEST_CASE_TEMPLATE("products of lanes: unless all numbers are finite, a 0 in the tile adds nothing", Arithmetic,
                   arithmetic_of_pairs<false>, arithmetic_of_pairs<true>, arithmetic_of_rounded_floats)
{
    [[maybe_unused]] const typename Arithmetic::scope products;
    constexpr std::size_t registers = tiles::most_registers, all = tiles::lanes<float, registers>, width = 5;
    auto tile = waves<float>(3 * all, 4), of = waves<float>(all * width, 5);
    for (std::size_t i = 0; i < width; ++i) of[i] = no_number;
    for (std::size_t j = 0; j < 3; ++j) tile[j * all] = 0;
    std::vector<float> y(3 * width, 0), must = y;
    const tiles::rows<const float> x{of.data(), width};
    Arithmetic::template products_of_lanes<registers>(false, 3, all, tile.data(), x,
                                                      tiles::rows<float>{y.data(), width}, width, nullptr);
    tiles::detail::products_of_lanes<registers>(false, 3, all, tile.data(), x, tiles::rows<float>{must.data(), width},
                                                width);
    CHECK(y == must);
    CHECK(std::all_of(y.begin(), y.end(), [](float e) { return std::isfinite(e); }));
}
