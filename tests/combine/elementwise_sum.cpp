// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/elementwise_sum.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>
#include <limits>

using namespace heed;
using support::random;

TEST_CASE("elementwise_sum: a sum per dimension, and its gradient")
{
    const auto f = [](const auto& w, const auto& h) { return ops::elementwise_sum(w, h); };
    const auto weights = random({2, 3, 7}, 3), h = random({2, 3, 7}, 2);
    array<double, 2> sums({2, 7}, 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i) sums(i / 21, i % 7) += weights.data()[i] * h.data()[i];
    CHECK(support::distance(f(weights, h), sums) < 1e-14);
    CHECK_GRADIENT(f, random({1, 1, 1}, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f, random({2, 3, 4}, 3), random({2, 3, 4}, 4));
    CHECK_GRADIENT(f, random({2, 9, 19}, 5), random({2, 9, 19}, 6));
    support::check_empty(f, random({2, 0, 4}, 1), random({2, 0, 4}, 2));
}

TEST_CASE("elementwise_sum: a value with weight 0 is not read, even if NaN")
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const array<double, 3> h{{{1.0, 2.0}, {nan, nan}}};
    const array<double, 3> weights{{{0.5, 1.0}, {0.0, 0.0}}};
    CHECK(support::same_bits(ops::elementwise_sum(weights, h), array<double, 2>{{0.5, 2.0}}));
}
