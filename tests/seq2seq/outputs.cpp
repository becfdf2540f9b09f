// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/outputs.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

using namespace heed;
using support::random;

TEST_CASE("maxout")
{
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({3, 6}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::maxout(x); }, random({2, 1, 2}, 1));
    CHECK(support::contains(support::message_of<shape_error>([] { ops::maxout(random({2, 3}, 1)); }), "must be even"));
}
