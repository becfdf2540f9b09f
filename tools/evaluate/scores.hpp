// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/chrf.hpp>
#include <heed_kit/metrics/error_rate.hpp>
#include <heed_kit/metrics/perplexity.hpp>
#include <heed_kit/metrics/ribes.hpp>
#include <heed_kit/metrics/ter.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>

#include "../support/raw_lines.hpp"
#include "command.hpp"

namespace evaluation {

namespace metrics = heed::metrics;

/// BLEU settings.
struct bleu_choice {
    std::string tokenize = "none";
    std::string smoothing = "none";

    /// `of_what` is a prefix of the help text if there are other scores as well.
    void declare(CLI::App& app, const std::string& of_what = "")
    {
        options_.push_back(
            app.add_option("--tokenize", tokenize, of_what + "none: tokens as given; 13a: as mteval-v13a and sacrebleu")
                ->check(CLI::IsMember({"none", "13a"}).description(""))
                ->type_name("NAME")
                ->capture_default_str());
        options_.push_back(app.add_option("--smoothing", smoothing, of_what + "none: as multi-bleu; exp: as sacrebleu")
                               ->check(CLI::IsMember({"none", "exp"}).description(""))
                               ->type_name("NAME")
                               ->capture_default_str());
    }

    /// Refuses options that no score uses.
    void require_none(const std::string& why) const
    {
        for (const CLI::Option* each : options_)
            if (each->count() > 0) throw program::misuse(each->get_name() + why);
    }

    std::string text() const { return fmt::format("tokenize {}, smoothing {}", tokenize, smoothing); }

    std::vector<sentence> tokens(const corpus& file) const
    {
        if (tokenize == "none") return file.lines;
        std::vector<sentence> result;
        result.reserve(file.lines.size());
        for (const sentence& line : file.lines) result.push_back(metrics::tokenize_13a(heed::text::join(line)));
        return result;
    }

    std::vector<std::vector<sentence>> tokens(const std::vector<corpus>& files) const
    {
        std::vector<std::vector<sentence>> result;
        for (const corpus& each : files) result.push_back(tokens(each));
        return result;
    }

    /// Looks for untokenized text if it is compared as given.
    void see_raw(const corpus& system, const std::vector<corpus>& golden)
    {
        if (tokenize != "none") return;
        for (const sentence& line : system.lines) raw_system_.add(line);
        if (!first_) first_ = system.name;
        if (*first_ != system.name) return;  // the same references again
        for (const corpus& each : golden)
            for (const sentence& line : each.lines) raw_references_.add(line);
    }
    /// Prints notes about untokenized text to standard error.
    void tell_raw() const
    {
        for (const auto& [whose, lines] : {std::pair("references", raw_references_), {"system", raw_system_}}) {
            if (!lines.many()) continue;
            std::cerr << fmt::format(
                "note: {}: {}; BLEU counts a word with a mark and the word without it as different. "
                "--tokenize 13a splits marks off, as sacrebleu does\n",
                whose, lines.text());
            return;
        }
    }

    /// Statistics of each sentence.
    std::vector<metrics::bleu_counts> statistics(const corpus& system, const std::vector<corpus>& golden) const
    {
        return metrics::bleu_statistics(tokens(system), tokens(golden));
    }

