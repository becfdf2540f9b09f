// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/metrics/symmetrize.hpp>

#include "command.hpp"

namespace evaluation {

struct align_command : command {
    std::string gold, source, target, output;
    std::vector<std::string> methods;
    std::size_t max_length = 0;
    bool flip = false;

    void declare(CLI::App& app) override
    {
        namespace metrics = heed::metrics;
        app.description("Word alignments compared with human alignments: precision, recall, F1 and AER (Och & Ney "
                        "2003), in percent.");
        declare_systems(app, "links i-j of each line's words (Pharaoh format)",
                        "evaluate align --gold test.gold forward.links reverse.links --symmetrize grow-diag");
        app.add_option("--gold", gold, "human links: i-j sure, ipj possible; positions from 0")->type_name("FILE");
        std::vector<std::string> known;
        for (const auto& each : metrics::symmetrizations) known.emplace_back(each.first);
        app.add_option("--symmetrize", methods,
                       "combine the alignments of two files, both source-target: intersection, union, grow-diag,\n"
                       "grow-diag-final, grow-diag-final-and, grow-diag-strict or grow-diag-final-strict (strict: a\n"
                       "link is added only if neither of its words is linked yet); may be repeated")
            ->check(CLI::IsMember(known).description(""))
            ->type_name("METHOD")
            ->allow_extra_args(false);
        app.add_flag("--flip", flip, "with --symmetrize: the second file is target-source, j-i");
        app.add_option("--output", output, "write the symmetrized links; -: to standard output, if --gold is not given")
            ->type_name("FILE");
        CLI::Option* const from = app.add_option("--source", source, "the sentences, to check that links are in range");
        CLI::Option* const to = app.add_option("--target", target, "their translations");
        from->needs(to)->type_name("FILE");
        to->needs(from)->type_name("FILE");
        app.add_option("--max-length", max_length, "only pairs with at most this many words on each side")
            ->transform(whole(1, std::uint64_t{1} << 30))
            ->needs(from)
            ->type_name("N");
    }

