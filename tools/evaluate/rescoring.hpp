// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <heed_kit/metrics/tuning.hpp>

#include "../support/nbest.hpp"
#include "command.hpp"
#include "scores.hpp"

namespace evaluation {

/// N-best lists with the scores of several models: "index ||| translation ||| score score ...", index from 0.
struct scored_lists {
    std::vector<std::string> features;                     // score names
    std::vector<std::vector<sentence>> hypotheses;         // of each sentence
    std::vector<std::vector<std::vector<double>>> scores;  // of each hypothesis
};

/// Source of the scores.
struct list_choice {
    std::string list;
    std::vector<std::string> more;

    void declare(CLI::App& app)
    {
        app.add_option("FILE", list,
                       "n-best lists: index ||| translation ||| score, as `translate run --n-best` writes\n"
                       "them; with several scores as written by `translate rescore` and others")
            ->required()
            ->type_name("FILE");
        app.add_option("--scores", more,
                       "additional scores: one line per line of FILE, each with the same number of scores;\n"
                       "may be repeated")
            ->type_name("FILE")
            ->allow_extra_args(false);
    }

    /// `with_length`: the number of words is the last feature.
    scored_lists read(bool with_length) const
    {
        const corpus lines = evaluation::read(list);
        const std::vector<corpus> others = evaluation::read(more);
        for (const corpus& each : others) require_as_many(each.name, each.lines.size(), lines);
        scored_lists result;
        std::size_t own = 0;
        std::vector<std::size_t> widths(others.size(), 0);
        for (std::size_t i = 0; i < lines.lines.size(); ++i) {
            const std::string where = fmt::format("{}:{}", lines.name, i + 1);
            const auto [index, words, numbers] = program::parse_nbest(lines.lines[i], where);
            const std::size_t lists_so_far = result.hypotheses.size();
            if (index != lists_so_far && index + 1 != lists_so_far)
                throw heed::error(fmt::format("{}: found index {}, expected {}; the lists of all "
                                              "sentences must be consecutive, from index 0",
                                              where, index, lists_so_far));
            if (index == lists_so_far) {
                result.hypotheses.emplace_back();
                result.scores.emplace_back();
            }
            std::vector<double> scores = numbers_of(numbers, where, own);
            for (std::size_t k = 0; k < others.size(); ++k) {
                const auto add = numbers_of(others[k].lines[i], fmt::format("{}:{}", others[k].name, i + 1), widths[k]);
                scores.insert(scores.end(), add.begin(), add.end());
            }
            if (with_length) scores.push_back(static_cast<double>(words.size()));
            result.hypotheses.back().push_back(words);
            result.scores.back().push_back(std::move(scores));
        }
        const std::size_t count = result.scores.front().front().size();
        for (std::size_t m = 0; m < count; ++m)
            result.features.push_back(with_length && m + 1 == count ? "words" : fmt::format("score{}", m + 1));
        return result;
    }

private:
    /// `width`: the number of scores on a line, known after the first line.
    static std::vector<double> numbers_of(const sentence& tokens, const std::string& where, std::size_t& width)
    {
        std::vector<double> numbers;
        for (const std::string& each : tokens) {
            const char* const end = each.data() + each.size();
            const auto read = std::from_chars(each.data(), end, numbers.emplace_back());
            if (read.ptr != end || read.ec != std::errc{} || !std::isfinite(numbers.back()))
                throw heed::error(fmt::format("{}: \"{}\" is not a score", where, each));
        }
        if (width == 0) width = numbers.size();
        if (numbers.empty() || numbers.size() != width)
            throw heed::error(fmt::format("{}: has {}; each line must have the same number, at least one", where,
                                          heed::counted(numbers.size(), "score")));
        return numbers;
    }
};

/// Tunes weights for the scores of n-best lists.
struct tune_command : command {
    list_choice lists;
    std::vector<std::string> references;
    std::string metric = "bleu", output;
    bool with_length = false;
    heed::metrics::tuning_options how;

    void declare(CLI::App& app) override
    {
        app.description("Weights for combining several scores in n-best lists: those with the highest\n"
                        "BLEU, or the lowest TER or TB, on a development set (Och 2003). `evaluate rerank` uses them.");
        lists.declare(app);
        declare_output(app, "evaluate tune --reference val.de --length --output val.weights val.nbest");
        declare_references(app, references);
        app.add_option("--metric", metric, "bleu, ter or tb; tokens as given, BLEU unsmoothed")
            ->check(CLI::IsMember({"bleu", "ter", "tb"}).description(""))
            ->type_name("NAME")
            ->capture_default_str();
        app.add_flag("--length", with_length, "use the number of words of a translation as a score");
        app.add_option("--output", output, "write the weights")->type_name("FILE");
        app.add_option("--restarts", how.restarts, "number of additional random starting points")
            ->transform(whole(0, 100000))
            ->type_name("N")
            ->capture_default_str();
        app.add_option("--seed", how.seed, "random seed; equal seeds give equal weights")
            ->transform(whole(0, std::uint64_t{1} << 62))
            ->type_name("N")
            ->capture_default_str();
    }

