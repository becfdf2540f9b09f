// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/positions.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cstddef>

using namespace heed;
using support::random;

TEST_CASE("add_positions: the same vectors for every sentence")
{
    const auto x = random({2, 3, 4}, 1);
    const auto places = random({3, 4}, 5);
    const auto placed = ops::add_positions(x, places);
    for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(placed.data()[i] == support::approx(x.data()[i] + places.data()[i % 12]));
    CHECK_GRADIENT([](const auto& a, const auto& p) { return ops::add_positions(a, p); }, x, places);
    CHECK(support::message_of<shape_error>([&] {
              ops::add_positions(x, random({2, 4}, 3));
          }) == "add_positions: p is [2,4] but must be [3,4] (one row for each position of x [2,3,4])");
}
