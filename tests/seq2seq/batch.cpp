// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/batch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include <support/sentences.hpp>

using namespace heed::seq2seq;

namespace {

/// Sentences of 1 to `longest` words.
std::vector<id_sentence> some(std::size_t count, std::size_t longest, unsigned state)
{
    std::vector<id_sentence> all(count);
    for (id_sentence& each : all) {
        state = state * 1664525u + 1013904223u;
        each.assign(1 + state / 65536u % longest, 7);
    }
    return all;
}

}  // namespace

TEST_CASE("batches by tokens contain each pair once, never exceed the budget, and use most of it")
{
    const std::vector<id_sentence> sources = some(2000, 30, 1), targets = some(2000, 20, 2);
    const std::size_t budget = 400;
    const auto batches = shuffled_batches(sources, targets, {0, budget}, 5);
    std::set<std::size_t> seen;
    std::size_t full = 0;
    for (const auto& batch : batches) {
        REQUIRE_FALSE(batch.empty());
        std::size_t longest = 0;
        for (const std::size_t i : batch) {
            longest = std::max({longest, sources[i].size() + 1, targets[i].size() + 1});
            CHECK(seen.insert(i).second);
        }
        CHECK(longest * batch.size() <= budget);
        full += longest * batch.size() > budget * 3 / 4;
    }
    CHECK(seen.size() == 2000);
    CHECK(full > batches.size() * 9 / 10);
    CHECK(batches == shuffled_batches(sources, targets, {0, budget}, 5));
    CHECK(batches == shuffled_batches(sources, targets, {99, budget}, 5));  // tokens replace pairs
    CHECK(batches != shuffled_batches(sources, targets, {0, budget}, 6));
}

TEST_CASE("batches by tokens save padding")
{
    const std::vector<id_sentence> sentences = some(4000, 50, 3);
    const auto padding = [&](const auto& batches) {
        std::size_t all = 0;
        for (const auto& batch : batches) {
            std::size_t longest = 0;
            for (const std::size_t i : batch) longest = std::max(longest, sentences[i].size());
            for (const std::size_t i : batch) all += longest - sentences[i].size();
        }
        return all;
    };
    std::vector<std::vector<std::size_t>> as_they_come;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
        if (i % 20 == 0) as_they_come.emplace_back();
        as_they_come.back().push_back(i);
    }
    CHECK(20 * padding(shuffled_batches(sentences, sentences, {0, 1000}, 1)) < padding(as_they_come));
}

TEST_CASE("a pair above the token budget is alone; a budget above all tokens gives one batch")
{
    const std::vector<id_sentence> sources{id_sentence(3, 5), id_sentence(100, 5), id_sentence(3, 5), id_sentence()},
        targets{id_sentence(3, 5), id_sentence(3, 5), id_sentence(200, 5), id_sentence(1, 5)};
    auto batches = shuffled_batches(sources, targets, {0, 8}, 1);
    for (auto& batch : batches) std::sort(batch.begin(), batch.end());
    std::sort(batches.begin(), batches.end());
    // 2 × 4 positions of pairs 0 and 3 use up the budget; 101 and 201 do not fit.
    CHECK(batches == std::vector<std::vector<std::size_t>>{{0, 3}, {1}, {2}});
    CHECK(shuffled_batches(sources, targets, {0, 1}, 1).size() == 4);
    CHECK(shuffled_batches(sources, targets, {0, 4 * 201}, 1).size() == 1);
    CHECK(shuffled_batches(sources, targets, {0, 4 * 201 - 1}, 1).size() == 2);
    CHECK(shuffled_batches({}, {}, {0, 10}, 1).empty());
}

TEST_CASE("batches by pairs ignore the token budget")
{
    const std::vector<id_sentence> sources = some(150, 9, 1), targets = some(150, 9, 2);
    const auto batches = shuffled_batches(sources, targets, 8, 3);
    CHECK(batches == shuffled_batches(sources, targets, {8, 0}, 3));
    CHECK(batches.size() == 19);
    for (const auto& batch : batches) CHECK(batch.size() <= 8);
    CHECK(shuffled_batches({}, {}, 8, 3).empty());
}

TEST_CASE("limits of 0 and sides of different sizes are rejected")
{
    const std::vector<id_sentence> two(2), three(3);
    CHECK_THROWS_WITH_AS(shuffled_batches(two, two, {0, 0}, 1), "a batch of 0 sentence pairs; allow at least one",
                         heed::error);
    CHECK_THROWS_WITH_AS(shuffled_batches(two, three, 8, 1), "sentence pairs: 2 sources, but 3 targets", heed::error);
    const std::vector<const id_sentence*> one_side{&two[0]}, other_side{&three[0], &three[1]};
    CHECK_THROWS_WITH_AS(
        make_training_batch<float>(one_side, other_side),
        "make_training_batch: the list of targets is [2] but must be [1] (one translation for each source)",
        heed::shape_error);
}

TEST_CASE("a batch has words, lengths, the shifted target and its weights")
{
    const auto batch = make_training_batch<float>(support::pointers({{4, 5}, {6}}), support::pointers({{7}, {8, 9}}));
    CHECK(batch.source.words.steps == 3);
    CHECK(batch.source.words(2, 0) == 3u);  // </s>
    CHECK(batch.source.words(1, 1) == 3u);
    CHECK(batch.source.real[0] == 3);
    CHECK(batch.source.real[1] == 2);
    CHECK(batch.previous(0, 0) == 2u);  // <s>
    CHECK(batch.previous(1, 1) == 8u);
    CHECK(batch.targets.words(0, 0) == 7u);
    CHECK(batch.targets.words(1, 0) == 3u);
    CHECK(batch.targets.weights == std::vector<float>{1, 1, 1, 1, 0, 1});
    CHECK(batch.target_words == 5);
}

TEST_CASE("an epoch has every pair once, in an order that depends only on the stream")
{
    std::vector<id_sentence> some;
    for (std::uint32_t i = 0; i < 1000; ++i) some.push_back(id_sentence(1 + i % 13, 4 + i % 5));
    const auto batches = shuffled_batches(some, some, 7, 5);
    std::set<std::size_t> seen;
    std::size_t padding = 0;
    for (const auto& batch : batches) {
        CHECK(batch.size() <= 7);
        std::size_t longest = 0;
        for (const std::size_t i : batch) longest = std::max(longest, some[i].size());
        for (const std::size_t i : batch) padding += longest - some[i].size();
        seen.insert(batch.begin(), batch.end());
    }
    CHECK(seen.size() == 1000);
    CHECK(padding < 700);  // without sorting about 4000
    CHECK(batches == shuffled_batches(some, some, 7, 5));
    CHECK(batches != shuffled_batches(some, some, 7, 6));
}