    report run() override
    {
        if (output == "-")
            throw program::misuse("tune: --output - conflicts with the table on standard output; name a file");
        if (!output.empty()) {
            std::vector<std::string> inputs = references;
            inputs.push_back(lists.list);
            inputs.insert(inputs.end(), lists.more.begin(), lists.more.end());
            check_output(output, inputs);
        }
        const scored_lists all = lists.read(with_length);
        const std::vector<corpus> golden = read_references(references);
        require_as_many(fmt::format("{}, a line for each index,", lists.list), all.hypotheses.size(), golden.front());

        const auto rated = rate(all, golden);
        const bleu_choice as_given;
        const auto value = [&](const edits_and_grams& sum) {
            return metric == "bleu"  ? as_given(sum.grams).score
                   : metric == "ter" ? metrics::ter(sum.edits)
                                     : sum.tb(as_given);
        };
        const double sign = metric == "bleu" ? 1 : -1;
        const auto tuned = metrics::tune(
            rated, [&](const edits_and_grams& sum) { return sign * value(sum); }, how);

        report result;
        result.table = {{"", metric}};
        result.table.push_back({"the first score alone", fmt::format("{:.2f}", sign * tuned.first_score)});
        result.table.push_back({"tuned", fmt::format("{:.2f}", sign * tuned.score)});
        result.data = {{"metric", metric},
                       {"references", references},
                       {"sentences", all.hypotheses.size()},
                       {"first_score", sign * tuned.first_score},
                       {"score", sign * tuned.score},
                       {"weights", json::object()}};
        std::string text;
        for (std::size_t m = 0; m < all.features.size(); ++m) {
            result.table.push_back({"weight of " + all.features[m], fmt::format("{:.4f}", tuned.weights[m])});
            result.data["weights"][all.features[m]] = tuned.weights[m];
            text += fmt::format("{} {}\n", all.features[m], tuned.weights[m]);
        }
        result.note =
            fmt::format("{}, {}; the weights are optimal for these sentences only",
                        heed::counted(all.hypotheses.size(), "sentence"), heed::counted(golden.size(), "reference"));
        result.file = output;
        result.contents = std::move(text);
        return result;
    }

private:
    metrics::rated_lists<edits_and_grams> rate(const scored_lists& all, const std::vector<corpus>& golden) const
    {
        std::vector<sentence> hypotheses;
        std::vector<std::vector<sentence>> known(golden.size());
        for (std::size_t s = 0; s < all.hypotheses.size(); ++s) {
            hypotheses.insert(hypotheses.end(), all.hypotheses[s].begin(), all.hypotheses[s].end());
            for (std::size_t r = 0; r < golden.size(); ++r)
                known[r].insert(known[r].end(), all.hypotheses[s].size(), golden[r].lines[s]);
        }
        const auto grams = metrics::bleu_statistics(hypotheses, known, shown("translations"));
        std::vector<metrics::ter_counts> edits(hypotheses.size());
        if (metric != "bleu") edits = metrics::ter_statistics(hypotheses, known, shown("translations"));
        metrics::rated_lists<edits_and_grams> result;
        std::size_t next = 0;
        for (const auto& list : all.scores) {
            result.emplace_back();
            for (const auto& scores : list) {
                result.back().push_back({scores, {edits[next], grams[next]}});
                ++next;
            }
        }
        return result;
    }
};

/// Selects translations with tuned weights.
struct rerank_command : command {
    list_choice lists;
    std::string weights, output;

    void declare(CLI::App& app) override
    {
        app.description("The translations selected from n-best lists by the weights of `evaluate tune`, one per line.");
        lists.declare(app);
        declare_output(app, "evaluate rerank --weights val.weights --output test.de test.nbest");
        app.add_option("--weights", weights, "output of `evaluate tune`, for the same scores in the same order")
            ->required()
            ->type_name("FILE");
        app.add_option("--output", output, "write the translations; -: to standard output")
            ->required()
            ->type_name("FILE");
    }

    report run() override
    {
        const bool to_standard_output = output == "-";
        if (to_standard_output && as_json)
            throw program::misuse("rerank: --output - conflicts with the report on standard output; name a file");
        if (!to_standard_output) {
            std::vector<std::string> inputs = lists.more;
            inputs.insert(inputs.end(), {lists.list, weights});
            check_output(output, inputs);
        }
        const auto [names, by] = read_weights();
        const bool with_length = names.back() == "words";
        const scored_lists all = lists.read(with_length);
        if (all.features != names)
            throw heed::error(fmt::format("{} has weights for {}, got {}; pass the scores used for tuning", weights,
                                          heed::text::join(names, ", "), heed::text::join(all.features, ", ")));
        std::string text;
        std::size_t others = 0;
        for (std::size_t s = 0; s < all.hypotheses.size(); ++s) {
            const std::size_t best = metrics::chosen_hypothesis(all.scores[s], by);
            others += best > 0 ? 1u : 0u;
            text += heed::text::join(all.hypotheses[s][best]) + "\n";
        }
        report result;
        result.data = {{"sentences", all.hypotheses.size()}, {"not_the_first", others}};
        if (to_standard_output) {
            program::print(text);
            return result;
        }
        result.file = output;
        result.contents = heed::text::after_byte_order_mark(text);
        result.note = fmt::format("{}, {} not the first of their list: {}",
                                  heed::counted(all.hypotheses.size(), "translation"), others, output);
        return result;
    }

private:
    std::pair<std::vector<std::string>, std::vector<double>> read_weights() const
    {
        std::pair<std::vector<std::string>, std::vector<double>> result;
        const corpus file = read(weights);
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            const sentence& line = file.lines[i];
            double value = 0;
            bool good = line.size() == 2;
            if (good) {
                const char* const end = line[1].data() + line[1].size();
                const auto read = std::from_chars(line[1].data(), end, value);
                good = read.ptr == end && read.ec == std::errc{} && std::isfinite(value);
            }
            if (!good)
                throw heed::error(fmt::format("{}:{}: expected the name of a score and its weight, as `evaluate tune` "
                                              "writes them",
                                              file.name, i + 1));
            result.first.push_back(line[0]);
            result.second.push_back(value);
        }
        return result;
    }
};

}  // namespace evaluation
