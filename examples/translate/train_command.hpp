// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/parallel.hpp>
#include <heed/text/corpus.hpp>
#include <heed/text/learn_bpe.hpp>

#include "candidates.hpp"
#include "command_line.hpp"
#include "dictionary.hpp"
#include "systems.hpp"
#include "training.hpp"
#include "training_lock.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate train`
struct train_command {
    fs::path source, target, valid_source, valid_target, model, log, codes, target_codes, meanings, recipe;
    options how;
    bool resume = false;

    void declare(CLI::App& app)
    {
        app_ = &app;
        app.description("Learn to translate from two files of parallel text.");
        app.footer(
            "Text has one sentence per line, words separated by spaces, in UTF-8. MODEL is the one with the best\n"
            "validation BLEU (greedy) so far, or, if equal, the lowest validation loss; a * marks its\n"
            "epoch. Ctrl-C or closing the terminal saves and ends. The same command with --resume continues\n"
            "from MODEL.checkpoint to the same result, bit for bit with the same number of threads; --epochs and\n"
            "--patience may then differ. Without --resume, a MODEL.checkpoint is never overwritten; a MODEL\n"
            "that another run is training is left alone. The model holds its byte-pair codes; BLEU is of whole\n"
            "words, loss and perplexity are per token: per word, or per piece with --bpe.\n\n"
            "A large vocabulary makes the softmax expensive. With --candidates 2000:10 it runs over the\n"
            "2000 most frequent target tokens, the 10 best translations of each source token of the batch,\n"
            "and its references' tokens (Jean et al. 2015; Mi et al. 2016). No dictionary is needed for that: one\n"
            "is learned from the training pairs (IBM Model 1), of pieces with --bpe, and the checkpoint keeps\n"
            "it for --resume. The training loss is then smaller, being over fewer tokens; validation is over\n"
            "all tokens, and its perplexity may be greater: training does not see all of them each time.\n"
            "The model is an ordinary one; `translate run` has its own --candidates.\n\n"
            "A --recipe has a line for each option, such as \"hidden = 512\" or \"reverse-source = true\", and\n"
            "comments after #. The command line wins.\n\n"
            "Example:\n"
            "  translate train --source train.en --target train.de --valid-source val.en \\\n"
            "      --valid-target val.de --model en-de.safetensors --bpe 10000 --log en-de.csv --threads 2");
        const auto file = [&](const char* name, fs::path& value, const char* help) {
            app.add_option(name, value, help)->required()->type_name("FILE")->group("Files");
        };
        app.add_option("--recipe", recipe, "more options of this command, line by line")
            ->type_name("FILE")
            ->group("Files");
        file("--source", source, "sentences to train on");
        file("--target", target, "their translations, line by line");
        file("--valid-source", valid_source, "sentences to validate on after each epoch");
        file("--valid-target", valid_target, "their translations");
        file("--model", model, "the model to write (safetensors)");
        app.add_flag("--resume", resume, "continue from MODEL.checkpoint")->group("Files");
        app.add_option("--log", log, "write the course of the training, as CSV: one row per epoch")
            ->type_name("FILE")
            ->group("Files");

        const auto choice = [&](const char* name, auto& value, const char* help) {
            return app.add_option(name, value, help)->type_name("N")->capture_default_str();
        };
        std::string all_systems;
        for (const system_kind& each : systems())
            all_systems += fmt::format("{}{:<13}  {}", all_systems.empty() ? "" : "\n", each.name, each.description);
        app.add_option("--system", how.system, all_systems)
            ->check(CLI::Validator(
                [](std::string& name) {
                    try {
                        kind_of(name);
                        return std::string();
                    } catch (const heed::error& problem) {
                        return std::string(problem.what());
                    }
                },
                ""))
            ->type_name("NAME")
            ->capture_default_str()
            ->group("Model");
        choice("--attention", how.attention,
               "none           one vector for the whole sentence\n"
               "additive       Bahdanau et al. 2015\n"
               "additive-y     with the previous word (AttY, Choi et al. 2018)\n"
               "per-dimension  one weight per dimension (AttY2D, same paper)\n"
               "temporal       tempered by its own past (Sankaran et al. 2016)\n"
               "of rnnsearch:  location-aware, structural-biases, fertility,\n"
               "               gated-coverage, recurrent: they remember; sparsemax,\n"
               "               entmax, sigmoid, fading-temporal; gated, grouped\n"
               "of sankaran:   coverage, local-m, recent-temporal, local-temporal\n"
               "of luong:      dot, general, concat, location; local-m-dot,\n"
               "               local-m-general, local-p-dot, local-p-general")
            ->check(CLI::IsMember(choices_of("attention", systems())).description(""))
            ->type_name("NAME")
            ->group("Model");
        choice("--embedding", how.embedding, "size of word embeddings")->check(positive)->group("Model");
        choice("--hidden", how.hidden,
               "size of recurrent states, each direction; of a Transformer's\n"
               "feed-forward layers")
            ->check(positive)
            ->group("Model");
        choice("--alignment", how.alignment, "hidden size of the attention's score")->check(positive)->group("Model");
        choice("--min-count", how.min_count, "rarer words (or pieces) become <unk>")->check(positive)->group("Model");
        app.add_flag("--reverse-source", how.reverse_source, "read the source from its last word to its first")
            ->group("Model");

        CLI::Option* const bpe =
            choice("--bpe", how.bpe, "learn N merges and translate pieces of words; 0: whole words")
                ->check(any_number)
                ->group("Byte-pair encoding");
        app.add_flag("--bpe-separate", how.bpe_separate, "learn them for each language separately, not jointly")
            ->needs(bpe)
            ->group("Byte-pair encoding");
        CLI::Option* const given =
            app.add_option("--bpe-codes", codes, "merges that `translate bpe learn` or subword-nmt learned")
                ->excludes(bpe)
                ->type_name("FILE")
                ->group("Byte-pair encoding");
        app.add_option("--bpe-codes-target", target_codes, "different merges for the target")
            ->needs(given)
            ->type_name("FILE")
            ->group("Byte-pair encoding");

        choice("--epochs", how.epochs, "maximum number of passes over the text")->check(positive)->group("Training");
        choice("--patience", how.patience, "epochs in a row that may be no better than the best so far")
            ->check(any_number)
            ->group("Training");
        choice("--batch", how.batch, "sentences in a batch; in validation, always")->check(positive)->group("Training");
        choice("--batch-tokens", how.batch_tokens,
               "tokens in a batch, that is its sentences times the tokens of the\n"
               "longest: in training this replaces --batch; 0: unused")
            ->check(any_number)
            ->group("Training");
        choice("--max-length", how.max_length, "leave out pairs with more tokens on either side; 0: keep all")
            ->check(any_number)
            ->group("Training");
        choice("--dropout", how.dropout, "share dropped of embeddings, annotations and readout")
            ->check(share)
            ->check(number)
            ->group("Training");
        choice("--label-smoothing", how.label_smoothing, "share of probability spread over all words")
            ->check(share)
            ->check(number)
            ->group("Training");
        choice("--learning-rate", how.learning_rate,
               "halved after each epoch that is not marked with *, unless\n"
               "--warm-up or --halve-from is given; 1 by default except for Adam")
            ->check(above_zero)
            ->check(number)
            ->group("Optimizer");
        choice("--clip", how.clip, "maximum norm of the gradient")
            ->check(above_zero)
            ->check(number)
            ->group("Optimizer");
        choice("--seed", how.seed, "two runs with the same seed are the same")->check(any_number)->group("Training");
        options::each_if_changed(how, [&](const std::string& name, auto& value, const auto&... what) {
            if constexpr (sizeof...(what) > 0) declare(app, "--" + name, value, what...);
        });
        app.get_option("--warm-up")->excludes(app.get_option("--halve-from"));
        app.add_option("--adam-betas", how.adam_betas, "for Adam: how slowly its two means of the gradient forget")
            ->transform(CLI::Validator(
                [](std::string& text) -> std::string {
                    const auto betas = parse_betas(text);
                    if (!betas) return "give two numbers from 0 to below 1, such as 0.9:0.98";
                    text = fmt::format("{}:{}", betas->first, betas->second);  // --resume compares this text
                    return "";
                },
                ""))
            ->type_name("B1:B2")
            ->capture_default_str()
            ->group("Optimizer");
        CLI::Option* const limited =
            app.add_option("--candidates", how.candidates,
                           "train with the K most frequent target tokens and, for each source\n"
                           "token of a batch, the N best of a dictionary; or all")
                ->transform(CLI::Validator(
                    [](std::string& text) {
                        const auto sizes = parse_candidates(text);
                        // --resume compares this text.
                        if (sizes) text = fmt::format("{}:{}", sizes->frequent, sizes->per_word);
                        return wrong_candidates(text);
                    },
                    ""))
                ->type_name("K:N")
                ->capture_default_str()
                ->group("Training");
        app.add_option("--dictionary", meanings,
                       "for that: lines \"source target probability\" of tokens; learned from\n"
                       "the text if not given")
            ->needs(limited)
            ->type_name("FILE")
            ->group("Training");
    }