    report run() override
    {
        namespace metrics = heed::metrics;
        if (gold.empty() && output.empty())
            throw program::misuse("align: nothing to do; give --gold, --output or both");
        if (!methods.empty() && systems.size() != 2) throw program::misuse(not_two_files());
        if (methods.empty() && flip) throw program::misuse("align: --flip is for --symmetrize");
        if (!output.empty() && methods.size() != 1)
            throw program::misuse("align: --output requires --symmetrize with exactly one method");
        const bool to_standard_output = output == "-";
        if (to_standard_output && (!gold.empty() || as_json))
            throw program::misuse("align: --output - conflicts with the report on standard output; name a file");
        if (!output.empty() && !to_standard_output) {
            std::vector<std::string> inputs = systems;
            inputs.insert(inputs.end(), {gold, source, target});
            check_output(output, inputs);
        }

        std::vector<std::string> names;
        std::vector<std::vector<metrics::links>> proposals;
        const std::vector<corpus> files = read(systems);
        for (const corpus& file : files) {
            require_as_many(file.name, file.lines.size(), files.front());
            names.push_back(file.name);
            proposals.emplace_back();
            for (std::size_t i = 0; i < file.lines.size(); ++i)
                proposals.back().push_back(metrics::parse_links(heed::text::join(file.lines[i]), place(file, i)));
        }
        if (flip)
            for (metrics::links& links : proposals[1]) links = metrics::flipped(std::move(links));
        for (const std::string& method : methods) {
            names.push_back(method);
            proposals.push_back(metrics::symmetrize(proposals[0], proposals[1], metrics::symmetrization_named(method)));
        }

        std::vector<metrics::gold_links> golden;
        if (!gold.empty()) {
            const corpus file = read(gold);
            require_as_many(files.front().name, files.front().lines.size(), file);
            for (std::size_t i = 0; i < file.lines.size(); ++i)
                golden.push_back(metrics::parse_gold(heed::text::join(file.lines[i]), place(file, i)));
        }
        std::vector<bool> counts(files.front().lines.size(), true);
        if (!source.empty()) check_lengths(files, names, proposals, golden, counts);

        report result;
        result.data = {{"metric", "alignment"}, {"gold", gold}, {"systems", json::array()}};
        if (!golden.empty()) {
            const auto pairs = static_cast<std::size_t>(std::count(counts.begin(), counts.end(), true));
            result.data["sentences"] = pairs;
            result.note = heed::counted(pairs, "sentence pair");
            result.table = {{"", "links", "precision", "recall", "F1", "AER"}};
            for (std::size_t k = 0; k < names.size(); ++k) {
                metrics::alignment_score score;
                for (std::size_t i = 0; i < golden.size(); ++i)
                    if (counts[i]) score.add(proposals[k][i], golden[i]);
                result.table.push_back(
                    {names[k], std::to_string(score.proposed), fmt::format("{:.3f}", 100 * score.precision()),
                     fmt::format("{:.3f}", 100 * score.recall()), fmt::format("{:.3f}", 100 * score.f1()),
                     fmt::format("{:.3f}", 100 * score.aer())});
                result.data["systems"].push_back({{"name", names[k]},
                                                  {"proposed", score.proposed},
                                                  {"sure", score.sure},
                                                  {"proposed_sure", score.proposed_sure},
                                                  {"proposed_possible", score.proposed_possible},
                                                  {"precision", score.precision()},
                                                  {"recall", score.recall()},
                                                  {"f1", score.f1()},
                                                  {"aer", score.aer()}});
            }
        } else if (!to_standard_output) {
            result.note = fmt::format("{} of links: {}", heed::counted(proposals.back().size(), "line"), output);
        }
        if (!output.empty()) {
            std::string text;
            for (const metrics::links& links : proposals.back()) text += metrics::pharaoh(links) + "\n";
            if (to_standard_output) {
                program::print(text);
            } else {
                result.file = output;
                result.contents = std::move(text);
            }
        }
        return result;
    }

private:
    static std::string place(const corpus& file, std::size_t line) { return fmt::format("{}:{}", file.name, line + 1); }

    std::string not_two_files() const
    {
        std::string text =
            fmt::format("align: --symmetrize requires two files, forward and reverse, got {}", systems.size());
        for (const std::string& each : systems)
            for (const auto& known : heed::metrics::symmetrizations)
                if (each == known.first && !std::filesystem::exists(each))
                    return text + fmt::format("; repeat the option for each method: --symmetrize {}", each);
        return text;
    }

    /// Throws unless every link is inside its sentences; drops pairs that are too long.
    void check_lengths(const std::vector<corpus>& files, const std::vector<std::string>& names,
                       const std::vector<std::vector<heed::metrics::links>>& proposals,
                       const std::vector<heed::metrics::gold_links>& golden, std::vector<bool>& counts) const
    {
        const corpus from = read(source), to = read(target);
        require_as_many(from.name, from.lines.size(), files.front());
        require_as_many(to.name, to.lines.size(), files.front());
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const std::size_t rows = from.lines[i].size(), columns = to.lines[i].size();
            const auto check = [&](const std::string& name, const heed::metrics::links& links) {
                for (const auto& [s, t] : links)
                    if (static_cast<std::size_t>(s) >= rows || static_cast<std::size_t>(t) >= columns)
                        throw heed::error(
                            fmt::format("{}:{}: the link {}-{} is outside its sentences, which have {} and {} words; "
                                        "positions count from 0",
                                        name, i + 1, s, t, rows, columns));
            };
            for (std::size_t k = 0; k < files.size(); ++k) check(names[k], proposals[k][i]);
            if (!golden.empty()) {
                check(gold, golden[i].sure);
                check(gold, golden[i].possible);
            }
            counts[i] = max_length == 0 || std::max(rows, columns) <= max_length;
        }
    }
};

}  // namespace evaluation
