// SPDX-License-Identifier: BSD-3-Clause
//
// The computations of course_10.py in heed: RNNsearch on the generated sentences of the step; its file is included
// unchanged. Without dropout, since PyTorch would draw other numbers, a few updates in double. Then the training of the
// step in float, and a beam search with the trained model in double.

#pragma GCC diagnostic ignored "-Wreturn-type"  // of the former `main`
#define main step_10
#include "../course/10_real_text.cpp"
#undef main

#include "training.hpp"

auto as_double(const auto& model)
{
    return transform_parameters(model, [](const std::string&, const auto& x) {
        array<double, rank_of<decltype(x)>> y(shape_of(x));
        std::copy(x.data(), x.data() + x.size(), y.data());
        return y;
    });
}

int main()
{
    lines english, german;
    make_up(3000, english, german);
    const lines test(english.end() - 100, english.end());
    english.erase(english.end() - 100, english.end());
    german.erase(german.end() - 100, german.end());
    language source(english, 80), target(german, 80);
    seq2seq::sizes n{.embedding = 48, .hidden = 48, .alignment = 48};
    n.source_vocabulary = source.words.size(), n.target_vocabulary = target.words.size();
    auto model = papers::bahdanau2015::translator<float>(10, n);

    const ids sources = source.encode(english), targets = target.encode(german), inputs = source.encode(test);
    std::vector<seq2seq::training_batch<double>> batches;
    for (const auto& which : seq2seq::shuffled_batches(sources, targets, 32, 1)) {
        batches.push_back(seq2seq::make_training_batch<double>(chosen(sources, which), chosen(targets, which)));
        if (batches.size() == 5) break;
    }
    twins::training t("updates"), u("beam");
    auto begun = as_double(model);
    const auto loss = [](const auto& taped, const auto& batch) {
        return ops::scale(taped.loss(batch), 1.0 / double(batch.target_words));
    };
    t.learn(begun, batches, 0.005, loss, [&](const auto& batch) { t.given(batch); });

    learn(model, sources, targets, 3, 0.005, 0.1);
    const auto learned = as_double(model);
    u.begins_with(learned);
    for (std::size_t i = 0; i < 4; ++i) {
        const auto asked = seq2seq::make_source(chosen(inputs, {i}));
        u.asks();
        u.given(asked);
        const seq2seq::beam_options how{.width = 5, .best = 5, .with_weights = true};
        const auto found = seq2seq::beam<double>(learned, asked, how)[0];
        for (std::size_t k = 0; k < found.size(); ++k) {  // best first
            const std::string number = std::to_string(i) + "." + std::to_string(k);
            u.result("words " + number, {found[k].words.size()}, {found[k].words.begin(), found[k].words.end()});
            u.result("score " + number, {}, {found[k].score});
            for (const std::vector<double>& weights : found[k].weights) {
                u.result("weights " + number, {weights.size()}, weights);  // of each word and of the end
            }
        }
    }
    std::printf("{\n%s,\n%s}\n", t.text().c_str(), u.text().c_str());
}
