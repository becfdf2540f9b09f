// SPDX-License-Identifier: BSD-3-Clause

// A step, many queries, training steps and searches, for bench/compiled/compiled.sh. Prints a line "name microseconds"
// for each, the median of several rounds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/entmax15.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>
#include <heed/score/scaled_dot.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/packed.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>

namespace {

using namespace heed;

void use(const auto& x) { asm volatile("" : : "g"(&x) : "memory"); }

/// CPU time, in microseconds.
double now()
{
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

void report(const char* name, const std::function<void()>& run)
{
    std::vector<double> took;
    run();
    for (int round = 0; round < 15; ++round) {
        const double begin = now();
        run();
        took.push_back(now() - begin);
    }
    std::nth_element(took.begin(), took.begin() + 7, took.end());
    std::printf("%s %.1f\n", name, took[7]);
}

template <class X>
X numbers(X x)
{
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 7 % 11) / 80 - 0.0625F;
    return x;
}

void additive_step()
{
    const attention attend{
        score::additive{numbers(zeros<float>(256, 256)), numbers(zeros<float>(512, 256)), numbers(zeros<float>(256))},
        normalize::softmax{}, combine::weighted_sum{}};
    const auto annotations = numbers(zeros<float>(16, 50, 512));
    const auto query = numbers(zeros<float>(16, 256));
    const auto memory = attend.on(annotations);
    const auto state = attend.start(memory);
    report("additive_step", [&] { use(attend.read(memory, query, state)); });

    ad::tape<float> tape;
    report("additive_training", [&] {
        tape.clear();
        const auto taped = ad::lift(tape, attend);
        const auto on_tape = taped.on(annotations);
        const auto context = taped.read(on_tape, query, taped.start(on_tape)).context;
        tape.backward(ops::dot(context, context));
        use(tape.gradient(taped.score.W));
    });
}

void tiles()
{
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto x = numbers(zeros<float>(4, 512, 64));
    const auto memory = attend.on(x, x);
    report("tiles_full", [&] { use(attend(memory, x)); });
    report("tiles_causal", [&] { use(attend(memory, x, causal{})); });
    const attention entmax{score::scaled_dot{}, normalize::entmax15{}, combine::weighted_sum{}};
    report("tiles_entmax15_window", [&] { use(entmax(entmax.on(x), x, causal{} & sliding_window{128})); });

    ad::tape<float> tape;
    report("tiles_training", [&] {
        tape.clear();
        const auto on_tape = tape.parameter(x);
        const auto contexts = attend(attend.on(on_tape, on_tape), on_tape);
        tape.backward(ops::dot(contexts, contexts));
        use(tape.gradient(on_tape));
    });
}

void rnnsearch()
{
    const std::size_t vocabulary = 2000, batch = 16, length = 12;
    std::vector<seq2seq::id_sentence> sentences(batch);
    for (std::size_t i = 0; i < batch; ++i)
        for (std::size_t j = 0; j < length; ++j)
            sentences[i].push_back(static_cast<std::uint32_t>(4 + (i * 131 + j * 37) % (vocabulary - 4)));
    std::vector<const seq2seq::id_sentence*> lines;
    for (const auto& sentence : sentences) lines.push_back(&sentence);
    const auto pairs = seq2seq::make_training_batch<float>(lines, lines);
    auto model = seq2seq::make_translator<float>(1, seq2seq::sizes{vocabulary, vocabulary, 128, 128, 128},
                                                 seq2seq::attentions::additive_factory{});
    train::adam<float> adam;
    ad::tape<float> tape;
    report("rnnsearch_training", [&] {
        tape.clear();
        const auto taped = ad::lift(tape, model);
        tape.backward(taped.loss(pairs));
        adam.step(model, taped, tape);
    });

    const auto source = seq2seq::make_source(lines);
    for (const auto numbers : {seq2seq::weight_numbers::full, seq2seq::weight_numbers::int8}) {
        const seq2seq::packed<float, decltype(model)> fast(model, numbers);
        report(numbers == seq2seq::weight_numbers::int8 ? "rnnsearch_beam_int8" : "rnnsearch_beam",
               [&] { use(seq2seq::beam<float>(fast, source)); });
    }
}

}  // namespace

int main()
{
    additive_step();
    tiles();
    rnnsearch();
}
