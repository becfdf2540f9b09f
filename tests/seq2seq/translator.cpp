// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4, 7, 8}, {9}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5, 5, 6}, {8, 7}};
const sizes small{12, 11, 6, 5, 4};

template <class Model>
std::vector<float> all_numbers(const Model& model)
{
    std::vector<float> numbers;
    for_each_parameter(model, [&](const std::string&, const auto& x) {
        const auto v = view_of(x);
        numbers.insert(numbers.end(), v.data, v.data + v.size());
    });
    return numbers;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

template <class Model>
std::vector<float> gradients(const Model& model, const training_batch<float>& batch)
{
    ad::tape<float> on;
    const auto lifted = ad::lift(on, model);
    on.backward(lifted.loss(batch));
    std::vector<float> numbers;
    for_each_parameter(lifted, [&](const std::string&, const auto& x) {
        const auto g = on.gradient(x);
        numbers.insert(numbers.end(), g.data, g.data + g.size());
    });
    return numbers;
}

}  // namespace

TEST_CASE("a batch: words, lengths, the shifted target and its weights")
{
    const auto batch = make_training_batch<float>(pointers({{4, 5}, {6}}), pointers({{7}, {8, 9}}));
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

TEST_CASE("an epoch: every pair once, the same for the same stream, different for another")
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
    CHECK(padding < 700);  // unsorted it is about 4000
    CHECK(batches == shuffled_batches(some, some, 7, 5));
    CHECK(batches != shuffled_batches(some, some, 7, 6));
}

TEST_CASE("the contents of the padding change no loss and no gradient, bit for bit")
{
    const auto model = make_translator<float>(1, small, attentions::temporal<float>{});
    auto batch = make_training_batch<float>(pointers(sources), pointers(targets));
    const auto before = gradients(model, batch);
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t t = batch.source.real[b]; t < batch.source.words.steps; ++t) batch.source.words(t, b) = 11;
        for (std::size_t s = targets[b].size() + 1; s < batch.previous.steps; ++s) {
            batch.previous(s, b) = 10;
            batch.targets.words(s, b) = 9;
        }
    }
    const auto after = gradients(model, batch);
    double magnitude = 0;
    // The embedding rows of the words in the padding may only get zeros, which == checks.
    CHECK(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        magnitude += std::abs(static_cast<double>(before[i]));
        if (before[i] != after[i]) FAIL_CHECK("gradient " << i << ": " << before[i] << " and " << after[i]);
    }
    CHECK(magnitude > 0.1);
}

TEST_CASE("a sentence is translated alike alone and in a batch, and its attention is a distribution over its own words")
{
    const auto model = make_translator<float>(8, small, attentions::per_dimension<float>{});
    const auto together = greedy<float>(model, make_source(pointers(sources)), {.with_weights = true});
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto alone = greedy<float>(model, make_source(pointers({sources[i]})), {.with_weights = true});
        // The two may stop at different maximum lengths; up to there they agree.
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

TEST_CASE("greedy decoding takes the most probable word at every step")
{
    // With teacher forcing on its own output, each word's loss must be the least of all words there.
    const auto model = make_translator<double>(8, small, attentions::additive<double>{});
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

TEST_CASE("the loss on the tape is the loss without one")
{
    const auto model = make_translator<double>(2, small, attentions::additive_with_word<double>{});
    const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));
    ad::tape<double> on;
    const auto taped = ad::lift(on, model).loss(batch);
    CHECK(taped.data()[0] == doctest::Approx(model.loss(batch).data()[0]).epsilon(1e-12));
}

TEST_CASE("training: the loss falls, two runs agree bit for bit, and memory does not grow")
{
    const auto run = [](std::size_t threads_used) {
        set_threads(threads_used);
        auto model = make_translator<float>(4, small, attentions::per_dimension<float>{});
        const auto batch = make_training_batch<float>(pointers(sources), pointers(targets));
        ad::tape<float> on;
        train::adam<float> optimiser({0.02});
        random_source random{5, 0};
        double first = 0, last = 0;
        std::size_t capacity = 0;
        for (int i = 0; i < 60; ++i) {
            on.clear();
            const auto lifted = ad::lift(on, model);
            const auto loss = lifted.loss(batch, 0.0f, nn::dropout{0.05, &random});
            on.backward(loss);
            optimiser.step(model, lifted, on, 1.0);
            last = static_cast<double>(loss.data()[0]);
            if (i == 0) first = last;
            if (i == 3) capacity = on.memory().capacity();
        }
        CHECK(last < first / 4);
        CHECK(on.memory().capacity() == capacity);
        set_threads(1);
        return all_numbers(model);
    };
    CHECK(same_bits(run(1), run(1)));
    CHECK(same_bits(run(2), run(2)));
}

TEST_CASE("wrong input is refused with names and numbers")
{
    const auto model = make_translator<float>(1, small, attentions::additive<float>{});
    auto batch = make_training_batch<float>(pointers({{4, 99}}), pointers({{4}}));
    CHECK_THROWS_WITH_AS(model.loss(batch), "lookup: word 99 of a table of 12 embeddings; ids count from 0", error);
    batch = make_training_batch<float>(pointers({{4}}), pointers({{4}}));
    batch.targets.words(0, 0) = 50;
    CHECK_THROWS_WITH_AS(model.loss(batch),
                         "cross_entropy: target word 50 of a vocabulary of 11 words; ids count from 0", error);
    batch = make_training_batch<float>(pointers({{4}}), pointers({{4}}));
    batch.source.words.ids.push_back(4);
    CHECK_THROWS_AS(model.loss(batch), shape_error);
    CHECK_THROWS_AS(model.open(batch.source), shape_error);
    CHECK_THROWS_AS(candidate_lists(1, 1, std::vector<std::vector<std::uint32_t>>{}).of(batch.source, 9), shape_error);
    batch = make_training_batch<float>(pointers({{4}}), pointers({{4}}));
    batch.previous.ids.pop_back();
    CHECK_THROWS_AS(model.loss(batch), shape_error);
    batch = make_training_batch<float>(pointers({{4}}), pointers({{4}}));
    batch.targets.words.ids.push_back(4);
    CHECK_THROWS_AS(model.loss(batch), shape_error);
    const std::vector<std::uint32_t> all{0, 1, 2, 3, 4};
    CHECK_THROWS_AS(model.loss(batch, 0.0F, {}, &all), shape_error);
}

TEST_CASE("a zero start has no parameters, a trained one has the state's size")
{
    CHECK(parameter_count(nn::zero_start{5}) == 0);
    CHECK(parameter_count(nn::trained_start{nn::zeros<float>(5)}) == 5);
    const auto beside = filled<double, 1>({1}, 0.0);
    const auto zero = nn::zero_start{5}.state(2, beside);
    CHECK(shape_of(zero) == shape_of_rank<2>{2, 5});
    for (const double x : zero) CHECK(x == 0);
}
