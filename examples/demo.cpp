// SPDX-License-Identifier: BSD-3-Clause
//
// demo: learn to translate English number words to German, and show where the translator looks.
//
// The text comes from a small grammar (number_words.hpp) that also knows which word translates which. The translator is
// RNNsearch (Bahdanau et al. 2015) with the temporal attention of Sankaran et al. 2016: it sees sentence pairs and
// knows nothing of grammar, numbers or alignment. The program prints its translations of numbers that it has never
// seen, and whether it attends to the right words. Everything it needs is in this file and in heed's headers.
//
// test, optimized: --quick

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/ad/ad.hpp>
#include <heed/core/parallel.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/systems/bahdanau2015.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/stop_signals.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/text/vocabulary.hpp>
#include <heed_kit/view/shades.hpp>
#include <heed_kit/view/svg.hpp>

#include "../tools/support/progress.hpp"
#include "support/number_words.hpp"

namespace {

using sentence = std::vector<std::string>;
using id_sentences = std::vector<heed::seq2seq::id_sentence>;

struct settings {
    std::size_t epochs = 3, train = 16000, sentences = 3;
    std::uint64_t seed = 4;
    double enough = 0.99;  // exact matches
    std::string svg = "alignment.svg";
};

/// Both sides of some pairs, as the ids of their words.
struct encoded {
    id_sentences english, german;

    encoded(const std::vector<numbers::pair>& pairs, const heed::text::vocabulary& source,
            const heed::text::vocabulary& target)
    {
        for (const auto& each : pairs) {
            english.push_back(source.encode(each.english));
            german.push_back(target.encode(each.german));
        }
    }
};

heed::text::vocabulary words_of(const std::vector<numbers::pair>& pairs, sentence numbers::pair::*side)
{
    std::vector<sentence> text;
    for (const auto& each : pairs) text.push_back(each.*side);
    return heed::text::vocabulary::build(text);
}

std::vector<const heed::seq2seq::id_sentence*> chosen(const id_sentences& all, const std::vector<std::size_t>& which)
{
    std::vector<const heed::seq2seq::id_sentence*> some;
    for (const std::size_t i : which) some.push_back(&all[i]);
    return some;
}

/// Trains with Adam, with a learning rate that falls to 0. Returns false if it was interrupted.
bool train(auto& model, const encoded& pairs, const settings& how)
{
    constexpr std::size_t batch_size = 32;
    constexpr double rate = 3e-3, dropout = 0.4, clip = 1.0;
    const heed::train::stop_signals stop;
    heed::random_source random{how.seed + 1};
    heed::train::adam<float> adam({.rate = rate});
    heed::ad::tape<float> tape;
    program::live_line line;
    const auto start = program::clock::now();
    const std::size_t batches = (pairs.english.size() + batch_size - 1) / batch_size, updates = how.epochs * batches;
    for (std::size_t epoch = 0, update = 0; epoch < how.epochs; ++epoch) {
        double nats = 0, words = 0;
        for (const auto& which :
             heed::seq2seq::shuffled_batches(pairs.english, pairs.german, batch_size, random.next_stream())) {
            if (stop) return false;
            const auto batch =
                heed::seq2seq::make_training_batch<float>(chosen(pairs.english, which), chosen(pairs.german, which));
            adam.settings.rate = rate * (1 - static_cast<double>(update) / static_cast<double>(updates));
            tape.clear();
            const auto lifted = heed::ad::lift(tape, model);
            const auto loss = lifted.loss(batch, 0.0f, heed::nn::dropout{dropout, &random});
            tape.backward(heed::ops::scale(loss, 1.0 / static_cast<double>(batch.target_words)));
            adam.step(model, lifted, tape, clip);
            nats += static_cast<double>(*loss.data());
            words += static_cast<double>(batch.target_words);
            ++update;
            const double seconds = program::seconds_since(start);
            line.show(fmt::format(
                "epoch {}/{}  {:3.0f} %  loss {:.3f}  left {}", epoch + 1, how.epochs,
                100.0 * static_cast<double>(update) / static_cast<double>(updates), nats / words,
                program::duration_text(seconds * static_cast<double>(updates - update) / static_cast<double>(update))));
        }
        line.clear();
        fmt::print("epoch {}  loss {:.4f}  {}\n", epoch + 1, nats / words,
                   program::duration_text(program::seconds_since(start)));
        std::fflush(stdout);
    }
    return true;
}

/// One translated number: the data for the pictures and the alignment error.
struct translated {
    sentence source, words;
    std::vector<float> weights;  // [words,source], without the end words
    heed::metrics::links gold;   // of the translation that was given
    bool exact = false;

    heed::view::alignment picture() const { return {weights, source, words, gold, {}}; }
};

std::vector<translated> translate(const auto& model, const std::vector<numbers::pair>& pairs,
                                  const heed::text::vocabulary& source, const heed::text::vocabulary& target)
{
    std::vector<const heed::seq2seq::id_sentence*> all;
    const encoded ids(pairs, source, target);
    for (const auto& each : ids.english) all.push_back(&each);
    const auto found = heed::seq2seq::greedy<float>(model, heed::seq2seq::make_source(all), {.with_weights = true});
    std::vector<translated> results;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        translated result{pairs[i].english, target.decode(found[i].words), {}, {}, false};
        for (std::size_t j = 0; j < result.words.size(); ++j) {
            const auto& row = found[i].weights[j];
            result.weights.insert(result.weights.end(), row.begin(), row.end() - 1);  // the last one is </s>
        }
        result.exact = result.words == pairs[i].german;
        if (result.exact) result.gold = pairs[i].links;
        results.push_back(std::move(result));
    }
    return results;
}