    metrics::bleu_score operator()(const metrics::bleu_counts& counts) const
    {
        return metrics::bleu(counts, smoothing == "exp" ? metrics::smoothing::exponential : metrics::smoothing::none);
    }

private:
    std::vector<const CLI::Option*> options_;
    program::raw_lines raw_system_, raw_references_;
    std::optional<std::string> first_;  // the first system
};

/// A table line and a JSON entry of a system: `score` computes the value from the summed sentence statistics, and
/// `more` adds further values to both.
template <class Statistics, class Score, class More>
void add_system(report& result, const std::string& name, const std::vector<Statistics>& statistics,
                const resampling& sure, int digits, const Score& score, const More& more)
{
    const auto spread = sure(statistics, score);
    std::vector<std::string> row{name, fmt::format("{:.{}f}", spread.score, digits), sure.text(spread, digits)};
    json data = json_of(spread);
    data["file"] = name;
    more(statistics, row, data);
    result.table.push_back(std::move(row));
    result.data["systems"].push_back(std::move(data));
}

/// A table line and a JSON entry per system: `judge` returns the statistics of its sentences, `score` computes the
/// value from their sum, and `more` adds further values to the line and the entry.
template <class Judge, class Score, class More>
void score_all(report& result, const std::vector<std::string>& systems, const corpus& golden, const resampling& sure,
               int digits, const Judge& judge, const Score& score, const More& more)
{
    for (const corpus& system : read(systems)) {
        require_as_many(system.name, system.lines.size(), golden);
        add_system(result, system.name, judge(system), sure, digits, score, more);
    }
    result.note += sure.warning(golden.lines.size());
}

/// As above for systems read in chunks: `judge(system, references)` returns the statistics of a chunk.
template <class Judge, class Score, class More>
void score_all_parts(report& result, const std::vector<std::string>& systems,
                     const std::vector<std::string>& references, const resampling& sure, int digits, const Judge& judge,
                     const Score& score, const More& more)
{
    const side_by_side texts(references, systems.size());
    std::size_t sentences = 0;
    for (const std::string& name : systems) {
        decltype(judge(corpus(), std::vector<corpus>())) statistics;
        program::progress line(count_lines(name));
        sentences = texts(name, [&](const corpus& system, const std::vector<corpus>& golden) {
            const auto some = judge(system, golden);
            statistics.insert(statistics.end(), some.begin(), some.end());
            line.add(some.size());
        });
        line.clear();
        add_system(result, name == "-" ? "standard input" : name, statistics, sure, digits, score, more);
    }
    if (result.data.contains("sentences")) result.data["sentences"] = sentences;
    result.note += sure.warning(sentences);
}

/// A metric with one or several references per sentence.
struct references_command : command {
    std::vector<std::string> references;
    resampling sure;

protected:
    void declare_all(CLI::App& app, const char* example)
    {
        declare_systems(app, "translations; one line per system", example);
        declare_references(app, references);
        sure.declare(app);
    }
};

/// TER and BLEU together, for TB.
struct edits_and_grams {
    metrics::ter_counts edits;
    metrics::bleu_counts grams;

    edits_and_grams& operator+=(const edits_and_grams& other)
    {
        edits += other.edits;
        grams += other.grams;
        return *this;
    }
    /// Computed from the TER and BLEU of the same line.
    double tb(const bleu_choice& choice) const { return metrics::tb(metrics::ter(edits), choice(grams).score); }
};

/// Edits of the words as given; n-grams of the tokens chosen for BLEU.
inline std::vector<edits_and_grams> edits_of(const corpus& system, const std::vector<corpus>& golden,
                                             const bleu_choice& choice, const metrics::progress& seen = {})
{
    const auto edits = metrics::ter_statistics(system.lines, lines_of(golden), seen);
    const auto grams = metrics::bleu_statistics(choice.tokens(system), choice.tokens(golden), seen);
    std::vector<edits_and_grams> result;
    for (std::size_t i = 0; i < edits.size(); ++i) result.push_back({edits[i], grams[i]});
    return result;
}

struct bleu_command : references_command {
    bleu_choice choice;

    void declare(CLI::App& app) override
    {
        app.description("BLEU: 4-gram precision with a brevity penalty (Papineni et al. 2002); 0 to 100.");
        declare_all(app, "evaluate bleu --reference test.de --tokenize 13a --smoothing exp system.de other.de");
        choice.declare(app);
    }

