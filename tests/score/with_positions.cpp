// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_positions.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <support/earlier_weights.hpp>
#include <support/gradients.hpp>

using namespace heed;
using namespace support::earlier_weights;
using support::random;

TEST_CASE("scores of positions keep their promises")
{
    const auto score = positions_over(parameters.score());
    check_promises(score, scalar_positions(score));
    check_window(score);
}

TEST_CASE("with_column: a number in one column, the others as they are")
{
    const auto x = random({1, 2, 3}, 1);
    const auto y = ops::with_column(x, 1u, 0.5);
    CHECK(support::same_bits(y, array<double, 3>{{{x(0, 0, 0), 0.5, x(0, 0, 2)}, {x(0, 1, 0), 0.5, x(0, 1, 2)}}}));
    for (const std::size_t column : {0u, 1u, 2u}) {
        CHECK_GRADIENT([=](const auto& v) { return ops::with_column(v, column, 0.5); }, random({2, 2, 3}, 2));
    }
    CHECK(support::message_of<shape_error>([&] { ops::with_column(x, 3u, 0.5); }) ==
          "with_column: column 3 of [1,2,3]; columns count from 0");
}