    int run()
    {
        settle_options();
        const std::vector<fs::path> inputs{source, target, valid_source, valid_target, codes, target_codes, meanings};
        const fs::path checkpoint = checkpoint_path(model);
        if (model.extension() == checkpoint_ending)
            throw heed::error(model.string() + ": is the name of a checkpoint; give --model that of the model, " +
                              fs::path(model).replace_extension().string());
        for (const fs::path& ours : {model, checkpoint}) {
            check_output(ours, inputs);
            if (fs::exists(ours) && !fs::is_regular_file(ours))
                throw heed::error(ours.string() +
                                  ": is not a regular file; a model is a file that is replaced as a whole");
        }
        std::optional<training_log> rows;
        if (!log.empty()) {
            rows.emplace(log);
            check_output(log, inputs);
            for (const fs::path& ours : {model, checkpoint}) {
                if (same_file(log, ours))
                    throw heed::error(log.string() + ": is the model's, too; give the log another name");
            }
        }
        const training_lock alone(model);  // before looking at what an earlier run has left
        if (resume && !fs::exists(checkpoint))
            throw heed::error(checkpoint.string() + ": no such file, so nothing to resume; start without --resume");
        if (!resume && fs::exists(checkpoint)) {
            const auto stored = heed::io::load(checkpoint).metadata;
            const auto finished = stored.find("training.finished");
            const bool whole = finished != stored.end() && finished->second == "1";
            throw heed::error(checkpoint.string() +
                              (whole
                                   ? ": a finished run ended here; add --resume and more --epochs or --patience to "
                                     "continue, or remove this file to start anew"
                                   : ": a run stopped here before it was finished; add --resume to continue, or remove "
                                     "this file to start anew"));
        }
        const std::optional<dictionary> given = given_dictionary();
        const auto training = heed::text::read_parallel(source, target);
        const auto validation = heed::text::read_parallel(valid_source, valid_target);
        translator_file file;
        file.how = how;
        split_words(file, training);
        const auto pieces = tokens(file, training);
        build_vocabularies(file, pieces);
        for (const auto& [words, path] :
             {std::pair(&file.source.vocabulary, &source), std::pair(&file.target.vocabulary, &target)}) {
            if (words->size() == words->special_words.size())
                throw heed::error(
                    fmt::format("{}: --min-count {} leaves no word of it", path->string(), how.min_count));
        }
        file.source.backwards = how.reverse_source;
        file.system = make_system(how, file.source.vocabulary.size(), file.target.vocabulary.size());
        const examples train_ids =
            short_enough({file.source.encode(training.source), file.target.encode(training.target)});
        const examples valid_ids{file.source.encode(validation.source), file.target.encode(validation.target)};
        stop_politely();
        std::optional<candidate_words> only = candidates(file, train_ids, given);
        const bool attends = use_of("attention", kind_of(how.system)) != nullptr;
        say(fmt::format("{} sentence pairs, vocabularies of {} and {} {}, {}{}, {} parameters, {}",
                        train_ids.source.size(), file.source.vocabulary.size(), file.target.vocabulary.size(),
                        file.target.splitting ? "pieces of words" : "words", how.system,
                        attends ? " with " + how.attention + " attention" : "", file.system->parameter_count(),
                        heed::counted(heed::threads(), "thread")));
        const outcome result = translation::train(file, train_ids, valid_ids, validation.target, model, resume,
                                                  rows ? &*rows : nullptr, only ? &*only : nullptr);
        if (result.stopped) {
            say(fmt::format("stopped in epoch {}; saved. The same command with --resume continues.",
                            result.at.epoch + 1));
            return 128 + interrupted;
        }
        say(fmt::format("best validation BLEU {:.2f} after epoch {} of {} ({}): {}", result.at.best,
                        result.at.best_epoch, result.at.epoch, duration_text(result.at.seconds), model.string()));
        return 0;
    }

private:
    /// Declares an option from its description.
    static void declare(CLI::App& app, const std::string& name, auto& value, const described& what)
    {
        using type = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<type, bool>) {
            app.add_flag(name, value, what.help)->group(what.group);
        } else if constexpr (std::is_same_v<type, std::string>) {
            app.add_option(name, value, what.help)
                ->check(
                    CLI::IsMember(std::vector<std::string>(what.choices.begin(), what.choices.end())).description(""))
                ->type_name("NAME")
                ->capture_default_str()
                ->group(what.group);
        } else {
            add_count(app, name.c_str(), value, what.help, what.least == 0 ? any_number : positive)->group(what.group);
        }
    }

    bool given(const std::string& option) const { return app_->get_option("--" + option)->count() > 0; }

    /// Refuses what does not go together, and sets the defaults that depend on other options.
    void settle_options()
    {
        const system_kind& kind = kind_of(how.system);
        for (const std::string& option : options_of_systems(systems())) {
            const use* const its = use_of(option, kind);
            if (!given(option)) {
                if (its != nullptr && !its->preset.empty()) how.set(option, its->preset);
            } else if (const auto problem = misplaced(option, kind, systems())) {
                throw heed::error(*problem);
            }
        }
        kind_of(how);
        if (given("adam-betas") && how.optimizer != "adam")
            throw heed::error("--adam-betas: is for --optimizer adam; leave it out, or give that");
        if (how.phrases && parse_candidates(how.candidates).value_or(candidate_sizes{}).per_word == 0)
            throw heed::error(
                "--phrases: takes the N best words of each phrase, for --candidates K:N with another N than "
                "0; leave it out, or give that");
        if (!given("learning-rate") && how.optimizer != "adam") how.learning_rate = 1;
    }

    /// Reads the dictionary of --candidates, if one is given, before any work begins.
    std::optional<dictionary> given_dictionary() const
    {
        if (meanings.empty()) return std::nullopt;
        const auto sizes = parse_candidates(how.candidates);
        if (!sizes) throw heed::error("--dictionary: is for --candidates K:N; leave it out, or give that");
        if (sizes->per_word == 0)
            throw heed::error(fmt::format("--candidates {} takes nothing from --dictionary; leave that out, or give "
                                          "another N than 0",
                                          how.candidates));
        return dictionary(meanings);
    }

    /// The words that --candidates names, if that is not all. A resumed run has already learned its dictionary.
    std::optional<candidate_words> candidates(const translator_file& file, const examples& training,
                                              const std::optional<dictionary>& given) const
    {
        const auto sizes = parse_candidates(how.candidates);
        if (!sizes) return std::nullopt;
        candidate_words only;
        only.sizes = *sizes;
        std::string text = fmt::format("candidates: the {} most frequent tokens", sizes->frequent);
        if (sizes->per_word > 0) {
            const clock::time_point start = clock::now();
            if (given) {
                given->require_tokens(file.source, file.target, meanings,
                                      "leave out --dictionary, then one of its pieces is learned");
                only.choose(*given, meanings, file.source, file.target);
            } else if (resume) {
                only.from = candidate_words::origin::learned;
            } else {
                only.learn(training, file.source.vocabulary.size());
            }
            text += fmt::format(", {} translations of each source token", sizes->per_word);
            if (only.translated() > 0) {
                text += fmt::format(
                    "; {} knows {} of {}",
                    given ? meanings.string() : "a dictionary learned in " + duration_text(seconds_since(start)),
                    only.translated(), file.source.vocabulary.size() - heed::text::vocabulary::special_words.size());
            }
        }
        if (how.phrases) {
            const clock::time_point start = clock::now();
            only.phrases = learn_phrases(training.source, training.target);
            text += fmt::format("; {} phrases learned in {}", only.phrases.size(), duration_text(seconds_since(start)));
        }
        say(text);
        return only;
    }

    /// The tokens of the text, of each side or, where both share their embeddings, of both together.
    void build_vocabularies(translator_file& file, const heed::text::parallel_corpus& pieces) const
    {
        using heed::text::vocabulary;
        if (how.share_embeddings != "all") {
            file.source.vocabulary = vocabulary::build(pieces.source, how.min_count);
            file.target.vocabulary = vocabulary::build(pieces.target, how.min_count);
            return;
        }
        std::vector<sentence> both = pieces.source;
        both.insert(both.end(), pieces.target.begin(), pieces.target.end());
        file.source.vocabulary = file.target.vocabulary = vocabulary::build(both, how.min_count);
    }

    /// The byte-pair codes of both languages, if there are any: learned or read.
    void split_words(translator_file& file, const heed::text::parallel_corpus& training) const
    {
        using heed::text::bpe_codes;
        if (!codes.empty()) {
            file.source.splitting.emplace(bpe_codes::read(codes));
            file.target.splitting.emplace(bpe_codes::read(target_codes.empty() ? codes : target_codes));
        } else if (how.bpe > 0) {
            heed::text::word_counts words, target_words;
            heed::text::count_words(words, training.source);
            heed::text::count_words(how.bpe_separate ? target_words : words, training.target);
            file.source.splitting.emplace(heed::text::learn_bpe(words, how.bpe));
            file.target.splitting.emplace(how.bpe_separate ? heed::text::learn_bpe(target_words, how.bpe)
                                                           : file.source.codes());
        } else {
            return;
        }
        const std::size_t n = file.source.codes().size(), m = file.target.codes().size();
        say(file.source.codes() == file.target.codes()
                ? fmt::format("byte-pair encoding: {} merges for both languages", n)
                : fmt::format("byte-pair encoding: {} and {} merges", n, m));
    }

    static heed::text::parallel_corpus tokens(const translator_file& file, const heed::text::parallel_corpus& words)
    {
        heed::text::parallel_corpus result;
        for (const sentence& each : words.source) result.source.push_back(file.source.tokens(each));
        for (const sentence& each : words.target) result.target.push_back(file.target.tokens(each));
        return result;
    }

    /// Drops the pairs that are longer than allowed.
    examples short_enough(examples all) const
    {
        if (how.max_length == 0) return all;
        examples some;
        for (std::size_t i = 0; i < all.source.size(); ++i) {
            if (std::max(all.source[i].size(), all.target[i].size()) > how.max_length) continue;
            some.source.push_back(std::move(all.source[i]));
            some.target.push_back(std::move(all.target[i]));
        }
        if (some.source.empty())
            throw heed::error(
                fmt::format("{}: --max-length {} leaves no sentence pair", source.string(), how.max_length));
        say(fmt::format("{} sentence pairs with more than {} tokens on a side left out",
                        all.source.size() - some.source.size(), how.max_length));
        return some;
    }

    const CLI::App* app_ = nullptr;
};

}  // namespace translation
