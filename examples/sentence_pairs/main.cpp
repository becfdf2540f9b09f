// SPDX-License-Identifier: BSD-3-Clause
//
// sentence_pairs: decides whether two sentences are translations, with ABCNN (Yin et al. 2016) as a complete model,
// with and without attention.
//
// Half of the pairs are translations. In the other half, the second sentence is the most similar other sentence of the
// same length, so that the words decide (heed_kit/text/similar.hpp).
//
// test: --help
// test: numbers --form abcnn3 --pairs 60 --epochs 1 --rate 5e-3
// test, exhaustive: numbers --form bcnn --pairs 1500 --epochs 3 --rate 5e-3 --dropout 0 --expect 0.65
// test, exhaustive: numbers --form abcnn3 --pairs 3000 --epochs 4 --rate 5e-3 --dropout 0 --expect 0.75

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/parallel.hpp>

#include "../../tools/support/program.hpp"
#include "corpus.hpp"
#include "model.hpp"
#include "training.hpp"

using namespace sentence_pairs;

namespace {

void declare_model(CLI::App& app, matcher_file& file, recipe& how, std::string& path)
{
    const auto at_least_1 = CLI::Range(std::size_t{1}, std::size_t{9999}).description("");
    const auto size = [&](const char* name, std::size_t& value, const char* help) {
        app.add_option(name, value, help)->check(at_least_1)->type_name("N")->capture_default_str();
    };
    app.add_option("--form", file.form,
                   "bcnn has no attention; abcnn1 before the convolution, abcnn2 after it, abcnn3 both")
        ->check(CLI::IsMember(forms()).description(""))
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--model", path, "file for the model with the best accuracy on the validation pairs")
        ->type_name("FILE")
        ->capture_default_str();
    size("--embedding", file.sizes.embedding, "size of a word's embedding");
    size("--maps", file.sizes.maps, "maps of each convolution");
    size("--width", file.sizes.width, "width of convolutions and poolings");
    size("--blocks", file.sizes.blocks, "number of blocks");
    size("--longest", file.sizes.longest, "maximum sentence length; longer ones are truncated");
    size("--epochs", how.epochs, "passes over the training pairs");
    size("--batch", how.batch, "pairs per batch");
    app.add_option("--rate", how.rate, "Adam's learning rate")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--dropout", how.dropout, "dropout rate of embeddings")
        ->check(CLI::Range(0.0, 0.9).description(""))
        ->capture_default_str();
    app.add_option("--seed", how.seed, "seed of the weights and of the order")->capture_default_str();
}

struct files {
    std::string first, second;

    void declare(CLI::App& app, const std::string& prefix, const std::string& what)
    {
        app.add_option("--" + prefix + "first", first, what + ", tokenized, one sentence per line")
            ->type_name("FILE")
            ->required();
        app.add_option("--" + prefix + "second", second, "translations, line by line")->type_name("FILE")->required();
    }
    parallel_corpus read() const { return heed::text::read_parallel(first, second); }
};

void report(const char* what, const matcher_file& file, const parallel_corpus& corpus)
{
    fmt::print("{}: {}\n", what, percent(judge(*file.model, file.words.encode(corpus))));
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Decide whether two sentences are translations, with convolutions and attention."};
    app.formatter(std::make_shared<program::formatter>());
    app.require_subcommand(1);
    std::size_t threads = 1, most = 0, least = 2, pairs = 20000;
    double expect = 0;
    program::ask_for_threads(app, threads);

    matcher_file file;
    recipe how;
    files training, valid, scored;
    std::string path = "pairs.safetensors";

    CLI::App& train_command = *app.add_subcommand("train", "train on a parallel corpus");
    training.declare(train_command, "", "sentences");
    valid.declare(train_command, "valid-", "sentences for validation");
    declare_model(train_command, file, how, path);
    train_command.add_option("--first-pairs", most, "train on the first N pairs only; 0: all")
        ->type_name("N")
        ->capture_default_str();
    train_command.add_option("--min-count", least, "rarer words become unknown words")
        ->type_name("N")
        ->capture_default_str();

    CLI::App& score_command = *app.add_subcommand("score", "accuracy and F1 of a trained model");
    score_command.add_option("--model", path, "file written by train")->type_name("FILE")->required();
    scored.declare(score_command, "", "sentences");

    CLI::App& numbers_command = *app.add_subcommand("numbers", "train on generated English and German number words");
    declare_model(numbers_command, file, how, path);
    numbers_command.add_option("--pairs", pairs, "pairs for training")->type_name("N")->capture_default_str();
    numbers_command.add_option("--expect", expect, "fail below this accuracy on unseen numbers");

    return program::run(app, "sentence_pairs", argc, argv, [&] {
        heed::set_threads(threads);
        if (score_command.parsed()) {
            report("score", matcher_file::load(path), scored.read());
            return 0;
        }
        parallel_corpus learned, held_out, unseen;
        if (train_command.parsed()) {
            learned = training.read();
            held_out = valid.read();
            if (most > 0 && most < learned.size()) {
                learned.source.resize(most);
                learned.target.resize(most);
            }
        } else {
            const numbers::split data = numbers::sample(how.seed, pairs, 500, 1000);
            learned = of_numbers(data.train);
            held_out = of_numbers(data.valid);
            unseen = of_numbers(data.test);
        }
        file.words.first = heed::text::vocabulary::build(learned.source, least);
        file.words.second = heed::text::vocabulary::build(learned.target, least);
        file.make(how.seed);
        train(file, file.words.encode(learned), file.words.encode(held_out), how, path);
        if (!numbers_command.parsed()) return 0;
        const matcher_file best = matcher_file::load(path);
        report("unseen numbers", best, unseen);
        if (judge(*best.model, best.words.encode(unseen)).accuracy() >= expect) return 0;
        fmt::print(stderr, "sentence_pairs: that is below the expected {:.1f}%\n", 100 * expect);
        return 1;
    });
}
