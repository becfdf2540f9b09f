// SPDX-License-Identifier: BSD-3-Clause
//
// translate: train a translator on any parallel text, use it, and score it.
//
// RNNsearch (Bahdanau, Cho, Bengio 2015) with a choice of attentions, on the CPU. What is interesting is not here but
// in heed/seq2seq/translator.hpp, which puts the model together, and in translation/training.hpp, which trains it.
//
// test: --help

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <initializer_list>
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

/// Refuses to write over what is read, and says at once, not after an hour's work, where nothing can be written.
void check_output(const fs::path& output, std::initializer_list<fs::path> inputs)
{
    for (const fs::path& input : inputs) {
        std::error_code not_there;
        if (fs::equivalent(output, input, not_there))
            throw heed::error(output.string() + ": would overwrite what is read; give it another name");
    }
    heed::io::atomic_file{output};
}

void flush_output()
{
    if (!std::cout.flush()) throw heed::error("standard output: cannot be written");
}

/// For options that are numbers: their range goes without saying in --help.
const CLI::Validator positive = CLI::Range(std::size_t{1}, std::size_t{1} << 20).description("");
const CLI::Validator whole = CLI::Range(std::size_t{0}, std::size_t{1} << 62).description("");
const CLI::Validator rate = CLI::Range(0.0, 0.95).description("");
const CLI::Validator above_zero = CLI::Validator(CLI::PositiveNumber).description("");
/// The ranges let "nan" pass: it is neither too small nor too large.
std::string number(const std::string& text) { return text.find_first_of("nN") == text.npos ? "" : "is no number"; }

struct train_command {
    fs::path source, target, valid_source, valid_target, model;
    options how;
    bool resume = false;

    void declare(CLI::App& app)
    {
        app.description("Learn to translate from two files of parallel text.");
        app.footer(
            "Text is one sentence a line, tokens separated by spaces, in UTF-8. MODEL is the one with the best\n"
            "validation BLEU (greedy) so far; a * marks its epoch. Ctrl-C saves and ends. The same command with\n"
            "--resume goes on from MODEL.checkpoint, to the same result bit for bit at the same number of\n"
            "threads; --epochs and --patience may be others then.\n\n"
            "Example:\n"
            "  translate train --source train.en --target train.de --valid-source val.en \\\n"
            "      --valid-target val.de --model en-de.safetensors --min-count 2 --threads 2");
        const auto file = [&](const char* name, fs::path& value, const char* help) {
            app.add_option(name, value, help)->required()->type_name("FILE")->group("Files");
        };
        file("--source", source, "sentences to learn from");
        file("--target", target, "their translations, line by line");
        file("--valid-source", valid_source, "sentences to validate on after each epoch");
        file("--valid-target", valid_target, "their translations");
        file("--model", model, "what to write (safetensors)");
        app.add_flag("--resume", resume, "go on where MODEL.checkpoint stands")->group("Files");

        const auto choice = [&](const char* name, auto& value, const char* help) {
            return app.add_option(name, value, help)->type_name("N")->capture_default_str();
        };
        choice("--attention", how.attention,
               "none           one vector for the whole sentence\n"
               "additive       Bahdanau et al. 2015\n"
               "additive-y     with the previous word (AttY, Choi et al. 2018)\n"
               "per-dimension  a weight for each dimension (AttY2D, same paper)\n"
               "temporal       tempered by its own past (Sankaran et al. 2016)")
            ->check(CLI::IsMember(options::attentions()).description(""))
            ->type_name("NAME")
            ->group("Model");
        choice("--embedding", how.embedding, "size of word embeddings")->check(positive)->group("Model");
        choice("--hidden", how.hidden, "size of recurrent states, each direction")->check(positive)->group("Model");
        choice("--alignment", how.alignment, "hidden size of the attention's score")->check(positive)->group("Model");
        choice("--min-count", how.min_count, "rarer words become <unk>")->check(positive)->group("Model");

        choice("--epochs", how.epochs, "at most so many passes over the text")->check(positive)->group("Training");
        choice("--patience", how.patience, "epochs without a better validation BLEU to put up with")
            ->check(whole)
            ->group("Training");
        choice("--batch", how.batch, "sentences in a batch")->check(positive)->group("Training");
        choice("--dropout", how.dropout, "share dropped of embeddings, annotations and readout")
            ->check(rate)
            ->check(number)
            ->group("Training");
        choice("--label-smoothing", how.label_smoothing, "share of probability spread over all words")
            ->check(rate)
            ->check(number)
            ->group("Training");
        choice("--learning-rate", how.learning_rate, "of Adam; halved after an epoch that is no better")
            ->check(above_zero)
            ->check(number)
            ->group("Training");
        choice("--clip", how.clip, "greatest norm of the gradient")
            ->check(above_zero)
            ->check(number)
            ->group("Training");
        choice("--seed", how.seed, "two runs with one seed are the same")->check(whole)->group("Training");
    }

