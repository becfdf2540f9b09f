// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/positions.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cstddef>

using namespace heed;
using support::random;

TEST_CASE("learned positions are the same vectors for every sentence, from any start position")
{
    const auto x = random({2, 3, 4}, 1);
    const auto table = random({5, 4}, 5);
    const auto placed = nn::learned_positions{table}(x, 1);
    for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(placed.data()[i] == support::approx(x.data()[i] + table.data()[4 + i % 12]));
    CHECK_GRADIENT([](const auto& a, const auto& p) { return nn::learned_positions{p}(a, 2); }, x, table);
    CHECK(support::message_of<shape_error>([&] {
              (void)nn::learned_positions{random({5, 3}, 3)}(x);
          }) == "learned_positions: the table is [5,3] but must be [5,4] (rows as wide as those of [2,3,4])");
}
