// SPDX-License-Identifier: BSD-3-Clause
//
// demo: learn to translate English number words to German, and show where the translator looks.
//
// The text comes from a small grammar (number_words.hpp) that also knows which word translates which. The translator is
// RNNsearch: it sees sentence pairs and knows nothing of grammar, numbers or alignment. The program prints its
// translations of numbers that it has never seen, and whether it attends to the right words.
//
// test, optimised: --quick

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed/metrics/alignment_error.hpp>
#include <heed/view/shades.hpp>
#include <heed/view/svg.hpp>

#include "support/number_words.hpp"
#include "translate/interrupt.hpp"
#include "translate/progress.hpp"
#include "translate/threads.hpp"
#include "translate/training.hpp"

using namespace translation;

namespace {

/// The words of one side, and the sentences as ids.
std::vector<sentence> english(const std::vector<numbers::pair>& pairs)
{
    std::vector<sentence> text;
    for (const auto& each : pairs) text.push_back(each.english);
    return text;
}

std::vector<sentence> german(const std::vector<numbers::pair>& pairs)
{
    std::vector<sentence> text;
    for (const auto& each : pairs) text.push_back(each.german);
    return text;
}

/// One translated sentence: the data for the pictures and the alignment error.
struct translated {
    sentence source, words;
    std::vector<float> weights;  // [words,source], without the end words
    heed::metrics::links gold;   // of the translation that was given
    bool exact = false;

    heed::view::alignment picture() const { return {weights, source, words, gold, {}}; }
};

std::vector<translated> translate(const translator_file& model, const std::vector<numbers::pair>& pairs)
{
    const auto all = translate_all(*model.system, model.source.encode(english(pairs)), 128, true);
    std::vector<translated> results;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        translated result{pairs[i].english, model.target.words(all[i].words), {}, {}, false};
        for (std::size_t j = 0; j < result.words.size() && j < all[i].weights.size(); ++j) {
            const auto& row = all[i].weights[j];
            result.weights.insert(result.weights.end(), row.begin(), row.end() - 1);  // the last one is </s>
        }
        result.exact = result.words == pairs[i].german;
        if (result.exact) result.gold = pairs[i].links;
        results.push_back(std::move(result));
    }
    return results;
}

int run(options how, std::size_t train_size, std::size_t sentences, const std::string& svg_path, double enough)
{
    const clock::time_point start = clock::now();
    const numbers::split data = numbers::sample(how.seed, train_size, 500, 1000);
    translator_file model;
    model.how = how;
    model.source.vocabulary = heed::text::vocabulary::build(english(data.train));
    model.target.vocabulary = heed::text::vocabulary::build(german(data.train));
    model.system = make_system(how, model.source.vocabulary.size(), model.target.vocabulary.size());
    fmt::print("English → German number words: {} training pairs, {} held out.\n"
               "RNNsearch with {} attention, {} parameters, {}.\n\n",
               data.train.size(), data.test.size(), how.attention, model.system->parameter_count(),
               heed::counted(heed::threads(), "thread"));
    std::fflush(stdout);

    training_pairs training({model.source.encode(english(data.train)), model.target.encode(german(data.train))});
    const examples validation{model.source.encode(english(data.valid)), model.target.encode(german(data.valid))};
    stop_politely();
    const outcome result = translation::train(model, training, validation, german(data.valid), {});
    if (result.stopped) {
        fmt::print("stopped.\n");
        return 130;
    }
    fmt::print("\nTrained in {}. Now numbers that it has never seen:\n\n", duration_text(seconds_since(start)));

    const std::vector<translated> tests = translate(model, data.test);
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

    // One of each of three lengths.
    std::vector<const translated*> shown;
    for (const std::size_t words : {7u, 9u, 5u}) {
        if (shown.size() == sentences) break;
        for (const translated& each : tests) {
            if (each.source.size() != words || each.weights.empty()) continue;
            shown.push_back(&each);
            break;
        }
    }
    std::vector<heed::view::alignment> pictures;
    for (const translated* each : shown) {
        fmt::print("{}\n  → {}{}\n\n{}\n", heed::text::join(each->source), heed::text::join(each->words),
                   each->exact ? "" : "   (wrong)", heed::view::shades(each->picture()));
        pictures.push_back(each->picture());
    }
    if (!pictures.empty()) {
        heed::io::write_file(svg_path, heed::view::svg(pictures));
        fmt::print("The same as a picture: {}\n", std::filesystem::absolute(svg_path).string());
    }

    const double accuracy = static_cast<double>(exact) / static_cast<double>(tests.size());
    fmt::print("\nexact matches on {} unseen numbers: {:.1f} %\n", tests.size(), 100 * accuracy);
    if (!proposed.empty()) {
        const auto score = heed::metrics::alignment_error(proposed, gold);
        fmt::print(
            "alignment error rate against the grammar's own alignment: {:.3f} (precision {:.3f}, recall {:.3f})\n",
            score.aer(), score.precision(), score.recall());
    }
    if (accuracy < enough) {
        fmt::print("that is less than the {:.0f} % that this demonstration should reach\n", 100 * enough);
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Learn to translate English number words to German in about a minute, and show where the translator looks."};
    app.footer("◆ in a picture marks a link of the grammar's own alignment. German says four-and-twenty, so the "
               "diagonal breaks;\n"
               "\"und\" translates nothing.");
    options how;
    how.attention = "temporal";
    how.embedding = how.alignment = 64;
    how.hidden = 96;
    how.batch = 64;
    how.epochs = 6;
    how.dropout = 0.3;
    how.learning_rate = 3e-3;
    std::size_t threads = 0, train_size = 24000, sentences = 3;
    bool quick = false;
    std::string svg_path = "alignment.svg";
    app.add_option("--attention", how.attention, "which attention")
        ->check(CLI::IsMember(choices_of("attention", systems())))
        ->capture_default_str();
    app.add_option("--epochs", how.epochs, "passes over the text")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--train", train_size, "number of training pairs")
        ->check(CLI::Range(std::size_t{1000}, std::size_t{500000}))
        ->capture_default_str();
    app.add_option("--seed", how.seed, "seed of the numbers and the weights")->capture_default_str();
    app.add_option("--threads", threads, "0: as many as the machine has")
        ->check(CLI::Range(std::size_t{0}, std::size_t{256}))
        ->capture_default_str();
    app.add_option("--sentences", sentences, "number of sentences to show, of different lengths")
        ->check(CLI::Range(std::size_t{1}, std::size_t{3}))
        ->capture_default_str();
    app.add_option("--svg", svg_path, "file for the picture of the alignments")->capture_default_str();
    app.add_flag("--quick", quick, "a smaller run of a few seconds, for tests");
    CLI11_PARSE(app, argc, argv);
    try {
        heed::set_threads(threads);
        say_if_blas_is_slow();
        if (quick) {
            how.epochs = 3;
            train_size = 6000;
        }
        return run(how, train_size, sentences, svg_path, quick ? 0.5 : 0.99);
    } catch (const std::exception& problem) {
        fmt::print(stderr, "demo: {}\n", problem.what());
        return 1;
    }
}
