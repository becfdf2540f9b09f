// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/lexicon.hpp>
#include <heed_kit/text/vocabulary.hpp>
#include <heed_translator/model_file.hpp>

#include "command_line.hpp"
#include "dictionary.hpp"
#include "library.hpp"
#include "phrases.hpp"
#include "progress.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate dictionary`
struct dictionary_command {
    fs::path source, target, model, output, phrases;
    std::size_t rounds = 5, most = 10;

    void declare(CLI::App& app)
    {
        app.description("Learn word translations from parallel text: IBM Model 1 (Brown et al. 1993).");
        app.footer("Writes \"source target probability\" lines, the best translations of a word first, for\n"
                   "`translate run --replace-unknown` and `--candidates`. The latter requires a dictionary of the\n"
                   "tokens of the model: pass --model if it was trained with --bpe.\n\n"
                   "Example:\n"
                   "  translate dictionary --source train.en --target train.de --output en-de.dictionary");
        app.add_option("--source", source, "sentences")->required()->type_name("FILE");
        app.add_option("--target", target, "translations, line by line")->required()->type_name("FILE");
        app.add_option("--output", output, "the dictionary to write")->required()->type_name("FILE");
        app.add_option("--model", model, "build a dictionary of this model's subwords")->type_name("FILE");
        app.add_option("--phrases", phrases,
                       "also write the target words of each phrase of up to four words, for\n"
                       "`translate run --phrases`: source words ||| target words\n"
                       "(a word ||| is written &#124;&#124;&#124;)")
            ->type_name("FILE");
        add_count(app, "--rounds", rounds, "rounds of expectation and maximization");
        add_count(app, "--most", most, "maximum number of translations per word, and per phrase");
    }

    int run()
    {
        using heed::text::vocabulary;
        check_output(output, {source, target, model});
        if (!phrases.empty()) check_output(phrases, {source, target, model});
        if (same_file(output, phrases))
            throw heed::error(output.string() +
                              ": --output and --phrases are the same file; choose another name for one");
        std::optional<translator_file> file;
        if (!model.empty()) file.emplace(load_model(model));
        auto pairs = heed::text::read_parallel(source, target);
        if (file) {
            for (sentence& each : pairs.source) each = file->source.tokens(each);
            for (sentence& each : pairs.target) each = file->target.tokens(each);
        }
        const vocabulary from = vocabulary::build(pairs.source), to = vocabulary::build(pairs.target);
        std::vector<id_sentence> sources, targets;
        for (const sentence& each : pairs.source) sources.push_back(from.encode(each));
        for (const sentence& each : pairs.target) targets.push_back(to.encode(each));
        const auto learned = heed::text::lexicon::learn(sources, targets, {.rounds = rounds});
        std::string text;
        std::size_t count = 0;
        const auto marks = static_cast<heed::text::word_id>(vocabulary::special_words.size());
        for (heed::text::word_id word = marks; word < from.size(); ++word) {
            std::size_t written = 0;
            for (const auto& [meaning, probability] : learned.of(word)) {
                if (meaning < marks) continue;
                if (written++ == most) break;
                text += dictionary_text(from.word(word), to.word(meaning), probability) + '\n';
                ++count;
            }
        }
        if (text.empty())
            throw heed::error("dictionary: no word has a translation; check that " + source.string() +
                              " contains words");
        program::call_each(
            [&] {
                heed::io::write_file(output, heed::text::after_byte_order_mark(text));
                say(fmt::format("{} translations of {} words: {}", count, from.size() - marks, output.string()));
            },
            [&] {
                if (!phrases.empty()) write_phrases(learn_phrases(sources, targets, learned, rounds), from, to);
            });
        return 0;
    }

private:
    void write_phrases(const heed::text::phrase_table& table, const heed::text::vocabulary& from,
                       const heed::text::vocabulary& to) const
    {
        std::string text;
        for (const id_sentence& phrase : table.phrases()) {
            sentence source_words, target_words;
            for (const auto word : phrase) source_words.push_back(from.word(word));
            const auto words = table.of(phrase);
            for (std::size_t k = 0; k < std::min(most, words.size()); ++k)
                target_words.push_back(to.word(words[k].target));
            text += phrases_text(source_words, target_words) + '\n';
        }
        heed::io::write_file(phrases, heed::text::after_byte_order_mark(text));
        say(fmt::format("{} phrases: {}", table.size(), phrases.string()));
    }
};

}  // namespace translation
