// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_positions.hpp>

#include <doctest/doctest.h>

#include <support/earlier_weights.hpp>

using namespace heed;
using namespace support::earlier_weights;

TEST_CASE("scores of positions satisfy the contracts")
{
    const auto score = positions_over(parameters.score());
    check_promises(score, scalar_positions(score));
    check_window(score);
}
