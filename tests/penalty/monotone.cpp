// SPDX-License-Identifier: BSD-3-Clause
#include <heed/penalty/monotone.hpp>
#include <support/tensors.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace heed;

namespace {

using path = std::vector<array<double, 2>>;  // [B,T] of each step

double number(const auto& loss)
{
    static_assert(rank_of<decltype(loss)> == 0);
    return view_of(loss).data[0];
}

}  // namespace

TEST_CASE("monotone: only steps back cost, by their length")
{
    const path forward{{{1, 0, 0}}, {{1, 0, 0}}, {{0, 0, 1}}}, back{{{0, 0, 1}}, {{1, 0, 0}}, {{0, 1, 0}}};
    CHECK(number(penalty::monotone(forward, lengths{3})) == 0);
    CHECK(number(penalty::monotone(back, lengths{3})) == 2);
    CHECK(number(penalty::monotone(back, lengths{3}, lengths{1})) == 0);
}
