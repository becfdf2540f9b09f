// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training.hpp"

/// The translator of step 7 with this attention, trained as in `learn` of the step, but in double. Include the step
/// first.
std::string learned(const std::string& name, const auto& attend, const std::vector<numbers::pair>& pairs,
                    std::size_t updates, const numbers::pair& asked)
{
    vocabulary english, german;
    std::vector<seq2seq::id_sentence> sources, targets;
    for (const auto& pair : pairs) sources.push_back(english(pair.english)), targets.push_back(german(pair.german));
    random_source random{7};
    const auto table = [&](const vocabulary& of) { return nn::glorot<double>(random, of.words.size(), E); };
    const auto cell = [&](std::size_t inputs) { return nn::make_gru<double>(random, inputs, H); };
    auto W_o = nn::glorot<double>(random, 3 * H, german.words.size());
    auto b_o = nn::zeros<double>(german.words.size());
    translator model{table(english), table(german), cell(E), cell(E), attend, cell(E + 2 * H), W_o, b_o};
    std::vector<seq2seq::training_batch<float>> batches;
    while (batches.size() < updates) {
        std::vector<const seq2seq::id_sentence*> source(32), target(32);
        for (std::uint64_t i = 0, stream = random.next_stream(); i < 32; ++i) {
            const std::size_t drawn = below(pairs.size(), stream, i);
            source[i] = &sources[drawn], target[i] = &targets[drawn];
        }
        batches.push_back(seq2seq::make_training_batch<float>(source, target, marks));
    }

    twins::training t(name);
    const auto loss = [](const auto& taped, const auto& given) {
        return ops::scale(taped.loss(given), 1.0 / double(given.target_words));
    };
    t.learn(model, batches, 0.005, loss, [&](const auto& given) { t.given(given); });

    const seq2seq::id_sentence ids = english(asked.english);
    const seq2seq::id_sentence* const only = &ids;
    t.asks();
    t.given(seq2seq::make_source({&only, 1}, marks));
    const auto [words, weights] = translate(model, asked, english, german);
    const auto written = german(words);
    t.result("words", {written.size()}, {written.begin(), written.end()});
    t.result("weights", {words.size(), asked.english.size()}, {weights.begin(), weights.end()});  // rounded to float
    return t.text();
}