    report run() override
    {
        report result;
        result.table = {{"system", "BLEU", sure.title(), "1", "2", "3", "4-grams", "BP", "ratio", "words"}};
        result.note = fmt::format("{}, {}", choice.text(), heed::counted(references.size(), "reference"));
        result.data = {{"metric", "bleu"},
                       {"tokenize", choice.tokenize},
                       {"smoothing", choice.smoothing},
                       {"references", references},
                       {"sentences", 0},
                       {"systems", json::array()}};
        score_all_parts(
            result, systems, references, sure, 2,
            [&](const corpus& system, const std::vector<corpus>& golden) {
                choice.see_raw(system, golden);
                return choice.statistics(system, golden);
            },
            [&](const metrics::bleu_counts& sum) { return choice(sum).score; },
            [&](const auto& statistics, std::vector<std::string>& row, json& data) {
                const metrics::bleu_score score = choice(total(statistics));
                const double ratio = score.reference_length == 0 ? 0
                                                                 : static_cast<double>(score.hypothesis_length) /
                                                                       static_cast<double>(score.reference_length);
                for (const double precision : score.precisions) row.push_back(fmt::format("{:.1f}", precision));
                row.push_back(fmt::format("{:.3f}", score.brevity_penalty));
                row.push_back(fmt::format("{:.3f}", ratio));
                row.push_back(std::to_string(score.hypothesis_length));
                data["precisions"] = score.precisions;
                data["brevity_penalty"] = score.brevity_penalty;
                data["hypothesis_length"] = score.hypothesis_length;
                data["reference_length"] = score.reference_length;
            });
        choice.tell_raw();
        return result;
    }
};

struct ter_command : references_command {
    void declare(CLI::App& app) override
    {
        app.description("TER: edits and shifts per reference word (Snover et al. 2006), in percent; lower is better.\n"
                        "With BLEU and TB = (TER - BLEU) / 2. With several references, the edits are the minimum\n"
                        "and the words the mean.");
        declare_all(app, "evaluate ter --reference test.de system.de");
    }

    report run() override
    {
        report result;
        result.table = {{"system", "TER", sure.title(), "edits", "shifts", "words", "BLEU", "TB", sure.title()}};
        result.note = fmt::format("tokens and case as given, BLEU unsmoothed; TER limits of tercom and sacrebleu; {}",
                                  heed::counted(references.size(), "reference"));
        result.data = {{"metric", "ter"}, {"references", references}, {"sentences", 0}, {"systems", json::array()}};
        const bleu_choice as_given;
        score_all_parts(
            result, systems, references, sure, 2,
            [&](const corpus& system, const std::vector<corpus>& golden) { return edits_of(system, golden, as_given); },
            [](const edits_and_grams& sum) { return metrics::ter(sum.edits); },
            [&](const auto& statistics, std::vector<std::string>& row, json& data) {
                const edits_and_grams sum = total(statistics);
                const auto both = sure(statistics, [&](const edits_and_grams& all) { return all.tb(as_given); });
                const double bleu = as_given(sum.grams).score;
                for (const std::size_t count : {sum.edits.edits, sum.edits.shifts})
                    row.push_back(std::to_string(count));
                row.push_back(count_text(sum.edits.reference_length));
                row.push_back(fmt::format("{:.2f}", bleu));
                row.push_back(fmt::format("{:.2f}", both.score));
                row.push_back(sure.text(both, 2));
                data["edits"] = sum.edits.edits;
                data["shifts"] = sum.edits.shifts;
                data["reference_length"] = sum.edits.reference_length;
                data["bleu"] = bleu;
                data["tb"] = json_of(both);
            });
        return result;
    }
};

struct ribes_command : references_command {
    metrics::ribes_options how;

    void declare(CLI::App& app) override
    {
        app.description("RIBES: agreement with the word order of the reference (Isozaki et al. 2010); 0 to 1.\n"
                        "With several references, the highest score counts.");
        declare_all(app, "evaluate ribes --reference test.de system.de");
        app.add_option("--alpha", how.alpha, "exponent of the precision")
            ->check(number(0, 10))
            ->type_name("X")
            ->capture_default_str();
        app.add_option("--beta", how.beta, "exponent of the brevity penalty")
            ->check(number(0, 10))
            ->type_name("X")
            ->capture_default_str();
    }

