// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

TEST_CASE("each position takes its fraction of the rest, starting at the last position")
{
    const auto s = [](double x) { return 1 / (1 + std::exp(-x)); };
    const array<double, 2> e{{0.5, -1, 2, 7}};
    const auto w = ops::stick_breaking(e, lengths{3});
    CHECK(w(0, 2) == support::approx(s(2)));
    CHECK(w(0, 1) == support::approx(s(-1) * (1 - s(2))));
    CHECK(w(0, 0) == support::approx(s(0.5) * (1 - s(-1)) * (1 - s(2))));
    CHECK(w(0, 3) == 0);
    constexpr double none = -std::numeric_limits<double>::infinity();
    const auto hidden = ops::stick_breaking(array<double, 2>{{0.5, none, none}, {none, none, none}}, lengths{3, 3});
    CHECK(hidden(0, 0) == support::approx(s(0.5)));  // as if it were the only position
    CHECK(hidden(0, 2) == 0);
    CHECK(hidden(1, 1) == 0);
}

TEST_CASE("large scores and long rows are accurate")
{
    const auto first = ops::stick_breaking(array<float, 2>{{1e4F, -1e4F, -1e4F}}, lengths{3});
    CHECK(first(0, 0) == 1);
    CHECK(ops::stick_breaking(array<float, 2>{{1e4F, 1e4F}}, lengths{2})(0, 1) == 1);
    array<double, 2> e(shape_of_rank<2>{1, 20000}, -9.0);
    const auto w = ops::stick_breaking(e, lengths{20000});
    double sum = 0;
    for (const double x : w) sum += x;
    CHECK(sum == support::approx(1 - std::pow(1 / (1 + std::exp(-9.0)), 20000)));
}

TEST_CASE("gradients")
{
    boolean_mask<2> mask(shape_of_rank<2>{2, 5});
    for (const std::size_t seen : {0u, 2u, 3u, 6u}) mask[seen] = 1;
    const auto f = [&](bool hides, const lengths& real) {
        return [=, &mask](const auto& e) { return ops::stick_breaking(hides ? ops::masked_fill(e, mask) : e, real); };
    };
    CHECK_GRADIENT(f(false, {7, 0, 1, 4}), random({4, 7}, 1));
    CHECK_GRADIENT(f(false, {7, 0, 1, 4}), random({4, 7, 3}, 2, 3));
    CHECK_GRADIENT(f(true, {5, 4}), random({2, 5}, 3));
}

TEST_CASE("stick breaking satisfies the contracts, per position and per dimension")
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12), V = random({4, 5}, 13);
    const auto v = random({4}, 14, 2.0);
    const normalize::stick_breaking breaks;
    const auto per_position =
        verify(attention{score::additive{W, U, v}, breaks, combine::weighted_sum{}}, {.query = 3, .width = 5});
    CHECK_MESSAGE(bool(per_position), per_position.text());
    const auto per_dimension =
        verify(attention{score::additive_per_dimension{W, U, V}, breaks, combine::elementwise_sum{}},
               {.query = 3, .width = 5});
    CHECK_MESSAGE(bool(per_dimension), per_dimension.text());
}
