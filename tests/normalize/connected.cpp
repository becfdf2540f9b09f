// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/connected.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/temporal_family.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::check_empty, support::message_of, support::random;
using support::plain_query, support::query_with_word;
namespace scalar = support::scalar;
using namespace support::temporal_family;

TEST_CASE("add_weighted")
{
    const array<double, 2> e{{1.0, 2.0}}, x{{10.0, -4.0}};
    CHECK(support::same_bits(ops::add_weighted(e, array<double, 1>{0.5}, x), array<double, 2>{{6.0, 0.0}}));
    const auto f = [](const auto& a, const auto& w, const auto& b) { return ops::add_weighted(a, w, b); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1}, 2), random({1, 1}, 3));
    CHECK_GRADIENT(f, random({3, 11}, 4), random({1}, 5), random({3, 11}, 6));
    CHECK_GRADIENT(f, random({2, 3, 5}, 7), random({1}, 8), random({2, 3, 5}, 9));
    check_empty(f, random({0, 3}, 1), random({1}, 2), random({0, 3}, 3));
    CHECK(message_of<shape_error>([&] { (void)f(e, random({2}, 1), x); }) ==
          "add_weighted: the weight is [2] but must be [1] (one number for all)");
    ad::tape<double> on;
    CHECK(message_of<shape_error>([&] {
              (void)f(on.parameter(e), random({1}, 1), random({1, 3}, 1));
          }) == "add_weighted: what is added is [1,3] but must be [1,2] (the shape of the first argument)");
}

TEST_CASE("connected is its equation")
{
    for (const double w : {0.0, -2.0, 0.7})
        check_values(normalize::connected{array<double, 1>{w}}, scalar::connected(w));
}

TEST_CASE("connected: gradients and contracts") { check_mechanism(normalize::connected{array<double, 1>{-1.3}}); }
