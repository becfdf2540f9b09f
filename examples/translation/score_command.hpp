// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <iostream>

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
    fs::path model, source, target;
    std::size_t batch = 64;
    search_options search = search_options::greedy();

    void declare(CLI::App& app)
    {
        app.description("Perplexity of reference translations, and BLEU against them.");
        app.footer("BLEU is that of greedy translations, or of those that --beam finds, computed as multi-bleu does:\n"
                   "4-grams, brevity penalty, on the words as given. Perplexity is a token's: a word's, or a piece's\n"
                   "for a model of --bpe.\n\n"
                   "Example:\n"
                   "  translate score --model en-de.safetensors --source test.en --target test.de");
        app.add_option("--model", model, "what `translate train` wrote")->required()->type_name("FILE");
        app.add_option("--source", source, "sentences to translate")->required()->type_name("FILE");
        app.add_option("--target", target, "their reference translations, line by line")->required()->type_name("FILE");
        app.add_option("--batch", batch, "sentences translated at once")
            ->check(positive)
            ->type_name("N")
            ->capture_default_str();
        search.declare(app);
    }

    int run()
    {
        const translator_file file = load_model(model);
        search.check(looks(file));
        const auto pairs = heed::text::read_parallel(source, target);
        const examples ids{file.source.encode(pairs.source), file.target.encode(pairs.target)};
        progress line(pairs.size());
        const quality result = evaluate(*file.system, ids, pairs.target, file.target, batch, search, &line);
        line.clear();
        std::cout << fmt::format("{}\nperplexity = {:.4f}\n", result.bleu.text(), result.perplexity);
        return 0;
    }
};

}  // namespace translation