/// Prints one translation of each of three lengths, and draws them.
void show(const std::vector<translated>& tests, const settings& how)
{
    std::vector<heed::view::alignment> pictures;
    for (const std::size_t words : {7u, 9u, 5u}) {
        const auto each = std::find_if(tests.begin(), tests.end(), [&](const translated& test) {
            return test.source.size() == words && !test.weights.empty();
        });
        if (pictures.size() == how.sentences || each == tests.end()) continue;
        fmt::print("{}\n  → {}{}\n\n{}\n", heed::text::join(each->source), heed::text::join(each->words),
                   each->exact ? "" : "   (wrong)", heed::view::shades(each->picture()));
        pictures.push_back(each->picture());
    }
    if (pictures.empty()) return;
    heed::io::write_file(how.svg, heed::view::svg(pictures));
    fmt::print("The same as a picture: {}\n", std::filesystem::absolute(how.svg).string());
}

int run(const settings& how)
{
    const auto start = program::clock::now();
    const numbers::split data = numbers::sample(how.seed, how.train, 0, 1000);
    const auto source = words_of(data.train, &numbers::pair::english);
    const auto target = words_of(data.train, &numbers::pair::german);
    heed::seq2seq::sizes n{.embedding = 48, .hidden = 48, .alignment = 48};
    n.source_vocabulary = source.size();
    n.target_vocabulary = target.size();
    // Another attention: seq2seq::attentions::additive_factory{}, per_dimension_factory{}, or one of your own.
    auto model =
        heed::papers::bahdanau2015::translator<float>(how.seed, n, heed::seq2seq::attentions::temporal_factory{});
    fmt::print("English → German number words: {} training pairs, {} held out.\n"
               "RNNsearch with temporal attention, {} parameters, {}.\n\n",
               data.train.size(), data.test.size(), heed::parameter_count(model),
               heed::counted(heed::threads(), "thread"));
    std::fflush(stdout);

    if (!train(model, encoded(data.train, source, target), how)) {
        fmt::print("stopped.\n");
        return heed::train::stop_signals::status();
    }
    fmt::print("\nTrained in {}. Now numbers that it has never seen:\n\n",
               program::duration_text(program::seconds_since(start)));
    const std::vector<translated> tests = translate(model, data.test, source, target);
    show(tests, how);

    std::size_t exact = 0;
    std::vector<heed::metrics::links> proposed;
    std::vector<heed::metrics::gold_links> gold;
    for (std::size_t i = 0; i < tests.size(); ++i) {
        exact += tests[i].exact ? 1 : 0;
        if (!tests[i].exact || tests[i].weights.empty()) continue;
        // A word with no weight above one half counts as unaligned: "und".
        proposed.push_back(heed::metrics::strongest_links(tests[i].weights, tests[i].source.size(), 0.5f));
        gold.push_back({data.test[i].links, {}});
    }
    const double accuracy = static_cast<double>(exact) / static_cast<double>(tests.size());
    fmt::print("\nexact matches on {} unseen numbers: {:.1f} %\n", tests.size(), 100 * accuracy);
    if (!proposed.empty()) {
        const auto score = heed::metrics::alignment_error(proposed, gold);
        fmt::print(
            "alignment error rate against the grammar's own alignment: {:.3f} (precision {:.3f}, recall {:.3f})\n",
            score.aer(), score.precision(), score.recall());
    }
    if (accuracy < how.enough) {
        fmt::print("that is less than the {:.0f} % that this demonstration should reach\n", 100 * how.enough);
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Learn to translate English number words to German in less than a minute, and show where the "
                 "translator looks."};
    app.footer("◆ in a picture marks a link of the grammar's own alignment. German says four-and-twenty, so the "
               "diagonal breaks;\n"
               "\"und\" translates nothing.");
    settings how;
    std::size_t threads = 0;
    bool quick = false;
    app.add_option("--epochs", how.epochs, "passes over the text")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--train", how.train, "number of training pairs")
        ->check(CLI::Range(std::size_t{1000}, std::size_t{500000}))
        ->capture_default_str();
    app.add_option("--seed", how.seed, "seed of the numbers and the weights")->capture_default_str();
    app.add_option("--threads", threads, "0: as many as the machine has")
        ->check(CLI::Range(std::size_t{0}, std::size_t{256}))
        ->capture_default_str();
    app.add_option("--sentences", how.sentences, "number of sentences to show, of different lengths")
        ->check(CLI::Range(std::size_t{1}, std::size_t{3}))
        ->capture_default_str();
    app.add_option("--svg", how.svg, "file for the picture of the alignments")->capture_default_str();
    app.add_flag("--quick", quick, "a smaller run of a few seconds, for tests");
    CLI11_PARSE(app, argc, argv);
    try {
        heed::set_threads(threads);
        if (quick) {
            how.epochs = 3;
            how.train = 6000;
            how.enough = 0.5;
        }
        return run(how);
    } catch (const std::exception& problem) {
        fmt::print(stderr, "demo: {}\n", problem.what());
        return 1;
    }
}
