// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_location.hpp>

#include <heed/ad/ad.hpp>
#include <heed/score/with_neighbours.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>

using namespace heed;
using support::random;

TEST_CASE("neighbourhood and convolve")
{
    const auto near = [](const auto& x) { return ops::neighbourhood(x, std::size_t{1}); };
    CHECK(near(array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{0.0, 1.0, 2.0}, {1.0, 2.0, 3.0}, {2.0, 3.0, 0.0}}});
    CHECK(ops::neighbourhood(array<double, 2>{{5.0}}, std::size_t{2}) == array<double, 3>{{{0.0, 0.0, 5.0, 0.0, 0.0}}});
    CHECK(ops::neighbourhood(array<double, 2>{{5.0, 6.0}}, std::size_t{0}) == array<double, 3>{{{5.0}, {6.0}}});
    CHECK_GRADIENT(near, random({2, 5}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighbourhood(x, std::size_t{4}); }, random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighbourhood(x, std::size_t{2}); }, random({1, 1}, 1));

    // Convolving is a product with the neighbourhood, of any width, wider than the sentence too.
    const auto slide = [](const auto& x, const auto& F) { return ops::convolve(x, F); };
    for (const std::size_t reach : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{20}}) {
        const auto x = random({2, 7}, 1), F = random({3, 2 * reach + 1}, 2);
        array<double, 2> columns(shape_of_rank<2>{2 * reach + 1, 3});
        for (std::size_t n = 0; n < 3; ++n) {
            for (std::size_t i = 0; i < 2 * reach + 1; ++i) columns(i, n) = F(n, i);
        }
        CHECK(support::distance(slide(x, F), ops::linear(ops::neighbourhood(x, reach), columns)) < 1e-14);
    }
    CHECK(slide(array<double, 2>{{0.0, 1.0, 0.0}}, array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{3.0}, {2.0}, {1.0}}});
    CHECK_GRADIENT(slide, random({2, 5}, 1), random({3, 3}, 2));
    CHECK_GRADIENT(slide, random({2, 2}, 1), random({1, 7}, 2));
    CHECK_GRADIENT(slide, random({1, 1}, 1), random({1, 1}, 2));
    CHECK(slide(random({2, 0}, 1), random({3, 5}, 2)).size() == 0);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                slide(random({2, 5}, 1), random({3, 4}, 2));
                            }),
                            "convolve: the filters are [3,4], but their width must be odd"));
}
