// SPDX-License-Identifier: BSD-3-Clause
#include <heed/metrics/perplexity.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using heed::metrics::perplexity;
using heed::metrics::perplexity_counter;

TEST_CASE("as likely as a die with so many faces")
{
    CHECK(perplexity(std::vector<double>(5, std::log(1.0 / 6))) == doctest::Approx(6));
    CHECK(perplexity(std::vector<double>{0, 0}) == 1.0);
    // The geometric mean of 2 and 8.
    CHECK(perplexity(std::vector<double>{std::log(0.5), std::log(0.125)}) == doctest::Approx(4));
    CHECK(std::isinf(perplexity(std::vector<double>{-1, -std::numeric_limits<double>::infinity()})));
    perplexity_counter counter;
    counter.add(-1);
    counter.add(-2);
    CHECK(counter.words() == 2);
    CHECK(counter.nats_per_word() == doctest::Approx(1.5));
}

TEST_CASE("what is no log-probability is refused")
{
    CHECK_THROWS_WITH_AS(perplexity(std::vector<double>{}), "perplexity: of no word at all; at least one is needed",
                         heed::error);
    CHECK_THROWS_WITH_AS(
        perplexity(std::vector<double>{-1, 0.5}),
        "perplexity: word 2 has the log-probability 0.500000; it must be 0 or less (natural logarithm)", heed::error);
    CHECK_THROWS_AS(perplexity(std::vector<double>{std::nan("")}), heed::error);
    CHECK_THROWS_AS(perplexity_counter{}.perplexity(), heed::error);
}