    int run()
    {
        check_output(model, {source, target, valid_source, valid_target});
        const fs::path checkpoint = checkpoint_path(model);
        if (resume && !fs::exists(checkpoint))
            throw heed::error(checkpoint.string() + ": no such file, so nothing to resume; start without --resume");
        if (!resume && fs::exists(checkpoint)) {
            const auto stored = heed::io::load(checkpoint).metadata;
            const auto finished = stored.find("training.finished");
            if (finished == stored.end() || finished->second != "1")
                throw heed::error(
                    checkpoint.string() +
                    ": a run stopped here before it was finished; add --resume to go on, or remove this file");
        }
        const auto training = heed::text::read_parallel(source, target);
        const auto validation = heed::text::read_parallel(valid_source, valid_target);
        translator_file file;
        file.how = how;
        file.source = heed::text::vocabulary::build(training.source, how.min_count);
        file.target = heed::text::vocabulary::build(training.target, how.min_count);
        for (const auto& [words, path] : {std::pair(&file.source, &source), std::pair(&file.target, &target)}) {
            if (words->size() == words->special_words.size())
                throw heed::error(
                    fmt::format("{}: --min-count {} leaves no word of it", path->string(), how.min_count));
        }
        file.system = make_system(how, file.source.size(), file.target.size());
        const examples train_ids{encode(file.source, training.source), encode(file.target, training.target)};
        const examples valid_ids{encode(file.source, validation.source), encode(file.target, validation.target)};
        stop_politely();
        say(fmt::format("{} sentence pairs, vocabularies of {} and {} words, {} attention, {} parameters, {} thread{}",
                        training.size(), file.source.size(), file.target.size(), how.attention,
                        file.system->parameters(), heed::threads(), heed::threads() == 1 ? "" : "s"));
        const outcome result = translation::train(file, train_ids, valid_ids, validation.target, model, resume);
        if (result.stopped) {
            say(fmt::format("stopped in epoch {}; saved. The same command with --resume goes on.",
                            result.at.epoch + 1));
            return 128 + interrupted;
        }
        say(fmt::format("best validation BLEU {:.2f} after epoch {} of {} ({}): {}", result.at.best,
                        result.at.best_epoch, result.at.epoch, duration_text(result.at.seconds), model.string()));
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
        app.add_option("--model", model, "what `translate train` wrote")->required()->type_name("FILE");
        app.add_option("--input", input, "sentences to translate; standard input if not given")->type_name("FILE");
        CLI::Option* const svg =
            app.add_option("--alignments", alignments, "draw where the model looked, as SVG")->type_name("FILE");
        app.add_option("--pictures", pictures, "draw at most so many sentences")
            ->check(positive)
            ->needs(svg)
            ->type_name("N")
            ->capture_default_str();
        app.add_option("--batch", batch, "sentences translated at once; with 1, each is answered at once")
            ->check(positive)
            ->type_name("N")
            ->capture_default_str();
    }

