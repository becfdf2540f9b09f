// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/masks.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using support::check_empty, support::message_of, support::random;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("add_mask adds, and hides where the mask is -inf")
{
    const array<double, 2> e{{1.0, not_a_number, 3.0}}, m{{0.5, -infinity, -2.0}};
    CHECK(support::same_bits(ops::add_mask(e, m), array<double, 2>{{1.5, -infinity, 1.0}}));
    const array<double, 3> each{{{1.0, 2.0}, {infinity, not_a_number}, {3.0, 4.0}}};
    CHECK(
        support::same_bits(ops::add_mask(each, m), array<double, 3>{{{1.5, 2.5}, {-infinity, -infinity}, {1.0, 2.0}}}));
    const auto f = [](const auto& x, const auto& mask) { return ops::exp(ops::add_mask(x, mask)); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2));
    CHECK_GRADIENT(f, random({3, 5}, 3), random({3, 5}, 4));
    CHECK_GRADIENT(f, random({2, 4, 3}, 5), random({2, 4}, 6));
    const auto with_some_hidden = [&m](const auto& x) { return ops::exp(ops::add_mask(x, m)); };
    CHECK_GRADIENT(with_some_hidden, random({1, 3}, 7));
    CHECK_GRADIENT(with_some_hidden, random({1, 3, 2}, 8));
    check_empty(f, array<double, 2>(shape_of_rank<2>{2, 0}), array<double, 2>(shape_of_rank<2>{2, 0}));

    ad::tape<double> on;  // no gradient comes to what hides, nor to what it hides
    const auto scores = on.parameter(e), mask = on.parameter(m);
    on.backward(ops::inner(ops::exp(ops::add_mask(scores, mask)), array<double, 2>{{2.0, 3.0, 5.0}}));
    for (const auto& x : {scores, mask}) {
        CHECK(on.gradient(x).data[0] == support::approx(2 * std::exp(1.5)));
        CHECK(on.gradient(x).data[1] == 0);
        CHECK(on.gradient(x).data[2] == support::approx(5 * std::exp(1.0)));
    }
    CHECK(message_of<shape_error>([&] {
              (void)ops::add_mask(random({2, 4}, 1), m);
          }) == "attention: the additive mask is [1,3] but must be [2,4] (one number for each position)");
    CHECK(message_of<shape_error>([&] {
              (void)ops::add_mask(on.parameter(e), random({1, 2}, 1));
          }) == "attention: the additive mask is [1,2] but must be [1,3] (one number for each position)");
}
