// SPDX-License-Identifier: BSD-3-Clause
//
// The computations of course_09.py in heed: the Transformer of the step, whose file is included unchanged, in double.

#pragma GCC diagnostic ignored "-Wreturn-type"  // of the former `main`
#define main step_9
#include "../course/09_self_attention.cpp"
#undef main

#include "training.hpp"

int main()
{
    random_source random{9};
    const auto make_layer = [&] {
        const auto norm = nn::make_layer_norm<double>(D);
        return layer{norm, norm, papers::vaswani2017::make_multi_head<double>(random, {.model = D, .heads = 2}),
                     nn::make_feed_forward<double>(random, D, 4 * D, ops::relu)};
    };
    const auto E = nn::gaussian<double>(random, symbols, D, 1.0), W = nn::glorot<double>(random, D, symbols);
    transformer model{E, make_layer(), make_layer(), nn::make_layer_norm<double>(D), W};
    std::vector<batch> batches;
    while (batches.size() < 100) batches.emplace_back(random.next_stream());

    twins::training t("transformer");
    const auto loss = [](const auto& taped, const batch& some) {
        ops::expected_words<double> expected{some.expected.words, {}};
        for (const float weight : some.expected.weights) expected.weights.push_back(weight > 0 ? 1.0 / (N * B) : 0.0);
        return ops::cross_entropy(taped.scores(some.given), expected);
    };
    t.learn(model, batches, 0.003, loss, [&](const batch& some) {
        t.given("given", some.given);
        t.given("expected", some.expected.words);
    });

    std::vector<std::uint32_t> all{5, 2, 9, 0, 7, 3, equals};
    t.asks();
    t.given("given", row(all));
    while (all.size() < 2 * N + 1) {
        const auto scores = model.scores(row(all));
        const double* const p = &scores(all.size() - 1, 0, 0);
        all.push_back(static_cast<std::uint32_t>(std::max_element(p, p + symbols) - p));
    }
    t.result("written", {all.size()}, {all.begin(), all.end()});
    const auto x = model.second.before_heads(model.first(model.placed(row(all))));
    const auto memory = model.second.heads.on(x);
    for (std::size_t s = N; s < 2 * N; ++s) {
        const auto state = model.second.heads.start(memory);
        t.result("weights", model.second.heads.step(memory, ops::step_of(x, s), state, lengths{s + 1}).weights);
    }
    std::printf("{\n%s}\n", t.text().c_str());
}
