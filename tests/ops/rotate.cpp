// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/rotate.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>

using namespace heed;
using support::random;

TEST_CASE("each pair is turned by its angle, at any position, in either order of pairs")
{
    const auto x = random({2, 3, 6}, 1);
    for (const std::size_t first : {0u, 1u, 31u, 100u, 5000u}) {
        for (const auto pairs : {ops::turned_pairs::neighbors, ops::turned_pairs::halves}) {
            const ops::rotation how{100, pairs};
            const auto y = ops::rotate(x, first, how);
            for (std::size_t b = 0; b < 2; ++b) {
                for (std::size_t t = 0; t < 3; ++t) {
                    for (std::size_t m = 0; m < 3; ++m) {
                        const bool halves = pairs == ops::turned_pairs::halves;
                        const std::size_t i = halves ? m : 2 * m, k = halves ? m + 3 : 2 * m + 1;
                        const double angle =
                            static_cast<double>(first + t) * std::pow(100.0, -2.0 * static_cast<double>(m) / 6);
                        const double c = std::cos(angle), s = std::sin(angle);
                        CHECK(y(b, t, i) == support::approx(c * x(b, t, i) - s * x(b, t, k)));
                        CHECK(y(b, t, k) == support::approx(s * x(b, t, i) + c * x(b, t, k)));
                    }
                }
            }
        }
    }
}

TEST_CASE("a position has the same bits wherever a call begins, and the gradient is turned back")
{
    const auto x = random({1, 80, 4}, 1);
    const auto all = ops::rotate(x, std::size_t{7}, ops::rotation{});
    for (const std::size_t t : {0u, 24u, 25u, 79u}) {
        array<double, 2> one({1, 4});
        for (std::size_t i = 0; i < 4; ++i) one(0, i) = x(0, t, i);
        const auto alone = ops::rotate(one, 7 + t, ops::rotation{});
        for (std::size_t i = 0; i < 4; ++i) CHECK(alone(0, i) == all(0, t, i));
    }
    const auto f = [](const auto& v) { return ops::rotate(v, std::size_t{30}, ops::rotation{}); };
    CHECK_GRADIENT(f, random({2, 4, 6}, 2));
    CHECK_GRADIENT(f, random({2, 4}, 3));
    CHECK(support::message_of<shape_error>([&] {
              (void)f(random({2, 5}, 1));
          }) == "rotate: vectors of 5 numbers in [2,5]; pairs of them are turned, so there must be an even number");
}
