// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/by_length.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

TEST_CASE("sentences are grouped by length, and each bucket has its own BLEU")
{
    const std::vector<sentence> hypotheses{split("a b c d"), split("a b c x e"), split("a b c d e f"), split("x")};
    const std::vector<std::vector<sentence>> references{
        {split("a b c d"), split("a b c d e"), split("a b c d e f"), split("y")}};
    const auto statistics = bleu_statistics(hypotheses, references);
    const std::vector<std::size_t> lengths{4, 5, 6, 1}, bounds{3, 5};
    const auto buckets = bleu_by_length(statistics, lengths, bounds);
    REQUIRE(buckets.size() == 3);
    CHECK(buckets[0].text() == "0-3");
    CHECK(buckets[1].text() == "4-5");
    CHECK(buckets[2].text() == "6+");
    CHECK(buckets[0].sentences == 1);
    CHECK(buckets[1].sentences == 2);
    CHECK(buckets[2].sentences == 1);
    CHECK(buckets[0].bleu().score == 0.0);
    CHECK(buckets[2].bleu().score == support::approx(100));
    const std::vector<sentence> middle(hypotheses.begin(), hypotheses.begin() + 2);
    const std::vector<sentence> middle_references(references[0].begin(), references[0].begin() + 2);
    CHECK(buckets[1].bleu().score == support::approx(bleu(middle, middle_references).score));
    CHECK(buckets[1].bleu().score > 0);
}

TEST_CASE("no bounds make one bucket; empty buckets are included")
{
    const std::vector<bleu_counts> two(2);
    const std::vector<std::size_t> lengths{0, 100}, none, bounds{0, 1, 50};
    const auto one = bleu_by_length(two, lengths, none);
    REQUIRE(one.size() == 1);
    CHECK(one[0].sentences == 2);
    CHECK(one[0].text() == "0+");
    const auto four = bleu_by_length(two, lengths, bounds);
    REQUIRE(four.size() == 4);
    CHECK(four[0].text() == "0");
    CHECK(four[1].text() == "1");
    CHECK(four[2].text() == "2-50");
    CHECK(four[0].sentences == 1);
    CHECK(four[2].sentences == 0);
    CHECK(four[3].sentences == 1);
}

TEST_CASE("invalid counts and bounds are rejected")
{
    const std::vector<bleu_counts> two(2);
    const std::vector<std::size_t> one{1}, both{1, 2}, falling{20, 10}, twice{10, 10};
    CHECK_THROWS_WITH_AS(bleu_by_length(two, one, {}),
                         "bleu_by_length: 2 hypotheses but 1 length; expected one of each per sentence", heed::error);
    CHECK_THROWS_WITH_AS(bleu_by_length(two, both, falling),
                         "bleu_by_length: bucket 2 cannot end at 10; bounds must ascend, such as {10, 20, 30}",
                         heed::error);
    CHECK_THROWS_AS(bleu_by_length(two, both, twice), heed::error);
    CHECK_THROWS_AS(bleu_by_length(two, both, std::vector<std::size_t>{length_bucket::unbounded}), heed::error);
}
