// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "files.hpp"
#include "report.hpp"

namespace evaluation {

/// Options that are numbers: their range goes without saying in --help.
inline const CLI::Validator positive = CLI::Range(std::size_t{1}, std::size_t{1} << 30).description("");
inline const CLI::Validator whole = CLI::Range(std::size_t{0}, std::size_t{1} << 62).description("");
/// Ranges let "nan" pass: it is neither too small nor too large.
inline const CLI::Validator number =
    CLI::Validator([](std::string& text) { return text.find_first_of("nN") == text.npos ? "" : "is no number"; }, "");
inline const CLI::Validator share = CLI::Range(0.0, 10.0).description("");

/// What all commands share. A command declares its options and returns what it found out.
struct command {
    std::vector<std::string> systems;
    bool as_json = false;

    command() = default;
    command(const command&) = delete;
    command& operator=(const command&) = delete;
    virtual ~command() = default;
    virtual void declare(CLI::App& app) = 0;
    virtual report run() = 0;

protected:
    void declare_systems(CLI::App& app, const char* help, const char* example)
    {
        app.add_option("files", systems, help)->required()->type_name("FILE...");
        app.add_flag("--json", as_json, "print JSON in place of a table, with all digits");
        app.footer(
            std::string("Files are UTF-8, one sentence a line, tokens separated by spaces; - is standard input.\n\n"
                        "Example:\n  ") +
            example);
    }
};

/// How sure a score is.
struct resampling {
    heed::metrics::bootstrap_options how;

    void declare(CLI::App& app)
    {
        app.add_option("--resamples", how.resamples, "of the bootstrap, for the interval; 0: no interval")
            ->check(CLI::Range(std::size_t{0}, std::size_t{1000000}).description(""))
            ->type_name("N")
            ->capture_default_str();
        app.add_option("--confidence", how.confidence, "of the interval")
            ->check(CLI::Range(0.01, 0.999).description(""))
            ->check(number)
            ->type_name("P")
            ->capture_default_str();
        app.add_option("--seed", how.seed, "the same seed draws the same sentences")
            ->check(whole)
            ->type_name("N")
            ->capture_default_str();
    }

    std::string title() const { return fmt::format("{:g} %", 100 * how.confidence); }

    template <class Statistics, class Score>
    heed::metrics::bootstrap_score operator()(const std::vector<Statistics>& sentences, const Score& score) const
    {
        if (how.resamples > 0) return heed::metrics::bootstrap(sentences, score, how);
        Statistics sum{};
        for (const Statistics& each : sentences) sum += each;
        const double value = score(sum);
        return {value, value, {value, value}};
    }

    std::string text(const heed::metrics::bootstrap_score& score, int digits) const
    {
        return how.resamples > 0 ? range_text(score.range, digits) : "";
    }
};

template <class Statistics>
Statistics total(const std::vector<Statistics>& sentences)
{
    Statistics sum{};
    for (const Statistics& each : sentences) sum += each;
    return sum;
}

}  // namespace evaluation
