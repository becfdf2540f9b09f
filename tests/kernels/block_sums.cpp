// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/block_sums.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/kernels.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("sums of a block match plain sums, and are accurate for very many numbers", T, float, double)
{
    constexpr std::size_t n = 5;
    for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, numbers_of_block, std::size_t{1} << 20}) {
        CAPTURE(rows);
        const auto number = [](std::size_t row, std::size_t i) { return T(0.1) * static_cast<T>(row % 7 + i); };
        list<T> blocks(n, T(1)), plain(n, T(1));
        list<long double> exact(n, 1);
        add_in_blocks(rows, n, blocks.data(), [&](std::size_t first, std::size_t last, T* to) {
            for (std::size_t row = first; row < last; ++row)
                for (std::size_t i = 0; i < n; ++i) to[i] += number(row, i);
        });
        block_sum<T> lanes;
        long double of_lanes = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t i = 0; i < n; ++i) {
                plain[i] += number(row, i);
                exact[i] += static_cast<long double>(number(row, i));
            }
            row % 2 == 0 ? lanes.add(simd::splat(number(row, 1)))
                         : lanes.add_product(simd::splat(number(row, 1)), simd::splat(T(1)));
            of_lanes += static_cast<long double>(number(row, 1));
        }
        if (rows <= numbers_of_block) CHECK(same_bits(blocks, plain));
        const double eps = static_cast<double>(std::numeric_limits<T>::epsilon());
        for (std::size_t i = 0; i < n; ++i)
            CHECK(std::fabs(static_cast<long double>(blocks[i]) - exact[i]) <= 16 * eps * exact[i]);
        for (std::size_t i = 0; i < simd::lanes<T>; ++i)
            CHECK(std::fabs(static_cast<long double>(lanes.get()[i]) - of_lanes) <= 16 * eps * of_lanes);
        if (rows > numbers_of_block && sizeof(T) == 4)
            CHECK(std::fabs(static_cast<long double>(plain[1]) - exact[1]) >
                  16 * eps * exact[1]);  // which plain sums exceed
    }
}

TEST_CASE_TEMPLATE("sums in blocks: infinite and NaN results stay in their column", T, float, double)
{
    const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    list<T> y(4, T(0));
    add_in_blocks(1000, 4, y.data(), [&](std::size_t first, std::size_t last, T* to) {
        for (std::size_t row = first; row < last; ++row) {
            const T x[] = {row == 300 ? infinity : 1, row == 999 ? -infinity : 1, row == 0 ? nan : 1, 1};
            for (std::size_t i = 0; i < 4; ++i) to[i] += x[i];
        }
    });
    CHECK(y[0] == infinity);
    CHECK(y[1] == -infinity);
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == 1000);
}
