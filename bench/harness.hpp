// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Shared by the executables of bench/: command-line arguments, registration and warm-up of workloads.
namespace bench {

struct options {
    int threads = 1;        // --threads=N, or HEED_BENCH_THREADS
    bool variants = false;  // --variants: also the variants that were tried and are not the fastest
};

/// Removes these arguments from argv and leaves the others to Google Benchmark.
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

inline double median(std::vector<double> x)
{
    if (x.empty()) return 0;
    std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
    return x[x.size() / 2];
}

/// Additional figures of a workload, by name.
using counters = std::vector<std::pair<std::string, double>>;

/// The timed call, and the sum of the absolute results of its first call (0: no comparison). The sums of heed and of
/// the peer must agree, or their work differs. `count` is called once, untimed.
struct work {
    std::function<void()> call;
    std::function<double()> digest = nullptr;
    std::function<counters()> count = nullptr;
};

inline double sum_of_absolutes(const float* first, std::size_t count)
{
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += std::abs(static_cast<double>(first[i]));
    return sum;
}

/// Registers a workload. `make` allocates everything and returns the call to time; it runs only if the workload is
/// selected. The call runs twice before the clock starts, so that timing does not include page faults. The memory is
/// released before the next workload starts: the largest sizes take half a gigabyte. If a call performs `steps` steps,
/// the time of one step is reported.
inline void add(const std::string& name, std::function<work()> make, int steps = 1)
{
    struct current_work {
        std::string name;
        bench::work work;
        double digest = 0;
        counters counted{};
    };
    static const auto current = std::make_shared<current_work>();
    const auto timed = [name, steps, make = std::move(make)](benchmark::State& state) {
        if (current->name != name) {
            current->work = {};
            current->work = make();
            current->name = name;
            current->work.call();
            current->digest = current->work.digest ? current->work.digest() : 0;
            current->counted = current->work.count ? current->work.count() : counters{};
            current->work.call();
        }
        while (state.KeepRunningBatch(steps)) current->work.call();
        if (current->digest != 0) state.counters["digest"] = current->digest;
        for (const auto& [what, figure] : current->counted) state.counters[what] = figure;
    };
    benchmark::RegisterBenchmark(name.c_str(), timed)->UseRealTime()->Unit(benchmark::kMicrosecond);
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