    report run() override
    {
        report result;
        result.table = {{"system", "RIBES", sure.title(), "sentences"}};
        result.note = fmt::format("alpha {:g}, beta {:g}; sentences with an empty reference are ignored; {}", how.alpha,
                                  how.beta, heed::counted(references.size(), "reference"));
        result.data = {{"metric", "ribes"},
                       {"alpha", how.alpha},
                       {"beta", how.beta},
                       {"references", references},
                       {"systems", json::array()}};
        score_all_parts(
            result, systems, references, sure, 4,
            [&](const corpus& system, const std::vector<corpus>& golden) {
                return metrics::ribes_statistics(system.lines, lines_of(golden), how);
            },
            [](const metrics::ribes_sum& sum) { return sum.score(); },
            [](const auto& statistics, std::vector<std::string>& row, json& data) {
                const std::size_t sentences = total(statistics).sentences;
                row.push_back(std::to_string(sentences));
                data["sentences"] = sentences;
            });
        return result;
    }
};

struct chrf_command : references_command {
    metrics::chrf_options how;

    void declare(CLI::App& app) override
    {
        app.description("chrF: F-score of character n-grams (Popović 2015); 0 to 100. With --words 2 it is chrF++.\n"
                        "With several references, the highest score counts.");
        declare_all(app, "evaluate chrf --words 2 --reference test.de system.de");
        app.add_option("--characters", how.characters, "longest character n-gram")
            ->transform(whole(1, 6))
            ->type_name("N")
            ->capture_default_str();
        app.add_option("--words", how.words, "longest word n-gram")
            ->transform(whole(0, 2))
            ->type_name("N")
            ->capture_default_str();
        app.add_option("--beta", how.beta, "weight of recall relative to precision")
            ->check(number(0.001, 1000))
            ->type_name("X")
            ->capture_default_str();
    }

    report run() override
    {
        const std::string name = fmt::format("chrF{:g}{}", how.beta, std::string(how.words, '+'));
        report result;
        result.table = {{"system", name, sure.title()}};
        result.note = fmt::format("white space is ignored; equal to sacrebleu on the same text; {}",
                                  heed::counted(references.size(), "reference"));
        result.data = {{"metric", "chrf"},        {"characters", how.characters}, {"words", how.words},
                       {"beta", how.beta},        {"references", references},     {"sentences", 0},
                       {"systems", json::array()}};
        score_all_parts(
            result, systems, references, sure, 2,
            [&](const corpus& system, const std::vector<corpus>& golden) {
                return metrics::chrf_statistics(text_of(system), text_of(golden), how);
            },
            [&](const metrics::chrf_counts& sum) { return metrics::chrf(sum, how); },
            [](const auto&, std::vector<std::string>&, json&) {});
        return result;
    }
};

struct wer_command : references_command {
    void declare(CLI::App& app) override
    {
        app.description("WER: words inserted, deleted or replaced per reference word, in percent; lower is better.\n"
                        "Also the percentage of lines that match no reference. With several references, the nearest\n"
                        "counts. For phonemes, this is the phoneme error rate; the wrong lines are then the words\n"
                        "pronounced wrongly.");
        declare_all(app, "evaluate wer --reference test.de system.de");
    }

    report run() override
    {
        report result;
        result.table = {{"system", "WER", sure.title(), "edits", "words", "wrong lines", sure.title()}};
        result.note = fmt::format("tokens and case as given; {}", heed::counted(references.size(), "reference"));
        result.data = {{"metric", "wer"}, {"references", references}, {"sentences", 0}, {"systems", json::array()}};
        score_all_parts(
            result, systems, references, sure, 2,
            [&](const corpus& system, const std::vector<corpus>& golden) {
                return metrics::error_statistics(system.lines, lines_of(golden), {}, shown("steps"));
            },
            [](const metrics::error_counts& sum) { return metrics::error_rate(sum); },
            [&](const auto& statistics, std::vector<std::string>& row, json& data) {
                const metrics::error_counts sum = total(statistics);
                const auto wrong =
                    sure(statistics, [](const metrics::error_counts& all) { return 100 * (1 - all.accuracy()); });
                row.push_back(std::to_string(sum.edits));
                row.push_back(std::to_string(sum.reference_length));
                row.push_back(fmt::format("{:.2f}", wrong.score));
                row.push_back(sure.text(wrong, 2));
                data["edits"] = sum.edits;
                data["reference_length"] = sum.reference_length;
                data["wrong_lines"] = json_of(wrong);
            });
        return result;
    }
};

struct perplexity_command : command {
    std::string reference;
    resampling sure;
    std::string base = "e";

