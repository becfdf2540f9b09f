// SPDX-License-Identifier: BSD-3-Clause
//
// translate: train a translator on any parallel text, use it, and score it.
//
// RNNsearch (Bahdanau, Cho, Bengio 2015) with a choice of attentions, on the CPU. What is interesting is not here but
// in heed/seq2seq/translator.hpp, which puts the model together, and in translation/training.hpp, which trains it.
//
// test: --help

#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed/text/corpus.hpp>
#include <heed/version.hpp>
#include <heed/view/svg.hpp>

#include "translation/threads.hpp"
#include "translation/training.hpp"

namespace {

using namespace translation;
namespace fs = std::filesystem;

std::vector<id_sentence> encode(const heed::text::vocabulary& words, const std::vector<sentence>& text)
{
    std::vector<id_sentence> ids;
    ids.reserve(text.size());
    for (const sentence& each : text) ids.push_back(words.encode(each));
    return ids;
}

struct train_command {
    fs::path source, target, valid_source, valid_target, model;
    options how;
    bool resume = false;

    void declare(CLI::App& app)
    {
        app.description(
            "Train a translator on two files of parallel text: one sentence a line, tokens separated by spaces.");
        app.footer(
            "Ctrl-C saves and ends; the same command with --resume goes on, to the same result bit for bit at the "
            "same\n"
            "number of threads. The model with the best validation BLEU (greedy) is kept in MODEL; MODEL.checkpoint is "
            "what\n"
            "--resume reads.\n\n"
            "Example:\n"
            "  translate train --source train.en --target train.de --valid-source val.en --valid-target val.de \\\n"
            "      --model en-de.safetensors --attention additive --min-count 2 --dropout 0.3 --threads 2");
        app.add_option("--source", source, "source sentences to train on")->required();
        app.add_option("--target", target, "their translations, line by line")->required();
        app.add_option("--valid-source", valid_source, "source sentences to validate on")->required();
        app.add_option("--valid-target", valid_target, "their translations")->required();
        app.add_option("--model", model, "the file to write (safetensors)")->required();
        app.add_option(
               "--attention", how.attention,
               "none: one vector for the whole sentence; additive: Bahdanau et al. 2015; additive-y: with the\n"
               "previous word in the score (AttY, Choi et al. 2018); per-dimension: a weight for each dimension\n"
               "(AttY2D, same paper); temporal: modulated by its past (Sankaran et al. 2016)")
            ->check(CLI::IsMember(options::attentions()))
            ->capture_default_str();
        const auto positive = CLI::Range(std::size_t{1}, std::size_t{1} << 20);
        app.add_option("--embedding", how.embedding, "size of word embeddings")->check(positive)->capture_default_str();
        app.add_option("--hidden", how.hidden, "size of recurrent states, each direction")
            ->check(positive)
            ->capture_default_str();
        app.add_option("--alignment", how.alignment, "hidden size of the attention's score")
            ->check(positive)
            ->capture_default_str();
        app.add_option("--batch", how.batch, "sentences in a batch")->check(positive)->capture_default_str();
        app.add_option("--epochs", how.epochs, "at most so many passes over the text")
            ->check(positive)
            ->capture_default_str();
        app.add_option("--patience", how.patience, "stop after so many epochs without a better validation BLEU")
            ->capture_default_str();
        app.add_option("--min-count", how.min_count, "rarer words become <unk>")
            ->check(positive)
            ->capture_default_str();
        app.add_option("--dropout", how.dropout, "rate, on embeddings, annotations and before the output")
            ->check(CLI::Range(0.0, 0.95))
            ->capture_default_str();
        app.add_option("--label-smoothing", how.label_smoothing, "share of probability spread over all words")
            ->check(CLI::Range(0.0, 0.95))
            ->capture_default_str();
        app.add_option("--learning-rate", how.learning_rate, "of Adam; halved after each epoch without improvement")
            ->check(CLI::PositiveNumber)
            ->capture_default_str();
        app.add_option("--clip", how.clip, "greatest norm of the gradient")
            ->check(CLI::PositiveNumber)
            ->capture_default_str();
        app.add_option("--seed", how.seed, "two runs with one seed are the same")->capture_default_str();
        app.add_flag("--resume", resume, "go on where MODEL.checkpoint stands");
    }

