// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/seq2seq/forced.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_translator/search.hpp>

#include "../support/nbest.hpp"
#include "command_line.hpp"
#include "interrupt.hpp"
#include "library.hpp"
#include "progress.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate rescore`
struct rescore_command {
    std::vector<fs::path> paths;
    fs::path source, lists, output;
    std::size_t batch = 64;

    void declare(CLI::App& app)
    {
        app.description("Add scores of other models to n-best lists, for `evaluate tune`.");
        app.footer(
            "Each line of the lists gets one additional score per model: the log-probability of its translation\n"
            "and end, without penalties. Models may have different vocabularies, since translations are read as\n"
            "words. `evaluate tune` finds weights for the scores; `evaluate rerank` selects translations.\n\n"
            "Example:\n"
            "  translate rescore --model en-de.safetensors --source test.en --n-best test.nbest \\\n"
            "      --output two.nbest");
        app.add_option("--model", paths, "models trained by `translate train`; each adds a score")
            ->required()
            ->take_all()
            ->type_name("FILE");
        app.add_option("--source", source, "the sentences that were translated")->required()->type_name("FILE");
        app.add_option("--n-best", lists, "n-best lists, as `translate run --n-best` writes them")
            ->required()
            ->type_name("FILE");
        app.add_option("--output", output, "output file; standard output if not given")->type_name("FILE");
        add_count(app, "--batch", batch, "translations per batch");
    }

    int run()
    {
        std::vector<fs::path> inputs = paths;
        inputs.insert(inputs.end(), {source, lists});
        if (!output.empty()) check_output(output, inputs);
        const std::vector<sentence> sources = read_lines(source);
        std::vector<std::string> lines;
        std::vector<sentence> sides[2];  // source sentence and translation of each line
        for (const sentence& tokens : read_lines(lists)) {
            const std::string where = fmt::format("{}:{}", lists.string(), lines.size() + 1);
            program::nbest_line line = program::parse_nbest(tokens, where);
            if (line.index >= sources.size())
                throw heed::error(fmt::format("{}: index {}, but {} has {}; indices start at 0", where, line.index,
                                              source.string(), heed::counted(sources.size(), "line")));
            sides[0].push_back(sources[line.index]);
            sides[1].push_back(line.words);
            lines.push_back(
                program::nbest_text(line.index, heed::text::join(line.words), heed::text::join(line.scores)));
        }
        stop_politely();
        progress seen(lines.size() * paths.size());
        for (const fs::path& path : paths) {  // one at a time, so that only the scores are kept
            add_scores(load_model(path), sides[0], sides[1], lines, seen);
            if (interrupted() != 0) return 128 + interrupted();
        }
        seen.clear();
        std::string text;
        for (const std::string& line : lines) text += line + '\n';
        program::write(output, text);
        return 0;
    }

private:
    void add_scores(const translator_file& file, const std::vector<sentence>& from, const std::vector<sentence>& to,
                    std::vector<std::string>& lines, progress& seen) const
    {
        const auto sources = file.source.encode(from), targets = file.target.encode(to);
        const models with(*file.system);
        for (const auto& which : batches_by_length(targets, batch)) {
            if (interrupted() != 0) return;
            const auto some = heed::seq2seq::make_source(chosen(sources, which));
            const auto at_work = with.decode(some);
            const auto forced =
                heed::seq2seq::force(*at_work, some.real, chosen(targets, which), {.with_weights = false});
            for (std::size_t k = 0; k < which.size(); ++k)
                lines[which[k]] += fmt::format(" {:.6f}", forced[k].log_probability());
            seen.add(which.size());
        }
    }
};

}  // namespace translation
