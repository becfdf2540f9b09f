// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/text/corpus.hpp>

#include "command_line.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "quality.hpp"
#include "search.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate score`
struct score_command {
    std::vector<fs::path> paths;
    fs::path source, target;
    std::size_t batch = 64;
    search_options search = search_options::greedy();

    void declare(CLI::App& app)
    {
        app.description("Perplexity of reference translations, and BLEU against them.");
        app.footer("BLEU is that of greedy translations, or of those that --beam finds, computed as multi-bleu does:\n"
                   "4-grams, brevity penalty, on the words as given. Perplexity is per word, or for a model of --bpe\n"
                   "both per piece, which is its token, and per word. A sentence's end counts as one; an empty line\n"
                   "has nothing else.\n\n"
                   "Example:\n"
                   "  translate score --model en-de.safetensors --source test.en --target test.de");
        add_models(app, paths);
        app.add_option("--source", source, "sentences to translate")->required()->type_name("FILE");
        app.add_option("--target", target, "their reference translations, line by line")->required()->type_name("FILE");
        add_count(app, "--batch", batch, "sentences translated at once");
        search.declare(app);
    }

    int run()
    {
        const std::vector<translator_file> files = load_models(paths);
        const translator_file& file = files.front();
        search.check(looks(files));
        const auto pairs = read_lines(source, target);
        const examples ids{file.source.encode(pairs.source), file.target.encode(pairs.target)};
        progress line(pairs.size());
        const models with(files);
        quality result = evaluate_loss(with, ids, pairs.target, batch);
        result.bleu = evaluate_bleu(with, ids, pairs.target, file.target, batch, search, &line);
        line.clear();
        std::string perplexity = number_text(result.perplexity, 4);
        if (file.target.splitting)
            perplexity += fmt::format(" (a piece), {} (a word)", number_text(result.word_perplexity, 4));
        std::cout << fmt::format("{}\nperplexity = {}\n", result.bleu.text(), perplexity);
        return 0;
    }
};

}  // namespace translation
