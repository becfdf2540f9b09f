// SPDX-License-Identifier: BSD-3-Clause
#include <heed/penalty/coverage.hpp>
#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace heed;

namespace {

using path = std::vector<array<double, 2>>;  // [B,T] of each step

}  // namespace

TEST_CASE("coverage: a step is not covered by itself (a known bug elsewhere: the loss was the number of steps)")
{
    const path forward{{{1, 0, 0}}, {{0, 1, 0}}, {{0, 0, 1}}};
    CHECK(support::number(penalty::coverage(forward, lengths{3})) == 0);
    const path one{{{0.2, 0.5, 0.3}}};
    CHECK(support::number(penalty::coverage(one, lengths{3})) == 0);  // the first step has no penalty
    const path again{{{1, 0, 0}}, {{0.75, 0.25, 0}}, {{0.25, 0.75, 0}}};
    CHECK(support::number(penalty::coverage(again, lengths{3})) == 0.75 + 0.25 + 0.25);
    // If rows were summed instead of steps, coverage would always be 1, and every step would be penalized fully.
    const path stuck(4, array<double, 2>{{1, 0}});
    CHECK(support::number(penalty::coverage(stuck, lengths{2})) == 3);
}