    void declare(CLI::App& app) override
    {
        app.description("Perplexity per word of the reference translations, from a model's log-probabilities.");
        declare_systems(
            app,
            "log-probabilities of the reference sentences, end of sentence included: the numbers on a line are\n"
            "summed; one per sentence or one per token, which may be a subword",
            "evaluate perplexity --reference test.de system.scores");
        app.add_option("--reference", reference, "reference translations, for the number of words")
            ->required()
            ->type_name("FILE");
        app.add_option("--base", base, "of the logarithms: e, 2 or 10")
            ->check(CLI::IsMember({"e", "2", "10"}).description(""))
            ->type_name("BASE")
            ->capture_default_str();
        sure.declare(app);
    }

    report run() override
    {
        const corpus golden = read(reference);
        report result;
        result.table = {{"system", "perplexity", sure.title(), "nats a word", "words"}};
        result.note = fmt::format("per word of {}; the end of a sentence counts as a word", golden.name);
        result.data = {{"metric", "perplexity"},
                       {"reference", golden.name},
                       {"base", base},
                       {"sentences", golden.lines.size()},
                       {"systems", json::array()}};
        score_all(
            result, systems, golden, sure, 3, [&](const corpus& system) { return counts_of(system, golden); },
            [](const metrics::perplexity_counts& sum) { return metrics::perplexity(sum); },
            [](const auto& statistics, std::vector<std::string>& row, json& data) {
                const metrics::perplexity_counts sum = total(statistics);
                row.push_back(fmt::format("{:.4f}", -sum.log_probability / static_cast<double>(sum.words)));
                row.push_back(std::to_string(sum.words));
                data["log_probability"] = sum.log_probability;
                data["words"] = sum.words;
            });
        return result;
    }

private:
    std::vector<metrics::perplexity_counts> counts_of(const corpus& system, const corpus& golden) const
    {
        const double nats = base == "e" ? 1 : std::log(base == "2" ? 2.0 : 10.0);
        std::vector<metrics::perplexity_counts> result;
        for (std::size_t i = 0; i < golden.lines.size(); ++i) {
            metrics::perplexity_counts here{0, golden.lines[i].size() + 1};
            const sentence& line = system.lines[i];
            const auto refuse = [&](const std::string& what) {
                throw heed::error(
                    fmt::format("{}:{}: {}; expected log-probabilities, 0 or less", system.name, i + 1, what));
            };
            if (line.empty()) refuse("the line is empty");
            for (const std::string& each : line) {
                double value = 0;
                const auto read = std::from_chars(each.data(), each.data() + each.size(), value);
                if (read.ptr != each.data() + each.size() || read.ec != std::errc{} || value != value)
                    refuse(fmt::format("\"{}\" is not a number", each));
                if (value > 1e-3)
                    refuse(fmt::format("{} is above 0", each));  // sums of floats may round to slightly above 0
                here.log_probability += nats * std::min(value, 0.0);
            }
            result.push_back(here);
        }
        return result;
    }
};

struct compare_command : command {
    std::string baseline, system;
    std::vector<std::string> references;
    std::vector<std::string> names{"bleu", "ter", "tb", "chrf", "ribes"};
    bleu_choice choice;
    resampling sure;

    void declare(CLI::App& app) override
    {
        app.description(
            "Tests whether the second system is better. Scores on the same resamples (paired bootstrap, Koehn 2004).");
        app.add_option("BASELINE", baseline, "translations of one system")->required()->type_name("FILE");
        app.add_option("SYSTEM", system, "translations of the other system")->required()->type_name("FILE");
        declare_output(app, "evaluate compare --reference test.de baseline.de system.de");
        declare_references(app, references);
        app.add_option("--metric", names, "bleu, ter, tb, chrf or ribes; may be repeated; default: all")
            ->check(CLI::IsMember({"bleu", "ter", "tb", "chrf", "ribes"}).description(""))
            ->type_name("NAME")
            ->allow_extra_args(false);
        choice.declare(app, "for bleu and tb only; ");
        sure.declare(app);
    }

