// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/query_numbers.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <support/mechanisms.hpp>

using namespace heed;
using support::random;

// Query positions of each sentence: tests/attention/memory.cpp.

TEST_CASE("query positions in a shorter sentence")
{
    CHECK(detail::number_in_sentence(6, 7, 7) == 6);
    CHECK(detail::number_in_sentence(6, 3, 7) == 2);
    CHECK(detail::number_in_sentence(4, 3, 7) == 0);
    CHECK(detail::number_in_sentence(1, 0, 7) == 0);  // no comparison there
    const auto message = support::message_of<shape_error>([] { (void)detail::number_in_sentence(1, 3, 7); });
    CHECK_MESSAGE(support::contains(message, "query 1 of a KV cache, whose longest sentence has 7 positions, would "
                                             "have the number -3 in a sentence of 3"),
                  message);
}

TEST_CASE("a row of queries reads its row of keys")
{
    using keys = cache_tensor<double>;
    const auto x = random({2, 3, 4}, 1);
    const keys some(view_of(x), lengths{3, 2});
    const std::vector<std::size_t> sentence{1, 1, 0};
    const detail::shared_rows<keys> shared{some, sentence.data()};
    CHECK(detail::row_asked(shared, 0) == 1);
    CHECK(detail::row_asked(shared, 2) == 0);
    CHECK(detail::row_asked(detail::growing_rows<keys>{some}, 2) == 2);
    CHECK(detail::keys_grow<detail::shared_rows<keys>>);
    CHECK(detail::keys_grow<detail::growing_rows<keys>>);
    CHECK(!detail::keys_grow<detail::shared_rows<array<double, 3>>>);
    CHECK(!detail::keys_grow<array<double, 3>>);
}
