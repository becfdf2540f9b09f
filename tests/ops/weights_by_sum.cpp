// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/weights_by_sum.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::random;

namespace {

array<double, 3> positive(array<double, 3> x)
{
    for (double& v : x) v = std::abs(v) + 0.1;
    return x;
}

}  // namespace

TEST_CASE("weights by sums")
{
    const lengths real{7, 0, 1, 4};
    for (const ops::rule_of_sums rule : {ops::rule_of_sums{1, true}, {0.7, true}, {0.7, false}}) {
        const auto f = [&](const auto& e) { return ops::weights_by_sum(e, real, rule); };
        CHECK_GRADIENT(f, positive(random({4, 7, 2}, 1)));
        const auto y = ops::weights_by_sum(array<double, 2>{{1, 3, 4, 1e9}}, lengths{3}, rule);
        const double g = rule.decay, sum = rule.divides ? g * g + 3 * g + 4 : 1;
        CHECK(y(0, 0) == support::approx(g * g / sum));
        CHECK(y(0, 1) == support::approx(3 * g / sum));
        CHECK(y(0, 2) == support::approx(4 / sum));
        CHECK(y(0, 3) == 0);
    }
    constexpr double none = -std::numeric_limits<double>::infinity();
    const auto hidden =
        ops::weights_by_sum(array<double, 2>{{1, none, 3}, {none, none, none}}, lengths{3, 3}, ops::rule_of_sums{});
    CHECK(hidden(0, 0) == 0.25);
    CHECK(hidden(0, 1) == 0);
    CHECK(hidden(0, 2) == 0.75);
    CHECK(hidden(1, 2) == 0);
}
