// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/repetition.hpp>
#include <heed_kit/metrics/ribes.hpp>
#include <heed_kit/metrics/ter.hpp>

#include "command.hpp"

namespace evaluation {

/// The statistics of each sentence, from which the scores of any subset, or of a resample, can be computed.
struct sentences_command : command {
    std::string reference;

    void declare(CLI::App& app) override
    {
        app.description("Statistics of each sentence: words, matching n-grams, TER's edits, RIBES and repetitions.\n"
                        "BLEU, TER and RIBES of any selection of sentences follow from them.");
        app.add_option("FILE", systems, "translations of one system")->required()->expected(1)->type_name("FILE");
        declare_output(app, "evaluate sentences --reference test.de system.de");
        app.add_option("--reference", reference, "reference translations")->required()->type_name("FILE");
    }

    report run() override
    {
        namespace metrics = heed::metrics;
        const std::vector<corpus> golden{read(reference)};
        const corpus system = read(systems.front());
        require_as_many(system.name, system.lines.size(), golden.front());
        const std::vector<std::vector<sentence>> references = lines_of(golden);
        const auto grams = metrics::bleu_statistics(system.lines, references);
        const auto edits = metrics::ter_statistics(system.lines, references, shown());
        const auto order = metrics::ribes_statistics(system.lines, references, {});
        report result;
        result.table = {{"sentence", "words", "reference", "1", "2", "3", "4-grams", "edits", "RIBES", "repetitions"}};
        result.data = {
            {"metric", "sentences"}, {"reference", reference}, {"file", system.name}, {"sentences", json::array()}};
        for (std::size_t i = 0; i < system.lines.size(); ++i) {
            const metrics::bleu_counts& match = grams[i];
            const std::size_t repeated = metrics::find_repetitions(system.lines[i]).size();
            std::vector<std::string> row{std::to_string(i + 1), std::to_string(match.hypothesis_length),
                                         std::to_string(match.reference_length)};
            for (const std::size_t each : match.matches) row.push_back(std::to_string(each));
            row.push_back(std::to_string(edits[i].edits));
            row.push_back(fmt::format("{:.4f}", order[i].score()));
            row.push_back(std::to_string(repeated));
            result.table.push_back(std::move(row));
            result.data["sentences"].push_back({{"words", match.hypothesis_length},
                                                {"reference", match.reference_length},
                                                {"matches", match.matches},
                                                {"edits", edits[i].edits},
                                                {"ribes", order[i].score()},
                                                {"repetitions", repeated}});
        }
        return result;
    }
};

}  // namespace evaluation
