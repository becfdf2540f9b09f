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
