// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/dot.hpp>

#include <doctest/doctest.h>

#include <support/scores.hpp>

using namespace heed;
using support::random;
namespace scalar = support::scalar;

TEST_CASE("dot: its equation, gradient and contracts; different widths are rejected")
{
    support::check_score([](std::size_t, std::size_t) { return score::dot{}; },
                         [](std::size_t, std::size_t) { return scalar::dot(); },
                         [](std::size_t, std::size_t D) { return support::plain_query{D}; });
    const auto attend = support::soft(score::dot{});
    const auto memory = attend.on(random({2, 4, 5}, 1));
    support::says([&] { attend.step(memory, random({2, 3}, 2), attend.start(memory)); }, "[2,3]");
}