    int run()
    {
        const fs::path checkpoint = checkpoint_path(model);
        if (resume && !fs::exists(checkpoint)) {
            throw heed::error(checkpoint.string() +
                              ": no such file, so there is nothing to resume; start without --resume");
        }
        if (!resume && fs::exists(checkpoint)) {
            const auto stored = heed::io::load(checkpoint);
            const auto finished = stored.metadata.find("training.finished");
            if (finished != stored.metadata.end() && finished->second == "0") {
                throw heed::error(
                    checkpoint.string() +
                    ": a run stopped here before it was finished; add --resume to go on, or remove this file");
            }
        }
        const auto training = heed::text::read_parallel(source, target);
        const auto validation = heed::text::read_parallel(valid_source, valid_target);
        translator_file file;
        file.how = how;
        file.source = heed::text::vocabulary::build(training.source, how.min_count);
        file.target = heed::text::vocabulary::build(training.target, how.min_count);
        file.system = make_system(how, file.source.size(), file.target.size());
        const examples train_ids{encode(file.source, training.source), encode(file.target, training.target)};
        const examples valid_ids{encode(file.source, validation.source), encode(file.target, validation.target)};
        fmt::print(stderr,
                   "{} sentence pairs, vocabularies of {} and {} words, {} attention, {} parameters, {} thread{}\n",
                   train_ids.source.size(), file.source.size(), file.target.size(), how.attention,
                   file.system->parameters(), heed::threads(), heed::threads() == 1 ? "" : "s");
        stop_politely();
        const outcome result = translation::train(file, train_ids, valid_ids, validation.target, model, resume);
        if (result.stopped) {
            fmt::print(stderr, "stopped in epoch {}; saved. The same command with --resume goes on.\n",
                       result.at.epoch + 1);
            return 130;
        }
        fmt::print(stderr, "best validation BLEU {:.2f} after epoch {} ({}): {}\n", result.at.best,
                   result.at.best_epoch, duration_text(result.at.seconds), model.string());
        return 0;
    }
};

struct run_command {
    fs::path model, input, alignments;
    std::size_t batch = 64, pictures = 50;

    void declare(CLI::App& app)
    {
        app.description("Translate: one sentence a line in, one translation a line out.");
        app.footer(
            "Example:\n"
            "  echo \"a man is sleeping .\" | translate run --model en-de.safetensors --alignments alignment.svg");
        app.add_option("--model", model, "a file that `translate train` wrote")->required();
        app.add_option("--input", input, "sentences to translate; standard input if not given");
        app.add_option("--alignments", alignments, "draw where the model looked, as SVG");
        app.add_option("--pictures", pictures, "draw at most so many sentences")->capture_default_str();
        app.add_option("--batch", batch, "sentences translated at once")
            ->check(CLI::Range(std::size_t{1}, std::size_t{4096}))
            ->capture_default_str();
    }

    int run()
    {
        const translator_file file = load_model(model);
        if (!alignments.empty() && file.how.attention == "none") {
            throw heed::error(model.string() + ": trained with --attention none, so it has no alignment to draw");
        }
        std::ifstream from_file;
        if (!input.empty()) {
            from_file.open(input, std::ios::binary);
            if (!from_file || fs::is_directory(input)) throw heed::error(input.string() + ": cannot be read");
        }
        heed::text::sentence_reader reader(input.empty() ? std::cin : from_file,
                                           input.empty() ? "standard input" : input.string(),
                                           heed::text::empty_lines::keep);
        // Somebody who types wants each answer at once.
        const std::size_t chunk = input.empty() && isatty(STDIN_FILENO) != 0 ? 1 : 16 * batch;
        std::size_t read = 0;
        std::vector<drawing> drawn;
        for (bool more = true; more;) {
            std::vector<sentence> lines;
            for (sentence line; lines.size() < chunk && (more = reader.next(line));) lines.push_back(line);
            read += lines.size();
            translate_lines(file, lines, drawn);
        }
        if (read == 0 && !input.empty())
            throw heed::error(input.string() + ": the file is empty; there is nothing to translate");
        if (!alignments.empty()) draw(drawn);
        return 0;
    }

private:
    struct drawing {
        sentence source, target;
        std::vector<float> weights;
    };

