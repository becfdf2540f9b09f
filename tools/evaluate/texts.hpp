// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed_kit/metrics/by_length.hpp>
#include <heed_kit/metrics/repetition.hpp>
#include <heed_kit/metrics/words.hpp>
#include <heed_kit/view/chart.hpp>

#include "command.hpp"

namespace evaluation {

struct repetition_command : command {
    std::string reference;
    heed::metrics::repetition_options how;

    void declare(CLI::App& app) override
    {
        app.description("Phrases that a sentence repeats, possibly with other words in between: number and length.\n"
                        "--reference shows how often human translations repeat phrases.");
        declare_systems(app, "translations", "evaluate repetition --reference test.de system.de other.de");
        app.add_option("--reference", reference, "reference translations, for comparison")->type_name("FILE");
        app.add_option("--shortest", how.shortest, "minimum number of words of a phrase repeated later")
            ->transform(whole(1, 1000))
            ->type_name("N")
            ->capture_default_str();
        app.add_option("--shortest-adjacent", how.shortest_adjacent,
                       "minimum number of words of a phrase repeated immediately")
            ->transform(whole(1, 1000))
            ->type_name("N")
            ->capture_default_str();
    }

    report run() override
    {
        std::vector<corpus> texts = read(systems);
        if (!reference.empty()) {
            const corpus golden = read(reference);
            for (const corpus& text : texts) require_as_many(text.name, text.lines.size(), golden);
            texts.push_back(golden);
        }
        report result;
        result.table = {
            {"text", "sentences", "affected", "repetitions", "adjacent", "mean length", "words", "share", "most"}};
        result.note =
            "share: repeated words relative to all words, in percent; most: occurrences of the most repeated phrase";
        result.data = {{"metric", "repetition"},
                       {"shortest", how.shortest},
                       {"shortest_adjacent", how.shortest_adjacent},
                       {"texts", json::array()}};
        for (const corpus& text : texts) {
            const heed::metrics::repetition_statistics all = heed::metrics::count_repetitions(text.lines, how);
            const double part = heed::metrics::word_statistics::share(all.repeated_words, all.words);
            result.table.push_back({text.name, std::to_string(all.sentences), std::to_string(all.affected),
                                    std::to_string(all.repetitions), std::to_string(all.adjacent),
                                    fmt::format("{:.2f}", all.mean_length()), std::to_string(all.words),
                                    fmt::format("{:.2f}", 100 * part), std::to_string(all.most)});
            result.data["texts"].push_back({{"file", text.name},
                                            {"sentences", all.sentences},
                                            {"affected", all.affected},
                                            {"repetitions", all.repetitions},
                                            {"adjacent", all.adjacent},
                                            {"repeated_words", all.repeated_words},
                                            {"mean_length", all.mean_length()},
                                            {"words", all.words},
                                            {"most", all.most}});
        }
        return result;
    }
};

struct lengths_command : command {
    std::string reference, source, picture;
    std::string bounds = "10,20,30,40,50";

    void declare(CLI::App& app) override
    {
        app.description("BLEU by sentence length: source length if --source is given, else reference length.");
        declare_systems(app, "translations; one column per system",
                        "evaluate lengths --reference test.de --source test.en --bounds 10,20,30 system.de");
        app.add_option("--reference", reference, "reference translations")->required()->type_name("FILE");
        app.add_option("--source", source, "source sentences")->type_name("FILE");
        app.add_option("--picture", picture, "write a chart to this file, as SVG")->type_name("FILE");
        app.add_option("--bounds", bounds, "the maximum length of each group except the last, separated by commas")
            ->check(CLI::Validator(
                [](std::string& text) -> std::string {
                    try {
                        numbers_of(text);
                    } catch (const heed::error& reason) {
                        return reason.what();
                    }
                    return "";
                },
                ""))
            ->type_name("LIST")
            ->capture_default_str();
    }

