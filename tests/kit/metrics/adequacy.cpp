// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/adequacy.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;
using positions = std::vector<std::size_t>;

namespace {

// Two target words and the end word attend to four source words and the source's end word.
const std::vector<std::vector<float>> weights{
    {0.75f, 0.125f, 0.0f, 0.0625f, 0.0625f}, {0.125f, 0.5f, 0.125f, 0.125f, 0.125f}, {0, 0, 0.5f, 0, 0.5f}};

}  // namespace

TEST_CASE("received attention is summed over target words, without the end words")
{
    const std::span words(weights.data(), 2);
    const std::vector<double> received = attention_received(words, 4);
    CHECK(received == std::vector<double>{0.875, 0.625, 0.125, 0.1875});
    CHECK(overlooked_words(received) == positions{2, 3});
    CHECK(overlooked_words(received, {0.1875}) == positions{2});  // below the threshold, not at it
    CHECK(overlooked_words(received, {0.7}) == positions{1, 2, 3});
    CHECK(attention_received(weights, 5)[2] == 0.625);
    CHECK_THROWS_WITH_AS(attention_received(weights, 6), "attention_received: row 0 has 5 weights for 6 source words",
                         heed::shape_error);
    CHECK_THROWS_WITH_AS(overlooked_words(received, {0}),
                         "adequacy: with a threshold of 0.000000, no word is overlooked; it must be above 0",
                         heed::error);
}

TEST_CASE("the entropy of weights is in bits, and does not depend on their sum")
{
    using row = std::vector<double>;
    CHECK(attention_entropy(row{1, 0, 0}) == 0);
    CHECK(attention_entropy(row{0.25, 0.25, 0.25, 0.25}) == 2);
    CHECK(attention_entropy(row{4, 2, 2}) == 1.5);
    CHECK(attention_entropy(row{3e-300, 0}) == 0);
    CHECK(attention_entropy(row{}) == 0);
    CHECK(attention_entropy(row{0, 0}) == 0);
    CHECK_THROWS_WITH_AS(attention_entropy(row{1, -0.5}), "attention_entropy: the weight -0.500000 is not 0 or more",
                         heed::error);
}

TEST_CASE("an empty translation overlooks every word; an empty source has no words")
{
    const std::vector<std::vector<float>> nothing;
    CHECK(overlooked_words(attention_received(nothing, 3)) == positions{0, 1, 2});
    CHECK(overlooked_words(attention_received(nothing, 0)).empty());
    CHECK(attention_received(std::vector<std::vector<float>>{{1.0f}}, 0).empty());
}

TEST_CASE("with links, a word without a link is overlooked")
{
    const links some{{0, 0}, {2, 1}, {2, 2}, {7, 3}};
    CHECK(attention_received(some, 4) == std::vector<double>{1, 0, 2, 0});
    CHECK(overlooked_words(attention_received(some, 4)) == positions{1, 3});
}

TEST_CASE("a corpus sums over its sentences")
{
    adequacy_counts sum;
    for (const std::size_t words : {4u, 2u, 0u})
        sum += count_overlooked(attention_received(std::span(weights.data(), 2), words));
    CHECK(sum.sentences == 3);
    CHECK(sum.affected == 1);
    CHECK(sum.words == 6);
    CHECK(sum.overlooked == 2);
    CHECK(sum.share() == support::approx(1.0 / 3));
    CHECK(adequacy_counts{}.share() == 0);
}
