// SPDX-License-Identifier: BSD-3-Clause
#include <products/interpreter/scope.hpp>

namespace interpreter {

namespace {

/// Sentence b of a program, as it is at a step if the memory grows.
sentence sentence_of(const program& run, std::size_t b, std::size_t at_step)
{
    const std::size_t T = run.annotations.shape[1], S = run.states.shape[1];
    const auto row = [](const tensor& x, std::size_t i, std::size_t j) {
        return slice(x.numbers, (i * x.shape[1] + j) * x.shape[2], x.shape[2]);
    };
    sentence one;
    const auto length_at = [&](std::size_t s) {
        return run.sees.memory ? std::min(run.lengths[b], run.sees.memory(b, s)) : run.lengths[b];
    };
    one.length = length_at(at_step);
    if (one.length > T) throw std::logic_error("a sentence is longer than its annotations");
    for (std::size_t j = 0; j < one.length; ++j) one.annotations.push_back(row(run.annotations, b, j));
    for (std::size_t j = 0; j < one.length && !run.values.shape.empty(); ++j)
        one.given_values.push_back(row(run.values, b, j));
    for (std::size_t s = 0; s < S; ++s) {
        one.states.push_back(row(run.states, b, s));
        if (!run.words.numbers.empty()) one.words.push_back(row(run.words, b, s));
        view now;
        const std::size_t length = length_at(s);
        now.length = run.sees.length ? std::min(length, run.sees.length(b, s)) : length;
        for (std::size_t j = 0; j < length; ++j) {
            const double bias = run.sees.bias ? run.sees.bias(b, s, j) : 0;
            now.sees.push_back(j < now.length && bias != -HUGE_VAL && (!run.sees.visible || run.sees.visible(b, s, j)));
            now.bias.push_back(now.sees.back() ? bias : 0);
        }
        one.visible.push_back(now);
    }
    return one;
}

}  // namespace

std::vector<vector> interpret(const program& run)
{
    const std::size_t B = run.annotations.shape[0], T = run.annotations.shape[1], S = run.states.shape[1];
    std::vector<vector> all(2 * S);
    for (std::size_t b = 0; b < B; ++b) {
        sentence in;
        past before;
        std::vector<matrix> e;
        for (std::size_t s = 0; s < S; ++s) {
            if (s == 0 || run.sees.memory) in = sentence_of(run, b, s);
            const scope score{run, in, before, s, "score", run.score, "score."};
            e.push_back(scores(score));
            const matrix alpha = weights({run, in, before, s, "normalize", run.normalizer, "normalize."}, e);
            const vector c = context({run, in, before, s, "combine", run.combiner, "combine."}, alpha);
            all[2 * s] = joined(all[2 * s], c);
            vector& to = all[2 * s + 1];
            for (const vector& of_position : alpha) to.insert(to.end(), of_position.begin(), of_position.end());
            if (in.length < T) to.resize(to.size() + (T - in.length) * groups(score));
            before.weights.push_back(alpha);
            before.contexts.push_back(c);
        }
    }
    return all;
}

std::vector<std::string> entries()
{
    std::vector<std::string> all;
    for (const std::string& name : score_names()) all.push_back("score " + name);
    for (const std::string& name : normalizer_names()) all.push_back("normalize " + name);
    for (const std::string& name : combiner_names()) all.push_back("combine " + name);
    return all;
}

}  // namespace interpreter
