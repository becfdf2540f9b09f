// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/perplexity.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <support/approx.hpp>

using heed::metrics::perplexity;
using heed::metrics::perplexity_counter;
using heed::metrics::perplexity_counts;

TEST_CASE("perplexity is the number of faces of an equally uncertain die")
{
    CHECK(perplexity(std::vector<double>(5, std::log(1.0 / 6))) == support::approx(6));
    CHECK(perplexity(std::vector<double>{0, 0}) == 1.0);
    // The geometric mean of 2 and 8.
    CHECK(perplexity(std::vector<double>{std::log(0.5), std::log(0.125)}) == support::approx(4));
    CHECK(std::isinf(perplexity(std::vector<double>{-1, -std::numeric_limits<double>::infinity()})));
    perplexity_counter counter;
    counter.add(-1);
    counter.add(-2);
    CHECK(counter.words() == 2);
    CHECK(counter.nats_per_word() == support::approx(1.5));
}

TEST_CASE("values that are not log-probabilities are rejected")
{
    CHECK_THROWS_WITH_AS(perplexity(std::vector<double>{}), "perplexity: no words; at least one is required",
                         heed::error);
    CHECK_THROWS_WITH_AS(
        perplexity(std::vector<double>{-1, 0.5}),
        "perplexity: word 2 has the log-probability 0.500000; it must be 0 or less (natural logarithm)", heed::error);
    CHECK_THROWS_AS(perplexity(std::vector<double>{std::nan("")}), heed::error);
    CHECK_THROWS_AS(perplexity_counter{}.perplexity(), heed::error);
    CHECK_THROWS_WITH_AS(perplexity(perplexity_counts{}), "perplexity: no words; at least one is required",
                         heed::error);
    CHECK_THROWS_WITH_AS(
        perplexity(perplexity_counts{0.5, 3}),
        "perplexity: 3 words have the log-probability 0.500000; it must be 0 or less (natural logarithm)", heed::error);
    CHECK_THROWS_AS(perplexity(perplexity_counts{std::nan(""), 3}), heed::error);
}

TEST_CASE("the perplexity of sentences is that of their words")
{
    perplexity_counts sum{std::log(0.5), 1};
    sum += {std::log(0.125) + std::log(0.25), 2};
    CHECK(sum.words == 3);
    CHECK(perplexity(sum) == support::approx(perplexity(std::vector{std::log(0.5), std::log(0.125), std::log(0.25)})));
    sum += {-std::numeric_limits<double>::infinity(), 2};
    CHECK(std::isinf(perplexity(sum)));
}