    void translate_lines(const translator_file& file, const std::vector<sentence>& lines,
                         std::vector<drawing>& drawn) const
    {
        const auto all = translate_all(*file.system, encode(file.source, lines), batch,
                                       drawn.size() < pictures && !alignments.empty());
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const sentence words = lines[i].empty() ? sentence{} : file.target.decode(all[i].words);
            std::cout << heed::text::join(words) << '\n';
            if (!alignments.empty() && drawn.size() < pictures && !lines[i].empty()) {
                drawing picture{lines[i], words, {}};
                picture.source.emplace_back("</s>");
                if (all[i].weights.size() > words.size()) picture.target.emplace_back("</s>");
                for (std::size_t j = 0; j < picture.target.size(); ++j) {
                    picture.weights.insert(picture.weights.end(), all[i].weights[j].begin(), all[i].weights[j].end());
                }
                drawn.push_back(std::move(picture));
            }
        }
        std::cout.flush();
        if (!std::cout) throw heed::error("standard output: cannot be written");
    }

    void draw(const std::vector<drawing>& drawn) const
    {
        std::vector<heed::view::alignment> all;
        for (const drawing& each : drawn) all.push_back({each.weights, each.source, each.target});
        heed::io::write_file(alignments, heed::view::svg(all));
    }
};

struct score_command {
    fs::path model, source, target;
    std::size_t batch = 64;

    void declare(CLI::App& app)
    {
        app.description("Perplexity of a reference translation, and BLEU of the greedy one against it.");
        app.footer("BLEU is that of multi-bleu: 4-grams, brevity penalty, on the tokens as given.\n\n"
                   "Example:\n"
                   "  translate score --model en-de.safetensors --source test.en --target test.de");
        app.add_option("--model", model, "a file that `translate train` wrote")->required();
        app.add_option("--source", source, "source sentences")->required();
        app.add_option("--target", target, "reference translations, line by line")->required();
        app.add_option("--batch", batch, "sentences translated at once")
            ->check(CLI::Range(std::size_t{1}, std::size_t{4096}))
            ->capture_default_str();
    }

    int run()
    {
        const translator_file file = load_model(model);
        const auto pairs = heed::text::read_parallel(source, target);
        const examples ids{encode(file.source, pairs.source), encode(file.target, pairs.target)};
        const quality result = evaluate(*file.system, ids, pairs.target, file.target, batch);
        fmt::print("{}\nperplexity = {:.4f}\n", result.bleu.text(), result.perplexity);
        return 0;
    }
};

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Train a neural translator with attention, translate with it, and score it."};
    app.set_version_flag("--version", HEED_VERSION_STRING);
    app.require_subcommand(1);
    app.fallthrough();
    std::size_t threads = 0;
    app.add_option("--threads", threads, "threads to use; 0: as many as the machine has")
        ->check(CLI::Range(std::size_t{0}, std::size_t{256}))
        ->capture_default_str();

    train_command train;
    run_command run;
    score_command score;
    CLI::App* const train_app = app.add_subcommand("train");
    CLI::App* const run_app = app.add_subcommand("run");
    CLI::App* const score_app = app.add_subcommand("score");
    train.declare(*train_app);
    run.declare(*run_app);
    score.declare(*score_app);
    CLI11_PARSE(app, argc, argv);

    try {
        heed::set_threads(threads);
        say_if_blas_is_slow();
        if (train_app->parsed()) return train.run();
        if (run_app->parsed()) return run.run();
        return score.run();
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "translate: out of memory; smaller --batch, --hidden or --embedding need less\n");
    } catch (const std::exception& problem) {
        fmt::print(stderr, "translate: {}\n", problem.what());
    }
    return 1;
}
