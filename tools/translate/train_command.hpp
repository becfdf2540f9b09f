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
#include <heed/nn/init.hpp>
#include <heed/train/training_lock.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_translator/systems.hpp>

#include "../support/declared.hpp"
#include "../support/misuse.hpp"
#include "candidates.hpp"
#include "command_line.hpp"
#include "dictionary.hpp"
#include "library.hpp"
#include "ranks.hpp"
#include "reading.hpp"
#include "training.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate train`
struct train_command {
    fs::path source, target, valid_source, valid_target, model, log, codes, target_codes, meanings, recipe, cache,
        links;
    options how;
    bool resume = false;
    std::size_t shard = 1'000'000;
    double save_every = 30;

    void declare(CLI::App& app)
    {
        app_ = &app;
        app.description("Train a translator on two files of parallel text.");
        app.footer(
            "Text has one sentence per line, in UTF-8: words separated by spaces or, with --raw, ordinary\n"
            "text. MODEL is the model with the best validation BLEU (greedy) so far or, if equal, the lowest\n"
            "validation loss; a * marks its epoch. Ctrl-C or closing the terminal saves and exits. The same\n"
            "command with --resume continues from MODEL.checkpoint to the same result, bit for bit with the same\n"
            "number of threads; --epochs and --patience may then differ. Without --resume, a MODEL.checkpoint is\n"
            "never overwritten; a MODEL in use by another run is locked. The model contains its\n"
            "byte-pair codes. BLEU uses whole words, with --raw after mteval's tokenizer 13a. Loss and\n"
            "perplexity are per token: a word or, with --bpe or --raw, a subword.\n\n"
            "A large vocabulary makes the softmax expensive. With --candidates 2000:10, it runs over the\n"
            "2000 most frequent target tokens, the 10 best translations of each source token of the batch,\n"
            "and the batch's target tokens (Jean et al. 2015; Mi et al. 2016). A dictionary is not required: one\n"
            "is learned from the training pairs (IBM Model 1), of subwords with --bpe, and the checkpoint stores\n"
            "it for --resume. The training loss is then smaller, since it covers fewer tokens; validation covers\n"
            "all tokens, and its perplexity may be larger: each training step covers only a subset.\n"
            "The model file is unaffected; `translate run` has a separate --candidates.\n\n"
            "With --guided-alignment, attention is trained to agree with given links, such as those of\n"
            "`translate align` or `evaluate align`: line by line links i-j of source word i and target word\n"
            "j, both from 0. The cost of a target token is --guided-weight times the cross-entropy of its\n"
            "weights with its links (Chen et al. 2016), for tokens with links; a link of words links all their\n"
            "subwords. The printed and logged loss is the cross-entropy of the translations, without penalties\n"
            "and links. Both options require one attention weight per source word: not --attention none,\n"
            "per-dimension or grouped. The Transformer is guided by the mean of the heads of its last layer\n"
            "but one. A step takes longer.\n\n"
            "`mpirun -n 4 translate train ...` trains with four processes, on one machine or on several with\n"
            "the same files: each computes a part of every batch. --resume accepts any number of processes.\n\n"
            "A text of more than --shard pairs does not have to fit in memory. It is read once, into a file of\n"
            "word numbers (MODEL.corpus), and each epoch reads the shards of this file one at a time, in\n"
            "random order. With --raw, casing and subwords are learned from at most 250,000 lines, evenly spaced,\n"
            "and, with more than one shard, the dictionary of --candidates and --phrases is learned from one.\n\n"
            "The built-in recipes are bahdanau2015, luong2015, per-dimension-multi30k and\n"
            "transformer-multi30k. A recipe has one line per option, such as \"hidden = 512\" or \"raw = true\",\n"
            "and comments after #. The command line takes precedence.\n\n"
            "Example:\n"
            "  translate train --source train.en --target train.de --valid-source val.en \\\n"
            "      --valid-target val.de --model en-de.safetensors --bpe 10000 --log en-de.csv --threads 2");
        const auto file = [&](const char* name, fs::path& value, const char* help) {
            app.add_option(name, value, help)->required()->type_name("FILE")->group("Files");
        };
        app.add_option("--recipe", recipe,
                       "read options from a file, one per line, or from\n"
                       "a built-in recipe, such as luong2015")
            ->type_name("FILE")
            ->group("Files");
        file("--source", source, "training sentences");
        file("--target", target, "translations, line by line");
        file("--valid-source", valid_source, "validation sentences");
        file("--valid-target", valid_target, "their translations");
        file("--model", model, "the model to write (safetensors)");
        app.add_flag("--resume", resume, "continue from MODEL.checkpoint")->group("Files");
        app.add_option("--log", log, "write a training log as CSV, one row per epoch")
            ->type_name("FILE")
            ->group("Files");

        app.add_option("--save-every", save_every,
                       "minutes between writes of MODEL.checkpoint within an epoch;\n"
                       "0: only at the end of an epoch and when interrupted")
            ->check(CLI::Range(0.0, 1e6).description(""))
            ->check(number)
            ->type_name("N")
            ->capture_default_str()
            ->group("Files");
        app.add_option("--shard", shard,
                       "pairs in memory; a longer text is stored as numbers in a file of\n"
                       "random shards, and shuffled shard by shard")
            ->check(positive)
            ->type_name("N")
            ->capture_default_str()
            ->group("Files");
        app.add_option("--cache", cache, "the file of shards, reused for the same text; default: MODEL.corpus")
            ->type_name("FILE")
            ->group("Files");

        const auto choice = [&](const char* name, auto& value, const char* help) {
            return app.add_option(name, value, help)->type_name("N")->capture_default_str();
        };
        std::string all_systems;
        std::vector<std::string> names;
        for (const system_kind& each : systems()) {
            names.push_back(each.name);
            all_systems += fmt::format("{}{:<13}  {}", all_systems.empty() ? "" : "\n", each.name, each.description);
        }
        app.add_option("--system", how.system, all_systems)
            ->check(program::one_of(names, CLI::Validator(
                                               [](std::string& name) {
                                                   try {
                                                       kind_of(name);
                                                       return std::string();
                                                   } catch (const heed::error& problem) {
                                                       return std::string(problem.what());
                                                   }
                                               },
                                               "")))
            ->type_name("NAME")
            ->capture_default_str()
            ->group("Model");
        choice("--attention", how.attention,
               "none           one vector for the whole sentence\n"
               "additive       Bahdanau et al. 2015\n"
               "additive-y     with the previous word (AttY, Choi et al. 2018)\n"
               "per-dimension  one weight per dimension (AttY2D, same paper)\n"
               "temporal       divided by past scores (Sankaran et al. 2016)\n"
               "rnnsearch:     location-aware, structural-biases, fertility,\n"
               "               gated-coverage, recurrent (stateful); sparsemax,\n"
               "               entmax, sigmoid, decayed-temporal; gated, grouped;\n"
               "               monotonic, chunkwise (of 4 words): expected\n"
               "               alignments, also in search\n"
               "sankaran:      coverage, local-m, recent-temporal, local-temporal,\n"
               "               learned-temporal (a learned connection)\n"
               "luong:         dot, general, concat, location; local-m-dot,\n"
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
        choice("--alignment", how.alignment, "hidden size of the attention score")->check(positive)->group("Model");
        choice("--min-count", how.min_count, "words (or subwords) with fewer occurrences become <unk>")
            ->check(positive)
            ->group("Model");
        app.add_flag("--reverse-source", how.reverse_source,
                     "read the source from its last word to its first (Luong et al. 2015)")
            ->group("Model");

        CLI::Option* const bpe = choice("--bpe", how.bpe, "learn N merges and translate subwords; 0: whole words")
                                     ->check(any_number)
                                     ->group("Byte-pair encoding");
        app.add_flag("--bpe-separate", how.bpe_separate, "learn the merges of each language separately, not jointly")
            ->needs(bpe)
            ->group("Byte-pair encoding");
        CLI::Option* const given =
            app.add_option("--bpe-codes", codes, "codes from `translate bpe learn` or subword-nmt")
                ->excludes(bpe)
                ->type_name("FILE")
                ->group("Byte-pair encoding");
        app.add_option("--bpe-codes-target", target_codes, "codes for the target, if they differ")
            ->needs(given)
            ->type_name("FILE")
            ->group("Byte-pair encoding");

        choice("--epochs", how.epochs, "maximum number of passes over the text")->check(positive)->group("Training");
        choice("--patience", how.patience, "maximum number of successive epochs without improvement")
            ->check(any_number)
            ->group("Training");
        choice("--batch", how.batch, "sentences per batch; validation always uses it")
            ->check(positive)
            ->group("Training");
        choice("--batch-tokens", how.batch_tokens,
               "tokens per batch, counted as sentences times the longest\n"
               "sentence: replaces --batch in training; 0: unused")
            ->check(any_number)
            ->group("Training");
        choice("--max-length", how.max_length, "skip pairs with more tokens on either side; 0: keep all")
            ->check(any_number)
            ->group("Training");
        choice("--dropout", how.dropout, "dropout rate of embeddings, annotations and readout")
            ->check(share)
            ->check(number)
            ->group("Training");
        choice("--label-smoothing", how.label_smoothing, "probability mass spread over all words")
            ->check(share)
            ->check(number)
            ->group("Training");
        choice("--r-drop", how.r_drop,
               "R-Drop (Liang et al. 2021): each batch passes through the model\n"
               "twice, and predictions with different dropout should agree: the\n"
               "weight of their divergence, such as 5. A step takes twice as\n"
               "long; 0: one pass")
            ->check(number)
            ->group("Training");
        choice("--learning-rate", how.learning_rate,
               "learning rate, halved after each epoch not marked with * unless\n"
               "--warm-up or --halve-from is given; 1 by default except for Adam")
            ->check(above_zero)
            ->check(number)
            ->group("Optimizer");
        choice("--clip", how.clip, "maximum norm of the gradient")
            ->check(above_zero)
            ->check(number)
            ->group("Optimizer");
        choice("--seed", how.seed, "random seed; equal seeds give equal runs")->check(any_number)->group("Training");
        options::each_if_changed(how, [&](const std::string& name, auto& value, const auto&... what) {
            if constexpr (sizeof...(what) > 0) declare(app, "--" + name, value, what...);
        });
        for (const std::string& option : options_of_systems(systems())) {
            CLI::Option* const declared = app.get_option("--" + option);
            std::string others;
            for (const system_kind& kind : systems()) {
                const option_support* const its = support_of(option, kind);
                if (its == nullptr || its->preset.empty() || its->preset == declared->get_default_str()) continue;
                others += (others.empty() ? "" : ", ") + kind.name + " " + its->preset;
            }
            if (!others.empty()) declared->description(declared->get_description() + ";\ndefault: " + others);
        }
        for (const char* const option : {"--subword-vocab", "--subword-model", "--casing"})
            app.get_option(option)->needs(app.get_option("--raw"));
        for (const char* const option : {"--bpe", "--bpe-codes"})
            app.get_option(option)->excludes(app.get_option("--raw"));
        app.get_option("--warm-up")->excludes(app.get_option("--halve-from"));
        app.add_option("--adam-betas", how.adam_betas, "decay rates of the two moments of Adam")
            ->transform(CLI::Validator(
                [](std::string& text) -> std::string {
                    const auto betas = parse_betas(text);
                    if (!betas) return "give two numbers from 0 to below 1, such as 0.9:0.98";
                    text = fmt::format("{}:{}", betas->first, betas->second);  // compared by --resume as text
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
                        // Compared by --resume as text.
                        if (sizes) text = fmt::format("{}:{}", sizes->frequent, sizes->per_word);
                        return wrong_candidates(text);
                    },
                    ""))
                ->type_name("K:N")
                ->capture_default_str()
                ->group("Training");
        app.add_option("--penalty", how.penalty,
                       "penalties of attention, added to the loss of each sentence:\n"
                       "doubly-stochastic  equal attention to all source words, once\n"
                       "                   over all steps (Xu et al. 2015)\n"
                       "coverage           no repeated attention (See et al. 2017)\n"
                       "monotone           from left to right (Chorowski et al. 2014)")
            ->transform(CLI::Validator(
                [](std::string& text) -> std::string {
                    try {
                        std::string all;
                        for (const weighted_penalty& each : parse_penalties(text))
                            all += fmt::format("{}{}:{}", all.empty() ? "" : ",", each.name, each.weight);
                        text = all;  // compared by --resume as text
                        return "";
                    } catch (const heed::error& problem) {
                        return problem.what();
                    }
                },
                ""))
            ->type_name("NAME:WEIGHT,...")
            ->group("Training");
        CLI::Option* const guided = app.add_option("--guided-alignment", links,
                                                   "links i-j of the words of each training pair, for attention to\n"
                                                   "agree with")
                                        ->type_name("FILE")
                                        ->group("Training");
        choice("--guided-weight", how.guided_weight, "weight of the links in the loss of a target token")
            ->needs(guided)
            ->check(above_zero)
            ->check(number)
            ->group("Training");
        choice("--guided-shift", how.guided_shift,
               "weights that links guide: 0: of the step that outputs the target\n"
               "token; 1: of the next step, as in `translate align --shift 1`")
            ->needs(guided)
            ->check(CLI::Range(std::size_t{0}, std::size_t{1}).description(""))
            ->group("Training");
        app.add_option("--dictionary", meanings,
                       "for --candidates: lines \"source target probability\" of tokens;\n"
                       "default: learned from the text")
            ->needs(limited)
            ->type_name("FILE")
            ->group("Training");
    }

    int run(any_ranks over)
    {
        const bool writes = over.rank() == 0;
        translator_file file;
        std::optional<heed::train::training_lock> lock;  // before checking the files of an earlier run
        std::optional<training_log> rows;
        std::optional<dictionary> given;
        agree(over, [&] {
            settle_options();
            if (writes) check_files(lock, rows);
            given = given_dictionary();
        });
        heed::text::parallel_corpus validation;
        examples valid_ids;
        std::optional<training_pairs> training;
        const auto read = [&] {
            validation = heed::text::read_parallel(valid_source, valid_target);
            file.how = how;
            training = training_text({source, target, cache_path(), shard, codes, target_codes, links}).read(file);
            file.source.forgiving = true;
            file.system = make_system(how, file.source.vocabulary.size(), file.target.vocabulary.size());
            require_weights(*file.system);
            valid_ids = {file.source.encode(validation.source), file.target.encode(validation.target)};
        };
        // Rank 0 writes the file of a large text; the other ranks then find it.
        agree(over, [&] {
            if (writes) read();
        });
        agree(over, [&] {
            if (!writes) read();
        });
        stop_politely();
        std::optional<candidate_words> only;
        agree(over, [&] { only = candidates(file, *training, given); });
        const bool attends = support_of("attention", kind_of(how.system)) != nullptr;
        say(fmt::format("{} sentence pairs, vocabularies of {} and {} {}, {}{}, {} parameters, {}{}", training->size(),
                        file.source.vocabulary.size(), file.target.vocabulary.size(),
                        file.target.in_pieces() ? "subwords" : "words", how.system,
                        attends ? " with " + how.attention + " attention" : "", file.system->parameter_count(),
                        over.size() > 1 ? fmt::format("{} processes of ", over.size()) : "",
                        heed::counted(heed::threads(), "thread")));
        const outcome result =
            translation::train(file, *training, valid_ids, validation.target,
                               {model, resume, save_every, rows ? &*rows : nullptr}, only ? &*only : nullptr, over);
        if (result.stopped) {
            say(fmt::format("stopped in epoch {}; saved. The same command with --resume continues.",
                            result.at.epoch + 1));
            return 128 + result.signal;
        }
        say(fmt::format("best validation BLEU {:.2f} after epoch {} of {} ({}): {}", result.at.best,
                        result.at.best_epoch, result.at.epoch, duration_text(result.at.seconds), model.string()));
        return 0;
    }

private:
    /// Throws if this run cannot write its files, or must not.
    void check_files(std::optional<heed::train::training_lock>& lock, std::optional<training_log>& rows) const
    {
        const std::vector<fs::path> inputs{source, target,       valid_source, valid_target,
                                           codes,  target_codes, meanings,     links};
        const fs::path checkpoint = checkpoint_path(model);
        if (model.extension() == checkpoint_ending)
            throw heed::error(model.string() + ": is the name of a checkpoint; pass --model the name of the model, " +
                              fs::path(model).replace_extension().string());
        for (const fs::path& ours : {model, checkpoint, cache_path()}) {
            check_output(ours, inputs);
            if (fs::exists(ours) && !fs::is_regular_file(ours))
                throw heed::error(ours.string() +
                                  ": is not a regular file; a model must be one, since it is replaced as a whole");
        }
        if (!log.empty()) {
            rows.emplace(log);
            check_output(log, inputs);
            for (const fs::path& ours : {model, checkpoint, cache_path()}) {
                if (same_file(log, ours))
                    throw heed::error(log.string() + ": is also the model; choose another name for the log");
            }
        }
        lock.emplace(model);
        if (!lock->not_locked().empty()) say("note: " + lock->not_locked());
        if (resume && !fs::exists(checkpoint))
            throw heed::error(checkpoint.string() + ": no such file to resume from; start without --resume");
        if (resume) {
            const metadata stored = heed::io::load(checkpoint).metadata;
            about(checkpoint, [&] { check_resumed(stored); });
        }
        if (!resume && fs::exists(checkpoint)) {
            const auto stored = heed::io::load(checkpoint).metadata;
            const auto finished = stored.find("training.finished");
            const bool whole = finished != stored.end() && finished->second == "1";
            throw heed::error(checkpoint.string() +
                              (whole
                                   ? ": a finished run ended here; add --resume and more --epochs or --patience to "
                                     "continue, or remove this file to start over"
                                   : ": a run stopped here before it was finished; add --resume to continue, or remove "
                                     "this file to start over"));
        }
    }

    /// Throws if options and byte-pair codes differ from those of the resumed run, before the text is read.
    void check_resumed(const metadata& stored) const
    {
        require_same_options(how, stored);
        if (how.bpe > 0) return;  // they will be learned from the text
        const auto text = [](const fs::path& from) {
            return from.empty() ? std::string() : heed::text::bpe_codes::read(from).to_text();
        };
        const std::string of_source = text(codes), of_target = target_codes.empty() ? of_source : text(target_codes);
        for (const auto& [name, given] : {std::pair("bpe.source", &of_source), std::pair("bpe.target", &of_target)}) {
            const auto before = stored.find(name);
            if ((before == stored.end() ? std::string() : before->second) != *given) refuse_other_codes();
        }
    }

    /// Declares an option from its description.
    static void declare(CLI::App& app, const std::string& name, auto& value, const option_help& what)
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

    /// Throws for incompatible options, and sets the defaults that depend on other options.
    void settle_options()
    {
        const system_kind& kind = kind_of(how.system);
        for (const std::string& option : options_of_systems(systems())) {
            const option_support* const its = support_of(option, kind);
            if (!given(option)) {
                if (its != nullptr && !its->preset.empty()) how.set(option, its->preset);
            } else if (const auto problem = misplaced(option, kind, systems())) {
                throw program::misuse(*problem);
            }
        }
        require_system();
        if (given("adam-betas") && how.optimizer != "adam")
            throw program::misuse("--adam-betas: applies to --optimizer adam; omit it, or add --optimizer adam");
        if (how.phrases && parse_candidates(how.candidates).value_or(candidate_sizes{}).per_word == 0)
            throw program::misuse(
                "--phrases: uses the N best words of each phrase, for --candidates K:N with N greater than "
                "0; omit it, or increase N");
        if (how.r_drop > 0) {
            for (const auto& [option, present] :
                 {std::pair("penalty", !how.penalty.empty()), std::pair("guided-alignment", !links.empty())}) {
                if (present)
                    throw program::misuse(fmt::format("--r-drop: cannot be combined with --{}; omit one", option));
            }
            if (how.dropout == 0)
                throw program::misuse("--r-drop: both passes are equal without --dropout; omit it, or add --dropout");
        }
        if (!given("learning-rate") && how.optimizer != "adam") how.learning_rate = 1;
    }

    /// Throws for options without a model, such as heads that do not divide its width, before the text is read.
    void require_system() const
    {
        const heed::nn::limited_numbers limit(std::size_t{1} << 22);  // avoids constructing a large model twice
        const std::size_t words = heed::text::vocabulary::special_words.size() + 1;
        try {
            require_weights(*make_system(how, words, words));
        } catch (const heed::nn::too_many_numbers&) {
        } catch (const heed::error& problem) {
            throw program::misuse(problem.what());
        }
    }

    /// Throws if penalties or guided alignment are given for a system without the attention weights that they require.
    void require_weights(const heed::translator::system& chosen) const
    {
        if (chosen.has_position_weights()) return;
        for (const auto& [option, given] :
             {std::pair("penalty", !how.penalty.empty()), std::pair("guided-alignment", !links.empty())}) {
            if (given)
                throw heed::error(fmt::format("--{}: requires one attention weight per source word, which --attention "
                                              "{} does not have; omit it, or choose another --attention",
                                              option, how.attention));
        }
    }

    /// Reads the dictionary of --candidates, if given, before any work begins.
    std::optional<dictionary> given_dictionary() const
    {
        if (meanings.empty()) return std::nullopt;
        const auto sizes = parse_candidates(how.candidates);
        if (!sizes) throw program::misuse("--dictionary: applies to --candidates K:N; omit it, or add --candidates");
        if (sizes->per_word == 0)
            throw program::misuse(fmt::format("--candidates {} does not use --dictionary; omit --dictionary, or use "
                                              "N greater than 0",
                                              how.candidates));
        return dictionary(meanings);
    }

    /// The words of --candidates, unless it is `all`. A resumed run has already learned its dictionary.
    std::optional<candidate_words> candidates(const translator_file& file, training_pairs& training,
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
                given->require_tokens(file.source, file.target, meanings, "omit --dictionary to learn one of subwords");
                only.choose(*given, meanings, file.source, file.target);
            } else if (resume) {
                only.from = candidate_words::origin::learned;
            } else {
                only.learn(training.some(), file.source.vocabulary.size());
            }
            text += fmt::format(", {} translations of each source token", sizes->per_word);
            if (only.translated() > 0) {
                text += fmt::format(
                    "; {} has translations for {} of {}",
                    given ? meanings.string() : "a dictionary learned in " + duration_text(seconds_since(start)),
                    only.translated(), file.source.vocabulary.size() - heed::text::vocabulary::special_words.size());
            }
        }
        if (how.phrases) {
            const clock::time_point start = clock::now();
            const examples some = training.some();
            only.phrases = learn_phrases(some.source, some.target);
            text += fmt::format("; {} phrases learned in {}", only.phrases.size(), duration_text(seconds_since(start)));
        }
        say(text);
        return only;
    }

    fs::path cache_path() const { return cache.empty() ? fs::path(model.string() + ".corpus") : cache; }

    const CLI::App* app_ = nullptr;
};

}  // namespace translation
