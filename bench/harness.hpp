// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

/// What the executables of bench/ share: their arguments, and how one work is registered and warmed up.
namespace bench {

struct options {
    int threads = 1;        // --threads=N, or HEED_BENCH_THREADS
    bool variants = false;  // --variants: also every way of doing a work that was tried and is not the fastest
};

/// Takes its own arguments out of argv and leaves the others to Google Benchmark.
inline options take_options(int& argc, char** argv)
{
    options result;
    if (const char* threads = std::getenv("HEED_BENCH_THREADS")) result.threads = std::atoi(threads);
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument.starts_with("--threads=")) {
            result.threads = std::atoi(argv[i] + 10);
        } else if (argument == "--variants") {
            result.variants = true;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argc = kept;
    if (result.threads < 1) result.threads = 1;
    return result;
}

using work = std::function<void()>;

/// Registers one work. `make` allocates everything and returns the call to be timed; it runs only when the work is
/// selected, and the call runs twice before the clock starts, so that no page is touched for the first time under it.
/// What one work allocated is released before the next one begins: the largest sizes take half a gigabyte.
/// Where a call does `steps` steps, the time of one of them is reported.
inline void add(const std::string& name, std::function<work()> make, int steps = 1)
{
    struct current_work {
        std::string name;
        work call;
    };
    static const auto current = std::make_shared<current_work>();
    benchmark::RegisterBenchmark(name.c_str(),
                                 [name, steps, make = std::move(make)](benchmark::State& state) {
                                     if (current->name != name) {
                                         current->call = nullptr;
                                         current->call = make();
                                         current->name = name;
                                         current->call();
                                         current->call();
                                     }
                                     while (state.KeepRunningBatch(steps)) current->call();
                                 })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
}

inline int run(int argc, char** argv, const options& chosen)
{
    benchmark::AddCustomContext("heed_bench_threads", std::to_string(chosen.threads));
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}

}  // namespace bench
