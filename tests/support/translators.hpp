// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>

/// The contracts of every translator, on a few short sentences of at most seven source words and eight target words.
namespace support {

/// Different lengths, a repeated word, and a sentence without words, where only the end token is left to attend to.
inline const std::vector<heed::seq2seq::id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
inline const std::vector<heed::seq2seq::id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};
inline const auto examples = heed::seq2seq::make_training_batch<double>(pointers(sources), pointers(targets));

/// Far from uniform, so that hypotheses branch and differ.
auto sharpened(auto model)
{
    heed::for_each_parameter(model, [](const std::string&, auto& x) {
        for (double& w : x) w *= 3;
    });
    return model;
}

/// The same batch with other words in the padding on both sides.
inline heed::seq2seq::training_batch<double> with_other_padding()
{
    auto other = examples;
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t t = other.source.real[b]; t < other.source.words.steps; ++t) other.source.words(t, b) = 2;
        for (std::size_t s = targets[b].size() + 1; s < other.previous.steps; ++s) {
            other.previous(s, b) = other.targets.words(s, b) = 6;
        }
    }
    return other;
}

std::vector<double> loss_and_gradient(const auto& model, const heed::seq2seq::training_batch<double>& batch)
{
    heed::ad::tape<double> on;
    const auto lifted = heed::ad::lift(on, model);
    const auto loss = lifted.loss(batch, 0.1);
    on.backward(loss);
    std::vector<double> numbers{loss.data()[0]};
    heed::for_each_parameter(lifted, [&](const std::string&, const auto& x) {
        const auto g = on.gradient(x);
        numbers.insert(numbers.end(), g.data, g.data + g.size());
    });
    return numbers;
}

/// Checks that step by step equals all at once, and that hypotheses keep every part of their state.
void check_searches(const auto& model)
{
    namespace seq2seq = heed::seq2seq;
    heed::ad::tape<double> on;
    const double loss = heed::ad::lift(on, model).loss(examples).data()[0];
    double led = 0;
    for (const auto& each : seq2seq::force<double>(model, examples.source, pointers(targets)))
        led -= each.log_probability();
    CHECK(led == doctest::Approx(loss).epsilon(1e-12));

    const auto found = seq2seq::beam<double>(model, examples.source, {.width = 4, .best = 3});
    for (std::size_t k = 0; k < 3; ++k) {
        std::vector<seq2seq::id_sentence> words;
        for (const auto& of_sentence : found) words.push_back(of_sentence.at(k).words);
        const auto again = seq2seq::force<double>(model, examples.source, pointers(words));
        for (std::size_t b = 0; b < 4; ++b) CHECK(again[b].log_probability() == approx(found[b][k].log_probability));
    }
}

/// Checks that padding changes nothing, every gradient, and searches.
void check_system(auto model)
{
    CHECK(loss_and_gradient(model, examples) == loss_and_gradient(model, with_other_padding()));
    const auto result =
        heed::ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == heed::parameter_count(model));
    check_searches(sharpened(model));
}

}  // namespace support
