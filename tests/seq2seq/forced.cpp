// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/forced.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/searches.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
using namespace support::searches;
using support::pointers;

TEST_CASE("forced decoding has the loss of training, word by word, and its weights")
{
    const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto forced = force<double>(first, batch.source, pointers(targets));
    double sum = 0;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        REQUIRE(forced[b].log_probabilities.size() == targets[b].size() + 1);
        REQUIRE(forced[b].weights.size() == targets[b].size() + 1);
        for (const auto& row : forced[b].weights) {
            REQUIRE(row.size() == sources[b].size() + 1);
            double whole = 0;
            for (const double each : row) whole += each;
            CHECK(whole == support::approx(1));
        }
        sum += forced[b].log_probability();
        const auto alone = force<double>(first, make_source(std::vector{&sources[b]}), std::vector{&targets[b]})[0];
        for (std::size_t i = 0; i <= targets[b].size(); ++i) {
            CHECK(alone.log_probabilities[i] == support::approx(forced[b].log_probabilities[i]));
            for (std::size_t t = 0; t <= sources[b].size(); ++t)
                CHECK(alone.weights[i][t] == support::approx(forced[b].weights[i][t]));
        }
    }
    CHECK(-sum == support::approx(first.loss(batch).data()[0]));
    CHECK(force<double>(blind, batch.source, pointers(targets))[0].weights.empty());
    CHECK_THROWS_WITH_AS(force<double>(first, batch.source, pointers({{4}})),
                         "force: 1 translation of 4 sentences; give one per sentence", error);
}

TEST_CASE("a link goes to the source word with the maximum weight; the end word counts as unaligned")
{
    // Two source words and the end word; three target words and the end word.
    const std::vector<std::vector<double>> weights{{0.6, 0.3, 0.1}, {0.1, 0.4, 0.5}, {0.4, 0.4, 0.2}, {0.9, 0.1, 0.0}};
    CHECK(links_of(weights) == std::vector<std::pair<int, int>>{{0, 0}, {0, 2}});
    CHECK(links_of(weights, {.end_word_means_unaligned = false}) ==
          std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {0, 2}});
    CHECK(links_of(std::vector<std::vector<double>>{{1.0}, {1.0}}).empty());  // an empty source
    CHECK(links_of(std::vector<std::vector<double>>{}).empty());
}
