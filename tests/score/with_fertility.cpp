// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_fertility.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>

using namespace heed;
using support::random;

TEST_CASE("add_share")
{
    const auto share = [](const auto& c, const auto& a, const auto& f) { return ops::add_share(c, a, f); };
    array<double, 2> fertility = random({2, 3}, 3);
    for (double& f : fertility) f = 0.5 + std::abs(f);
    CHECK_GRADIENT(share, random({2, 3}, 1), random({2, 3}, 2), fertility);
    CHECK(share(array<double, 2>{{1.0}}, array<double, 2>{{0.5}}, array<double, 2>{{2.0}})(0, 0) == 1.25);
    // A fertility that has underflowed: a great number, never a division by 0.
    CHECK(share(array<double, 2>{{0.0, 0.0}}, array<double, 2>{{0.0, 0.5}}, array<double, 2>{{0.0, 0.0}}) ==
          array<double, 2>{{0.0, 0.5 / 1e-6}});
    ad::tape<double> on;
    const array<double, 2> none{{0.0}}, half{{0.5}};
    const auto f = on.parameter(none), a = on.parameter(half);
    on.backward(ops::inner(share(none, a, f), array<double, 2>{{1.0}}));
    CHECK(on.gradient(f).data[0] == 0);
    CHECK(on.gradient(a).data[0] == support::approx(1e6));

    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                share(random({2, 3}, 1), random({2, 4}, 2), fertility);
                            }),
                            "the weights is [2,4] but must be [2,3]"));
}
