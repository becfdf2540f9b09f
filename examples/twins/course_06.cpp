// SPDX-License-Identifier: BSD-3-Clause
//
// The computations of course_06.py in heed. The model and the words are those of the step: its file is included
// unchanged, except that its `main` is renamed, and therefore requires a `return`.

#pragma GCC diagnostic ignored "-Wreturn-type"
#define main step_6
#include "../course/06_copy_and_reverse.cpp"
#undef main

#include "training.hpp"

namespace {

std::string learned(bool backwards)
{
    random_source random{6};
    const auto table = [&](std::size_t rows) { return nn::gaussian<double>(random, rows, D, 0.3); };
    auto W = nn::glorot<double>(random, D, alphabet);
    writer model{table(alphabet), table(longest), table(longest), table(longest), W, nn::zeros<double>(alphabet)};
    std::vector<batch> batches;
    while (batches.size() < 100) batches.push_back(make_batch(draw_words(random, 32), backwards));

    twins::training t(backwards ? "reverse" : "copy");
    const auto loss = [](const auto& taped, const batch& words) {
        return ops::scale(ops::cross_entropy(taped.scores(words), words.expected), 1 / words.written);
    };
    const auto write = [&](const batch& words) {
        t.given("letters", words.letters);
        t.given("lengths", words.real);
        t.given("expected", words.expected.words);
    };
    t.learn(model, batches, 0.01, loss, write);

    const batch one = make_batch({"lemon", "attention"}, backwards);
    t.asks();
    write(one);
    t.result("scores", model.scores(one));
    t.result("weights", model.attend.weights_of(model.memory(one), model.queries(one)));
    return t.text();
}

}  // namespace

int main() { std::printf("{\n%s,\n%s}\n", learned(false).c_str(), learned(true).c_str()); }