    report run() override
    {
        check_files();
        const std::vector<std::size_t> longest = numbers_of(bounds);
        const corpus golden = read(reference);
        const corpus measured = source.empty() ? golden : read(source);
        require_as_many(measured.name, measured.lines.size(), golden);
        std::vector<std::size_t> lengths;
        for (const sentence& each : measured.lines) lengths.push_back(each.size());

        report result;
        result.table = {{"words", "sentences"}};
        result.note = fmt::format("BLEU, unsmoothed, tokens as given; lengths of {}", measured.name);
        result.data = {{"metric", "bleu by length"},
                       {"reference", golden.name},
                       {"lengths_of", measured.name},
                       {"systems", json::array()}};
        heed::view::chart chart{.x_label = source.empty() ? "words of the reference (sentences)"
                                                          : "words of the source (sentences)",
                                .y_label = "BLEU",
                                .all = {}};
        for (const corpus& system : read(systems)) {
            require_as_many(system.name, system.lines.size(), golden);
            const auto statistics = heed::metrics::bleu_statistics(system.lines, std::span(&golden.lines, 1));
            const auto buckets = heed::metrics::bleu_by_length(statistics, lengths, longest);
            json list = json::array();
            heed::view::series& curve = chart.all.emplace_back();
            curve.name = system.name;
            chart.groups.clear();
            for (std::size_t i = 0; i < buckets.size(); ++i) {
                const heed::metrics::length_bucket& bucket = buckets[i];
                const heed::metrics::bleu_score score = bucket.bleu();
                if (bucket.sentences != 0) {
                    curve.ys.push_back(score.score);
                    // Scores of small groups are unreliable.
                    chart.groups.push_back(fmt::format("{} ({})", bucket.text(), bucket.sentences));
                }
                if (result.table.size() < i + 2)
                    result.table.push_back({bucket.text(), std::to_string(bucket.sentences)});
                result.table[i + 1].push_back(bucket.sentences == 0 ? "-" : fmt::format("{:.2f}", score.score));
                list.push_back({{"lengths", bucket.text()},
                                {"shortest", bucket.shortest},
                                {"sentences", bucket.sentences},
                                {"score", score.score},
                                {"brevity_penalty", score.brevity_penalty}});
            }
            result.table[0].push_back(system.name);
            result.data["systems"].push_back({{"file", system.name}, {"groups", std::move(list)}});
        }
        result.file = picture;
        if (!picture.empty()) result.contents = heed::view::svg(chart);
        return result;
    }

private:
    /// Parses "10,20,30". Throws heed::error for anything else, or if the numbers do not ascend.
    static std::vector<std::size_t> numbers_of(const std::string& list)
    {
        std::vector<std::size_t> numbers;
        for (std::size_t begin = 0; begin <= list.size();) {
            const std::size_t end = std::min(list.find(',', begin), list.size());
            std::string each = list.substr(begin, end - begin);
            const std::string wrong = whole(0, std::uint64_t{1} << 30)(each);
            if (!wrong.empty()) {
                throw heed::error((each.empty() ? "missing number" : wrong) +
                                  "; lengths are numbers separated by commas, such as 10,20,30");
            }
            numbers.push_back(std::stoul(each));
            if (numbers.size() > 1 && numbers.back() <= numbers[numbers.size() - 2])
                throw heed::error(fmt::format("{} after {}; lengths must ascend, such as 10,20,30", numbers.back(),
                                              numbers[numbers.size() - 2]));
            begin = end + 1;
        }
        return numbers;
    }

    void check_files() const
    {
        for (const std::string& each : systems) {
            if (each.find_first_not_of("0123456789,") == each.npos && !std::filesystem::exists(each))
                throw program::misuse(
                    fmt::format("{}: no such file; separate the lengths of --bounds by commas without spaces"
                                ", as in --bounds 10,20,30",
                                each));
        }
        if (picture == "-")
            throw program::misuse("lengths: --picture - conflicts with the table on standard output; name a file");
        if (picture.empty()) return;
        std::vector<std::string> inputs = systems;
        inputs.insert(inputs.end(), {reference, source});
        check_output(picture, inputs);
    }
};

struct words_command : command {
    std::string reference;

    void declare(CLI::App& app) override
    {
        app.description("Lexical richness: distinct words and pairs, words that occur once, <unk>.");
        declare_systems(app, "texts", "evaluate words --reference test.de system.de");
        app.add_option("--reference", reference,
                       "a text for comparing the distinct words, such as the reference translations")
            ->type_name("FILE");
    }

    report run() override
    {
        std::vector<corpus> texts = read(systems);
        report result;
        result.table = {
            {"text", "sentences", "words", "mean", "distinct", "once", "distinct-1", "distinct-2", "<unk>"}};
        result.data = {{"metric", "words"}, {"texts", json::array()}};
        if (!reference.empty()) {
            texts.push_back(read(reference));
            result.table[0].insert(result.table[0].end(), {"known", "covered"});
            result.note = fmt::format(
                "known: share of the distinct words that are also in {}; covered: share of its distinct words "
                "that are in the text",
                texts.back().name);
            result.data["reference"] = texts.back().name;
        }
        for (const corpus& text : texts) {
            const heed::metrics::word_statistics all = heed::metrics::count_words(text.lines);
            result.table.push_back({text.name, std::to_string(all.sentences), std::to_string(all.words),
                                    fmt::format("{:.2f}", all.mean_length()), std::to_string(all.distinct),
                                    std::to_string(all.once), fmt::format("{:.4f}", all.distinct_1()),
                                    fmt::format("{:.4f}", all.distinct_2()), std::to_string(all.unknown)});
            json data{{"file", text.name},
                      {"sentences", all.sentences},
                      {"words", all.words},
                      {"mean_length", all.mean_length()},
                      {"distinct", all.distinct},
                      {"once", all.once},
                      {"unknown", all.unknown},
                      {"distinct_1", all.distinct_1()},
                      {"distinct_2", all.distinct_2()}};
            if (!reference.empty()) {
                const heed::metrics::word_overlap both = heed::metrics::compare_words(text.lines, texts.back().lines);
                result.table.back().push_back(fmt::format("{:.3f}", both.known()));
                result.table.back().push_back(fmt::format("{:.3f}", both.covered()));
                data["known"] = both.known();
                data["covered"] = both.covered();
            }
            result.data["texts"].push_back(std::move(data));
        }
        return result;
    }
};

}  // namespace evaluation
