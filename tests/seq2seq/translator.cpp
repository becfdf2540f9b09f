// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/translator.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/adam.hpp>
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

TEST_CASE("the contents of the padding change no loss and no gradient, bit for bit")
{
    const auto model = make_translator<float>(1, small, attentions::temporal_factory{});
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
    // The embedding rows of the padding words may get only zeros, which == checks.
    CHECK(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
        magnitude += std::abs(static_cast<double>(before[i]));
        if (before[i] != after[i]) FAIL_CHECK("gradient " << i << ": " << before[i] << " and " << after[i]);
    }
    CHECK(magnitude > 0.1);
}

TEST_CASE("the loss on the tape equals the loss without a tape")
{
    const auto model = make_translator<double>(2, small, attentions::additive_with_word_factory{});
    const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));
    ad::tape<double> on;
    const auto taped = ad::lift(on, model).loss(batch);
    CHECK(taped.data()[0] == doctest::Approx(model.loss(batch).data()[0]).epsilon(1e-12));
}

TEST_CASE("training: the loss falls, two runs agree bit for bit, and memory does not grow")
{
    const auto run = [](std::size_t threads_used) {
        set_threads(threads_used);
        auto model = make_translator<float>(4, small, attentions::per_dimension_factory{});
        const auto batch = make_training_batch<float>(pointers(sources), pointers(targets));
        ad::tape<float> on;
        train::adam<float> optimizer({0.02});
        random_source random{5, 0};
        double first = 0, last = 0;
        std::size_t capacity = 0;
        for (int i = 0; i < 60; ++i) {
            on.clear();
            const auto lifted = ad::lift(on, model);
            const auto loss = lifted.loss(batch, 0.0f, nn::dropout{0.05, &random});
            on.backward(loss);
            optimizer.step(model, lifted, on, 1.0);
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

TEST_CASE("invalid input is rejected with names and numbers")
{
    const auto model = make_translator<float>(1, small, attentions::additive_factory{});
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
