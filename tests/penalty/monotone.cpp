// SPDX-License-Identifier: BSD-3-Clause
#include <heed/penalty/monotone.hpp>
#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace heed;

namespace {

using path = std::vector<array<double, 2>>;  // [B,T] of each step

}  // namespace

TEST_CASE("monotone: only backward moves are penalized, by their length")
{
    const path forward{{{1, 0, 0}}, {{1, 0, 0}}, {{0, 0, 1}}}, back{{{0, 0, 1}}, {{1, 0, 0}}, {{0, 1, 0}}};
    CHECK(support::number(penalty::monotone(forward, lengths{3})) == 0);
    CHECK(support::number(penalty::monotone(back, lengths{3})) == 2);
    CHECK(support::number(penalty::monotone(back, lengths{3}, lengths{1})) == 0);
}
