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

#include <heed/metrics/bleu.hpp>
#include <heed/text/corpus.hpp>

#include "command_line.hpp"
#include "dictionary.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "quality.hpp"
#include "search.hpp"
#include "word_weights.hpp"

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
        app.description("Perplexity of reference translations, and BLEU against them.");
        app.footer("BLEU is that of greedy translations, or of those that --beam finds, computed as multi-bleu does:\n"
                   "4-grams, brevity penalty, on the words as given. Perplexity is per word, or for a model of --bpe\n"
                   "both per piece, which is its token, and per word. A sentence's end counts as one; an empty line\n"
                   "has nothing else. With --replace-unknown there are two BLEUs, before and after it.\n\n"
                   "Example:\n"
                   "  translate score --model en-de.safetensors --source test.en --target test.de");
        add_models(app, paths);
        app.add_option("--source", source, "sentences to translate")->required()->type_name("FILE");
        app.add_option("--target", target, "their reference translations, line by line")->required()->type_name("FILE");
        add_count(app, "--batch", batch, "sentences translated at once");
        search.declare(app);
        replace_ = add_replacements(app, replacements,
                                    "also BLEU with unknown words replaced by the source word with the\n"
                                    "most weight, or by its translation in this dictionary");
    }

    int run()
    {
        const std::vector<translator_file> files = load_models(paths);
        const translator_file& file = files.front();
        search.check(looks(files));
        const bool replaces = replace_->count() > 0;
        if (replaces) require_replaceable(looks(files), paths.front());
        std::unordered_map<std::string, std::string> meanings;
        if (!replacements.empty()) meanings = dictionary(replacements).best();
        const auto pairs = read_lines(source, target);
        const examples ids{file.source.encode(pairs.source), file.target.encode(pairs.target)};
        progress line(pairs.size());
        const models with(files);
        const quality result = evaluate_loss(with, ids, pairs.target, batch);
        const clock::time_point start = clock::now();
        const auto all = translate_all(with, ids.source, batch, replaces, search, &line);
        decoding_time took{seconds_since(start), all.size(), 0};
        line.clear();
        std::vector<sentence> before, after;
        for (std::size_t i = 0; i < all.size(); ++i) {
            reading read;
            if (!pairs.source[i].empty()) read = file.target.read(all[i].words);
            took.words += read.words.size();
            before.push_back(read.words);
            if (!replaces) continue;
            replace_unknown(file.source, pairs.source[i], all[i].weights, meanings, read);
            after.push_back(read.words);
        }
        say(took.text());
        std::string perplexity = number_text(result.perplexity, 4);
        if (file.target.splitting)
            perplexity += fmt::format(" (a piece), {} (a word)", number_text(result.word_perplexity, 4));
        std::cout << fmt::format("{}\n", heed::metrics::bleu(before, pairs.target).text());
        if (replaces)
            std::cout << fmt::format("with unknown words replaced: {}\n",
                                     heed::metrics::bleu(after, pairs.target).text());
        std::cout << fmt::format("perplexity = {}\n", perplexity);
        return 0;
    }

private:
    CLI::Option* replace_ = nullptr;
};

}  // namespace translation
