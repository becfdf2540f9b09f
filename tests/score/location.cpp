// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/location.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <string>

using namespace heed;
using support::random;

TEST_CASE("pick: the numbers at some columns")
{
    const auto x = random({2, 4}, 1);
    const array<double, 3> at{{{2}, {0}, {2}}, {{3}, {3}, {1}}};
    const auto y = ops::pick(x, at);
    CHECK(y(0, 0) == x(0, 2));
    CHECK(y(0, 1) == x(0, 0));
    CHECK(y(1, 1) == x(1, 3));
    CHECK(y(1, 2) == x(1, 1));
    CHECK_GRADIENT([&](const auto& v) { return ops::pick(v, at); }, x);
    const auto says = [](auto&& f, const std::string& part) {
        const std::string message = support::message_of<shape_error>(f);
        CHECK_MESSAGE(support::contains(message, part), message);
    };
    says([&] { ops::pick(random({2, 3}, 1), at); }, "of [2,3], which has 3 columns");
    says([&] { ops::pick(random({3, 4}, 1), at); }, "[3,4] but must be [2,4]");
    says([&] { ops::pick(x, array<double, 3>{{{-1.0}}, {{0.0}}}); }, "pick: position -1");
}
