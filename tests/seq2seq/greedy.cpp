// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/greedy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>

// Special words and canceled sentences: tests/seq2seq/beam.cpp, where the beam has the same guarantees.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4, 7, 8}, {9}};
const sizes small{12, 11, 6, 5, 4};

}  // namespace

TEST_CASE("greedy decoding takes the most probable word at every step")
{
    // With its own output forced, the loss of each word must be the minimum over all words.
    const auto model = make_translator<double>(8, small, attentions::additive_factory{});
    const auto translated = greedy<double>(model, make_source(pointers({sources[0]})), {.marks = true});
    const id_sentence& words = translated[0].words;
    REQUIRE(!words.empty());
    for (std::size_t i = 0; i < std::min<std::size_t>(words.size(), 3); ++i) {
        double best = INFINITY;
        std::uint32_t best_word = 0;
        for (std::uint32_t word = 0; word < small.target_vocabulary; ++word) {
            id_sentence prefix(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i));
            prefix.push_back(word);
            auto batch = make_training_batch<double>(pointers({sources[0]}), pointers({prefix}));
            for (std::size_t s = 0; s < batch.targets.weights.size(); ++s)
                batch.targets.weights[s] = s == i ? 1.0 : 0.0;
            const double loss = model.loss(batch).data()[0];
            if (loss < best) {
                best = loss;
                best_word = word;
            }
        }
        CHECK(best_word == words[i]);
    }
}

TEST_CASE("a sentence is translated alike alone and in a batch, and attends only to its own words")
{
    const auto model = make_translator<float>(8, small, attentions::per_dimension_factory{});
    const auto together = greedy<float>(model, make_source(pointers(sources)), {.with_weights = true});
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto alone = greedy<float>(model, make_source(pointers({sources[i]})), {.with_weights = true});
        // The two may stop at different maximum lengths; up to there they are equal.
        const std::size_t words = std::min(alone[0].words.size(), together[i].words.size());
        CHECK(words > 0);
        for (std::size_t j = 0; j < words; ++j) CHECK(alone[0].words[j] == together[i].words[j]);
        for (std::size_t j = 0; j < words; ++j) {
            CHECK(together[i].weights[j].size() == sources[i].size() + 1);
            double sum = 0;
            for (std::size_t t = 0; t <= sources[i].size(); ++t) {
                sum += static_cast<double>(together[i].weights[j][t]);
                CHECK(together[i].weights[j][t] == doctest::Approx(alone[0].weights[j][t]).epsilon(1e-4));
            }
            CHECK(sum == support::approx(1.0F));
        }
    }
}