    report run() override
    {
        if (sure.how.resamples == 0) throw program::misuse("compare: --resamples must be at least 1");
        const auto wanted = [&](const char* name) {
            return std::find(names.begin(), names.end(), name) != names.end();
        };
        const bool any_bleu = wanted("bleu") || wanted("tb");
        if (!any_bleu) choice.require_none(": applies to bleu and tb, but --metric selects neither");
        const std::vector<corpus> golden = read_references(references);
        const std::vector<corpus> both = read({baseline, system});
        for (const corpus& each : both) require_as_many(each.name, each.lines.size(), golden.front());
        const corpus& first = both[0];
        const corpus& second = both[1];
        if (any_bleu) {
            for (const corpus& each : both) choice.see_raw(each, golden);
            choice.tell_raw();
        }
        report result;
        result.table = {{"", first.name, second.name, "difference", sure.title(), "p"}};
        result.note = "p: probability of such a difference by chance (two-sided). For ter and tb, lower is better.";
        if (any_bleu) result.note += fmt::format("\nbleu, and in tb: {}", choice.text());
        result.note += sure.warning(golden.front().lines.size());
        result.data = {{"references", references},        {"first", first.name},
                       {"second", second.name},           {"sentences", golden.front().lines.size()},
                       {"resamples", sure.how.resamples}, {"tokenize", choice.tokenize},
                       {"smoothing", choice.smoothing},   {"metrics", json::object()}};
        const auto add = [&](const std::string& name, int digits, const metrics::paired_score& score) {
            result.table.push_back({name, fmt::format("{:.{}f}", score.first.score, digits),
                                    fmt::format("{:.{}f}", score.second.score, digits),
                                    fmt::format("{:+.{}f}", score.difference.score, digits),
                                    range_text(score.difference.range, digits), fmt::format("{:.4f}", score.p_value)});
            result.data["metrics"][name] = {
                {"first", json_of(score.first)},           {"second", json_of(score.second)},
                {"difference", json_of(score.difference)}, {"p_value", score.p_value},
                {"first_larger", score.first_larger},      {"second_larger", score.second_larger}};
        };
        const auto pair = [&](const auto& statistics, const auto& score) {
            return metrics::paired_bootstrap(statistics(first), statistics(second), score, sure.visibly());
        };
        for (const std::string& name : names) {
            if (result.data["metrics"].contains(name)) continue;
            if (name == "bleu") {
                const std::vector<std::vector<sentence>> tokens = choice.tokens(golden);
                add(name, 2,
                    pair(
                        [&](const corpus& each) {
                            return metrics::bleu_statistics(choice.tokens(each), tokens, shown());
                        },
                        [&](const metrics::bleu_counts& sum) { return choice(sum).score; }));
            } else if (name == "ter") {
                add(name, 2,
                    pair(
                        [&](const corpus& each) {
                            return metrics::ter_statistics(each.lines, lines_of(golden), shown());
                        },
                        [](const metrics::ter_counts& sum) { return metrics::ter(sum); }));
            } else if (name == "tb") {
                add(name, 2,
                    pair([&](const corpus& each) { return edits_of(each, golden, choice, shown()); },
                         [&](const edits_and_grams& sum) { return sum.tb(choice); }));
            } else if (name == "chrf") {
                const std::vector<std::vector<std::string>> texts = text_of(golden);
                add(name, 2,
                    pair(
                        [&](const corpus& each) { return metrics::chrf_statistics(text_of(each), texts, {}, shown()); },
                        [](const metrics::chrf_counts& sum) { return metrics::chrf(sum); }));
            } else {
                add(name, 4,
                    pair(
                        [&](const corpus& each) {
                            return metrics::ribes_statistics(each.lines, lines_of(golden), {}, shown());
                        },
                        [](const metrics::ribes_sum& sum) { return sum.score(); }));
            }
        }
        return result;
    }
};

}  // namespace evaluation
