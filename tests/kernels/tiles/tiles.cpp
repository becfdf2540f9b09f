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

TEST_CASE("the parts of a tile cover each row that a group of queries sees once, and no other row")
{
    using T = float;
    constexpr std::size_t registers = tiles::most_registers, groups = tiles::lanes<T, registers> / lane_count;
    tiles::visible_tile visible{0, 0, 20, groups, {}, {}, {}, false};
    for (std::size_t g = 0; g < groups; ++g) {
        visible.rows[g] = {2 * g, 11 + g};
        visible.full[g] = {2 * g, 11};
    }
    visible.conclude();
    CHECK(visible.common == tiles::range{2 * (groups - 1), 11});
    CHECK_FALSE(visible.is_full);
    CHECK(visible.lanes_of({2 * (groups - 1), 11}, 1000) == tiles::range{0, 1000});
    CHECK(visible.lanes_of({0, 1}, 1000) == tiles::range{0, lane_count});
    CHECK(visible.lanes_of({15, 20}, 1000).empty());
    std::vector<int> covered(20 * groups);
    tiles::detail::each_part<registers, T>(visible, [&](auto some, std::size_t lane, const tiles::range& rows) {
        for (std::size_t row = rows.begin; row < rows.end; ++row)
            for (std::size_t g = lane / lane_count; g < lane / lane_count + some * groups / registers; ++g)
                ++covered[row * groups + g];
    });
    for (std::size_t row = 0; row < 20; ++row) {
        for (std::size_t g = 0; g < groups; ++g) {
            const bool reached = visible.rows[g].begin <= row && row < visible.rows[g].end;
            if (reached) CHECK(covered[row * groups + g] == 1);
            if (row >= 11 + groups) CHECK(covered[row * groups + g] == 0);
        }
    }
    for (std::size_t g = 0; g < groups; ++g) visible.rows[g] = visible.full[g] = {0, 20};
    visible.conclude();
    CHECK(visible.is_full);
}

TEST_CASE("the last query is at the last key")
{
    head_of_numbers<float> x(5, 9, 3, 2);
    const auto of = x.head();
    CHECK(of.diagonal_of(0) == 4);
    CHECK(of.diagonal_of(4) == 8);
}
