// SPDX-License-Identifier: BSD-3-Clause
#include <heed/penalty/doubly_stochastic.hpp>
#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace heed;

namespace {

using path = std::vector<array<double, 2>>;  // [B,T] of each step

}  // namespace

TEST_CASE("doubly stochastic: steps are summed, not positions (a known bug elsewhere: a sum that is always 1)")
{
    // The same position at every step: each step's weights sum to 1, but the positions get 3, 0 and 0.
    const path stuck(3, array<double, 2>{{1, 0, 0}});
    CHECK(support::number(penalty::doubly_stochastic(stuck, lengths{3})) == 4 + 1 + 1);
    // Each position once, spread over two steps: no penalty.
    const path fair{{{0.5, 0.75, 0.25}}, {{0.5, 0.25, 0.75}}};
    CHECK(support::number(penalty::doubly_stochastic(fair, lengths{3})) == 0);
    // A sentence without steps.
    CHECK(support::number(penalty::doubly_stochastic(fair, lengths{3}, lengths{0})) == 3);
}