    int run()
    {
        const translator_file file = load_model(model);
        if (!alignments.empty()) {
            check_output(alignments, {model, input});
            if (file.how.attention == "none")
                throw heed::error(model.string() + ": trained with --attention none, so it has no alignment to draw");
        }
        std::ifstream from_file;
        if (!input.empty()) {
            errno = 0;
            from_file.open(input, std::ios::binary);
            if (!from_file) throw heed::error(input.string() + ": cannot be opened: " + std::strerror(errno));
        }
        heed::text::sentence_reader reader(input.empty() ? std::cin : from_file,
                                           input.empty() ? "standard input" : input.string(),
                                           heed::text::empty_lines::keep);
        // Somebody who types wants each answer at once.
        const bool typed = input.empty() && isatty(STDIN_FILENO) != 0;
        const std::size_t chunk = typed || batch == 1 ? 1 : 16 * batch;
        std::vector<drawing> drawn;
        for (bool more = true; more;) {
            std::vector<sentence> lines;
            for (sentence line; lines.size() < chunk && (more = reader.next(line));) lines.push_back(line);
            translate_lines(file, lines, drawn);
        }
        if (reader.line() == 0 && !input.empty())
            throw heed::error(input.string() + ": is empty; there is nothing to translate");
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
        flush_output();
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
        app.description("Perplexity of reference translations, and BLEU against them.");
        app.footer(
            "BLEU is that of greedy translations, computed as multi-bleu does: 4-grams, brevity penalty, on the\n"
            "tokens as given.\n\n"
            "Example:\n"
            "  translate score --model en-de.safetensors --source test.en --target test.de");
        app.add_option("--model", model, "what `translate train` wrote")->required()->type_name("FILE");
        app.add_option("--source", source, "sentences to translate")->required()->type_name("FILE");
        app.add_option("--target", target, "their reference translations, line by line")->required()->type_name("FILE");
        app.add_option("--batch", batch, "sentences translated at once")
            ->check(positive)
            ->type_name("N")
            ->capture_default_str();
    }

    int run()
    {
        const translator_file file = load_model(model);
        const auto pairs = heed::text::read_parallel(source, target);
        const examples ids{encode(file.source, pairs.source), encode(file.target, pairs.target)};
        const quality result = evaluate(*file.system, ids, pairs.target, file.target, batch);
        std::cout << fmt::format("{}\nperplexity = {:.4f}\n", result.bleu.text(), result.perplexity);
        return 0;
    }
};

}  // namespace

int main(int argc, char** argv)
{
    std::ios::sync_with_stdio(false);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like a full disk, not the end

    CLI::App app{"Train a neural translator with attention, translate with it, and score it."};
    app.set_version_flag("--version", "translate (heed) " HEED_VERSION_STRING);
    app.require_subcommand(1);
    app.get_formatter()->column_width(33);
    app.option_defaults()->take_last();  // more --epochs can be put behind a command from before
    app.footer("`translate train --help` tells more, with an example; so do run and score.");

    train_command train;
    run_command run;
    score_command score;
    CLI::App* const train_app = app.add_subcommand("train");
    CLI::App* const run_app = app.add_subcommand("run");
    CLI::App* const score_app = app.add_subcommand("score");
    train.declare(*train_app);
    run.declare(*run_app);
    score.declare(*score_app);
    std::size_t threads = 0;
    for (CLI::App* const each : {&app, train_app, run_app, score_app}) {  // before the command and after it
        each->add_option("--threads", threads, "threads to use; 0: as many as the machine has")
            ->check(CLI::Range(std::size_t{0}, std::size_t{256}).description(""))
            ->type_name("N")
            ->capture_default_str();
    }

    try {
        int status = 0;
        try {
            app.parse(argc, argv);
            heed::set_threads(threads);
            say_if_blas_is_slow();
            status = train_app->parsed() ? train.run() : run_app->parsed() ? run.run() : score.run();
        } catch (const CLI::ParseError& reason) {
            status = app.exit(reason);  // --help and --version, too
        }
        flush_output();
        return status;
    } catch (const std::bad_alloc&) {
        say("translate: out of memory; smaller --batch, --hidden or --embedding need less");
    } catch (const std::exception& problem) {
        say("translate: " + heed::text::printable(problem.what()));
    }
    return 1;
}
