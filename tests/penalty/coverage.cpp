// SPDX-License-Identifier: BSD-3-Clause
#include <heed/penalty/coverage.hpp>
#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace heed;

namespace {

using path = std::vector<array<double, 2>>;  // [B,T] of each step

}  // namespace

TEST_CASE("coverage: the step itself is not covered yet (a known bug of a peer: the loss was the number of steps)")
{
    const path forward{{{1, 0, 0}}, {{0, 1, 0}}, {{0, 0, 1}}};
    CHECK(support::number(penalty::coverage(forward, lengths{3})) == 0);
    const path one{{{0.2, 0.5, 0.3}}};
    CHECK(support::number(penalty::coverage(one, lengths{3})) == 0);  // the first step is free
    const path again{{{1, 0, 0}}, {{0.75, 0.25, 0}}, {{0.25, 0.75, 0}}};
    CHECK(support::number(penalty::coverage(again, lengths{3})) == 0.75 + 0.25 + 0.25);
    // Rows summed instead of steps would always see a coverage of 1, and charge every step in full.
    const path stuck(4, array<double, 2>{{1, 0}});
    CHECK(support::number(penalty::coverage(stuck, lengths{2})) == 3);
}
