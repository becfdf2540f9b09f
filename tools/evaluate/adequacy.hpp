// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <heed_kit/metrics/adequacy.hpp>

#include "command.hpp"

namespace evaluation {

/// Source words that receive too little attention, and the spread of the weights.
struct adequacy_command : command {
    std::string source, output;
    bool of_links = false;
    heed::metrics::adequacy_options how;
    resampling sure;

    void declare(CLI::App& app) override
    {
        app.description("Source words that a translation overlooks: those that receive less than --threshold\n"
                        "attention in total. Each target word distributes 1. Also the mean entropy of the weights.");
        declare_systems(app,
                        "weights, as `translate align --weights` writes them: a line for each target word with a\n"
                        "number for each source word and the end; a blank line after each pair",
                        "evaluate adequacy --source test.en system.weights");
        CLI::Option* const from =
            app.add_option("--source", source,
                           "the source sentences; used to check the number of weights, and required to\n"
                           "count the words of sentences with an empty translation")
                ->type_name("FILE");
        app.add_flag("--links", of_links, "the files have links i-j instead: words without one are overlooked")
            ->needs(from);
        app.add_option("--threshold", how.threshold, "less attention than this is too little")
            ->check(number(1e-6, 1000))
            ->type_name("X")
            ->capture_default_str();
        app.add_option("--output", output, "write the overlooked words of the only FILE, line by line")
            ->needs(from)
            ->type_name("FILE");
        sure.declare(app);
    }

    report run() override
    {
        namespace metrics = heed::metrics;
        if (!output.empty()) {
            if (systems.size() != 1)
                throw program::misuse(
                    fmt::format("adequacy: --output requires exactly one file, got {}", systems.size()));
            if (output == "-")
                throw program::misuse("adequacy: --output - conflicts with the table on standard output; name a file");
            check_output(output, {systems.front(), source});
        }
        std::optional<corpus> from;
        if (!source.empty()) from = read(source);
        report result;
        result.table = {{"system", "overlooked", sure.title(), "words", "of", "sentences", "of"}};
        result.note = fmt::format("overlooked: source words with attention below {:g}, in percent", how.threshold);
        if (!of_links) {
            result.table.front().push_back("entropy");
            result.note += "\nentropy: of the weights of a target word, in bits; the mean";
        }
        result.data = {{"metric", "adequacy"}, {"threshold", how.threshold}, {"systems", json::array()}};
        std::optional<std::size_t> sentences;
        for (const corpus& file : read(systems)) {
            mean entropy;
            const std::vector<std::vector<double>> received =
                of_links ? from_links(file, *from) : from_weights(file, from, entropy);
            if (sentences.value_or(received.size()) != received.size())
                throw heed::error(fmt::format("{} has {}, {} has {}; the numbers must be equal", file.name,
                                              heed::counted(received.size(), "pair"), systems.front(), *sentences));
            sentences = received.size();
            std::vector<metrics::adequacy_counts> statistics;
            for (const std::vector<double>& each : received) statistics.push_back(metrics::count_overlooked(each, how));
            const auto spread = sure(statistics, [](const metrics::adequacy_counts& sum) { return 100 * sum.share(); });
            const metrics::adequacy_counts sum = total(statistics);
            result.table.push_back({file.name, fmt::format("{:.2f}", spread.score), sure.text(spread, 2),
                                    std::to_string(sum.overlooked), std::to_string(sum.words),
                                    std::to_string(sum.affected), std::to_string(sum.sentences)});
            json data = json_of(spread);
            if (!of_links) {
                result.table.back().push_back(fmt::format("{:.3f}", entropy.value()));
                data["entropy"] = entropy.value();
            }
            data["file"] = file.name;
            data["overlooked"] = sum.overlooked;
            data["words"] = sum.words;
            data["affected"] = sum.affected;
            data["sentences"] = sum.sentences;
            result.data["systems"].push_back(std::move(data));
            result.file = output;
            if (!output.empty()) result.contents = overlooked(received, *from);
        }
        result.note += sure.warning(sentences.value_or(0));
        return result;
    }

private:
    struct mean {
        double sum = 0;
        std::size_t count = 0;
        double value() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
    };

    static std::vector<std::vector<double>> from_links(const corpus& file, const corpus& from)
    {
        require_as_many(file.name, file.lines.size(), from);
        std::vector<std::vector<double>> result;
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            const std::string where = fmt::format("{}:{}", file.name, i + 1);
            const auto links = heed::metrics::parse_links(heed::text::join(file.lines[i]), where);
            for (const auto& link : links)
                if (!std::cmp_less(link.first, from.lines[i].size()))
                    throw heed::error(fmt::format("{}: the link {}-{} is outside its source sentence, which has {}",
                                                  where, link.first, link.second,
                                                  heed::counted(from.lines[i].size(), "word")));
            result.push_back(heed::metrics::attention_received(links, from.lines[i].size()));
        }
        return result;
    }

    static std::vector<std::vector<double>> from_weights(const corpus& file, const std::optional<corpus>& from,
                                                         mean& entropy)
    {
        std::vector<std::vector<double>> result;
        std::vector<std::vector<double>> rows;
        const auto finish = [&] {
            const std::size_t pair = result.size();
            if (from && pair >= from->lines.size())
                throw heed::error(
                    fmt::format("{} has more pairs than {} has lines ({})", file.name, from->name, from->lines.size()));
            const std::size_t words = from ? from->lines[pair].size() : rows.empty() ? 0 : rows.front().size() - 1;
            result.push_back(heed::metrics::attention_received(rows, words));
            rows.clear();
        };
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            if (file.lines[i].empty()) {
                finish();
                continue;
            }
            const std::string where = fmt::format("{}:{}", file.name, i + 1);
            rows.push_back(numbers_of(file.lines[i], where));
            const std::size_t wanted = from && result.size() < from->lines.size()
                                           ? from->lines[result.size()].size() + 1
                                           : rows.front().size();
            if (rows.back().size() != wanted)
                throw heed::error(fmt::format("{}: has {}, expected {}: one for each source word and one for the "
                                              "end; a blank line ends a pair",
                                              where, heed::counted(rows.back().size(), "weight"), wanted));
            entropy.sum += heed::metrics::attention_entropy(rows.back());
            ++entropy.count;
        }
        if (!rows.empty()) finish();
        if (from && result.size() != from->lines.size())
            throw heed::error(fmt::format("{} has {}, {} has {}; the numbers must be equal", file.name,
                                          heed::counted(result.size(), "pair"), from->name,
                                          heed::counted(from->lines.size(), "line")));
        return result;
    }

    static std::vector<double> numbers_of(const sentence& line, const std::string& where)
    {
        std::vector<double> numbers;
        for (const std::string& each : line) {
            const char* const end = each.data() + each.size();
            const auto read = std::from_chars(each.data(), end, numbers.emplace_back());
            if (read.ptr != end || read.ec != std::errc{} || !std::isfinite(numbers.back()) || numbers.back() < 0)
                throw heed::error(
                    fmt::format("{}: \"{}\" is not a weight; if these are links, pass --links", where, each));
        }
        return numbers;
    }

    std::string overlooked(const std::vector<std::vector<double>>& received, const corpus& from) const
    {
        std::string text;
        for (std::size_t i = 0; i < received.size(); ++i) {
            sentence words;
            for (const std::size_t word : heed::metrics::overlooked_words(received[i], how))
                words.push_back(from.lines[i][word]);
            text += heed::text::join(words) + "\n";
        }
        return text;
    }
};

}  // namespace evaluation
