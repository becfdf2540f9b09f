// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <unordered_map>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/chrf.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_translator/model_file.hpp>
#include <heed_translator/word_weights.hpp>

#include "command_line.hpp"
#include "dictionary.hpp"
#include "library.hpp"
#include "progress.hpp"
#include "quality.hpp"
#include "ranks.hpp"
#include "raw_lines.hpp"
#include "search_options.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate score`
struct score_command {
    std::vector<fs::path> paths;
    fs::path source, target;
    std::string replacements;
    std::size_t batch = 64;
    search_options search = search_options::greedy();

    void declare(CLI::App& app)
    {
        app.description("Compute the perplexity of reference translations, and BLEU against them.");
        app.footer("BLEU is that of greedy translations, or of beam search with --beam, computed as by multi-bleu:\n"
                   "4-grams, brevity penalty, on the words as given; for a --raw model, after mteval's tokenizer\n"
                   "13a, and with chrF. Perplexity is per word; for a --bpe model, per subword and per word.\n"
                   "The end of a sentence counts as a token, the only one of an empty line.\n"
                   "With --replace-unknown, BLEU is printed before and after replacement.\n\n"
                   "Example:\n"
                   "  translate score --model en-de.safetensors --source test.en --target test.de");
        add_models(app, paths);
        app.add_option("--source", source, "sentences to translate")->required()->type_name("FILE");
        app.add_option("--target", target, "their reference translations, line by line")->required()->type_name("FILE");
        add_count(app, "--batch", batch, "sentences per batch");
        declare_search(app, search);
        replace_ = add_replacements(app, replacements,
                                    "also print BLEU with unknown words replaced with the source word of\n"
                                    "the largest weight, or with its translation in this dictionary");
    }

    int run(any_ranks over)
    {
        std::vector<translator_file> files;
        heed::text::parallel_corpus pairs;
        std::unordered_map<std::string, std::string> meanings;
        const bool replaces = replace_->count() > 0;
        agree(over, [&] {
            files = load_models(paths);
            check_search(search, has_attention(files));
            if (replaces) require_replaceable(has_attention(files), paths.front());
            if (!replacements.empty()) meanings = dictionary(replacements).best();
            pairs = read_lines(source, target);
        });
        const translator_file& file = files.front();
        const examples ids{file.source.encode(pairs.source), file.target.encode(pairs.target)};
        progress line(pairs.size());
        const models with(files);
        const quality result = evaluate_loss(with, ids, pairs.target, batch, over);
        const clock::time_point start = clock::now();
        const auto all = translate_all(with, ids.source, batch, replaces, search, shown_on(&line), over);
        if (over.rank() != 0) return 0;
        decoding_time took{seconds_since(start), all.size(), 0};
        line.clear();
        std::vector<sentence> before, after, known;
        std::vector<std::string> before_text, known_text;
        for (std::size_t i = 0; i < all.size(); ++i) {
            reading read;
            if (!pairs.source[i].empty()) read = read_translation(file, pairs.source[i], all[i].words);
            took.words += read.words.size();
            before.push_back(file.target.scored(read));
            known.push_back(file.target.scored(pairs.target[i]));
            if (file.target.raw) {
                before_text.push_back(read.text());
                known_text.push_back(heed::text::join(pairs.target[i]));
            }
            if (!replaces) continue;
            replace_unknown(file.source, pairs.source[i], all[i].weights, meanings, read);
            after.push_back(file.target.scored(read));
        }
        say(took.text());
        note_raw_lines(pairs.source, file.source);
        std::string perplexity = number_text(result.perplexity, 4);
        if (file.target.in_pieces())
            perplexity += fmt::format(" per subword, {} per word", number_text(result.word_perplexity, 4));
        std::cout << fmt::format("{}\n", heed::metrics::bleu(before, known).text());
        if (replaces)
            std::cout << fmt::format("with unknown words replaced: {}\n", heed::metrics::bleu(after, known).text());
        if (file.target.raw) std::cout << fmt::format("chrF = {:.2f}\n", heed::metrics::chrf(before_text, known_text));
        std::cout << fmt::format("perplexity = {}\n", perplexity);
        return 0;
    }

private:
    CLI::Option* replace_ = nullptr;
};

}  // namespace translation
