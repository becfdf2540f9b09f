// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/query.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <support/mechanisms.hpp>

using namespace heed;
using support::random;

TEST_CASE("query positions differ between sentences, and the score reads them")
{
    using counting = score::rotary<score::dot>;
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto x = random({2, 4, 6}, 1);
    const auto padded = attend.on(x, lengths{4, 2});
    const auto grown = with_cache(padded), even = with_cache(attend.on(x));
    CHECK(detail::differ_in_length(lengths{4, 2}));
    CHECK(!detail::differ_in_length(lengths{2, 2}));
    CHECK(!detail::differ_in_length(lengths_view{}));
    CHECK(detail::numbers_differ<counting>(grown));
    CHECK(!detail::numbers_differ<counting>(even));
    CHECK(!detail::numbers_differ<counting>(padded));
    CHECK(!detail::numbers_differ<score::dot>(grown));
    CHECK_THROWS_WITH_AS(detail::require_one_number<counting>(grown), doctest::Contains("differ in length"), error);
    detail::require_one_number<counting>(even);
    detail::require_one_number<score::dot>(grown);
}
