// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "harness.hpp"

/// Columns that take turns, round after round, and the options of programs that compare them.
namespace bench {

/// One column of a line: its name and the timed call.
struct column {
    std::string name;
    std::function<double()> seconds;
};

/// For each column: its seconds in each round, and their ratio to those of the first column.
struct timings {
    std::vector<std::vector<double>> seconds, ratios;
};

/// The columns take turns, round after round, after a warm-up round whose times are dropped.
inline timings in_turn(
    const std::vector<column>& columns, int rounds, const std::function<void()>& before_round = [] {})
{
    timings took{std::vector<std::vector<double>>(columns.size()), std::vector<std::vector<double>>(columns.size())};
    for (int round = -1; round < rounds; ++round) {
        before_round();
        double first = 0;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const double now = columns[i].seconds();
            if (i == 0) first = now;
            if (round < 0) continue;  // warm-up
            took.seconds[i].push_back(now);
            took.ratios[i].push_back(now / first);
        }
    }
    return took;
}

/// The number of rounds and of threads, and the selected lines.
struct choices {
    int threads = 1, rounds;
    std::string only;

    bool wants(const std::string& name) const { return only.empty() || name.find(only) != std::string::npos; }
};

/// glibc maps a large block page by page until a block of that size has been freed. Without this, the first lines would
/// measure page faults.
inline void settle_memory()
{
    std::vector<char> large(std::size_t{24} << 20);
    benchmark::DoNotOptimize(large.data());
}

/// Reads --threads, --rounds and --work; `other(argument)` returns whether it accepts another argument. Ends the
/// program at an unknown argument.
inline choices take_choices(
    int& argc, char** argv, int rounds,
    const std::function<bool(const std::string&)>& other = [](const std::string&) { return false; })
{
    settle_memory();
    choices chosen{take_options(argc, argv).threads, rounds, {}};
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument.starts_with("--rounds=")) {
            chosen.rounds = std::atoi(argv[i] + 9);
        } else if (argument.starts_with("--work=")) {
            chosen.only = argument.substr(7);
        } else if (!other(argument)) {
            const std::string program = argv[0];
            std::fprintf(stderr, "%s: unknown argument %s\n", program.substr(program.rfind('/') + 1).c_str(), argv[i]);
            std::exit(2);
        }
    }
    return chosen;
}

}  // namespace bench
