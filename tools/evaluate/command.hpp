// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/utf8.hpp>
#include <heed_kit/metrics/bootstrap.hpp>

#include "../support/misuse.hpp"
#include "../support/progress.hpp"
#include "files.hpp"
#include "report.hpp"

namespace evaluation {

/// Numeric options: --help omits their range; the error for an invalid value reports it.
template <class Number>
CLI::Validator from_to(Number low, Number high)
{
    return {[low, high](std::string& text) -> std::string {
                Number value{};
                const char* const end = text.data() + text.size();
                const auto read = std::from_chars(text.data(), end, value);
                const bool minus = std::is_integral_v<Number> && text.starts_with('-');
                if (!minus && (read.ptr != end || read.ec == std::errc::invalid_argument || value != value))
                    return fmt::format("{} is not {}", heed::text::printable(text),
                                       std::is_integral_v<Number> ? "an integer" : "a number");
                if (minus || read.ec != std::errc{} || value < low || value > high)
                    return fmt::format("{} is not between {} and {}", heed::text::printable(text), low, high);
                if constexpr (std::is_integral_v<Number>) text = std::to_string(value);  // 010 is ten, not octal 8
                return "";
            },
            ""};
}

inline CLI::Validator whole(std::uint64_t low, std::uint64_t high) { return from_to(low, high); }
inline CLI::Validator number(double low, double high) { return from_to(low, high); }

/// Shared by all commands. A command declares its options and returns its results.
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
        app.add_option("FILE", systems, help)->required()->type_name("FILE");
        declare_output(app, example);
    }

    void declare_output(CLI::App& app, const char* example)
    {
        app.add_flag("--json", as_json, "print JSON instead of a table, with all digits");
        app.footer(
            std::string("Files are UTF-8, one sentence per line, tokens separated by spaces; - is standard input.\n\n"
                        "Example:\n  ") +
            example);
    }
};

/// The references of a metric that accepts several.
inline void declare_references(CLI::App& app, std::vector<std::string>& references)
{
    app.add_option("--reference", references,
                   "reference translations; may be repeated: an empty line is then ignored\n"
                   "if another file has words in that line")
        ->required()
        ->type_name("FILE")
        ->allow_extra_args(false);
}

template <class Statistics>
Statistics total(const std::vector<Statistics>& sentences)
{
    Statistics sum{};
    for (const Statistics& each : sentences) sum += each;
    return sum;
}

/// Shows the progress of a metric on a terminal: "1280/20000 sentences, 350/s, left 53 s".
inline heed::metrics::progress shown(const char* what = "sentences")
{
    return [line = std::make_shared<program::progress>(0, true, what)](std::size_t done, std::size_t all) {
        line->reach(done, all);
    };
}

/// Confidence interval of a score.
struct resampling {
    heed::metrics::bootstrap_options how;

    void declare(CLI::App& app)
    {
        app.add_option("--resamples", how.resamples, "bootstrap resamples for the interval; 0: no interval")
            ->transform(whole(0, 1000000))
            ->type_name("N")
            ->capture_default_str();
        app.add_option("--confidence", how.confidence, "confidence level of the interval")
            ->check(number(0.01, 0.999))
            ->type_name("P")
            ->capture_default_str();
        app.add_option("--seed", how.seed, "random seed; equal seeds draw equal resamples")
            ->transform(whole(0, std::uint64_t{1} << 62))
            ->type_name("N")
            ->capture_default_str();
    }

    std::string title() const { return fmt::format("{:g}%", 100 * how.confidence); }

    /// Few sentences have few distinct resamples.
    std::string warning(std::size_t sentences) const
    {
        constexpr std::size_t enough = 30;
        if (how.resamples == 0 || sentences >= enough) return "";
        return fmt::format("\nwarning: {}: too few distinct resamples for a meaningful interval or p-value",
                           heed::counted(sentences, "sentence"));
    }

    /// The bootstrap with the given options; shows its progress.
    heed::metrics::bootstrap_options visibly() const
    {
        heed::metrics::bootstrap_options result = how;
        result.seen = shown("resamples");
        return result;
    }

    template <class Statistics, class Score>
    heed::metrics::bootstrap_score operator()(const std::vector<Statistics>& sentences, const Score& score) const
    {
        if (how.resamples > 0) return heed::metrics::bootstrap(sentences, score, visibly());
        const double value = score(total(sentences));
        return {value, value, {value, value}};
    }

    std::string text(const heed::metrics::bootstrap_score& score, int digits) const
    {
        return how.resamples > 0 ? range_text(score.range, digits) : "";
    }
};

}  // namespace evaluation
