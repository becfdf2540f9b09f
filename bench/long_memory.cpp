// SPDX-License-Identifier: BSD-3-Clause

// Memory of attention of many queries in tiles: the bytes that a forward and backward pass needs in addition to inputs,
// results and gradients. No [S,T] matrix is stored, so that they must not grow with the length.
//
//     build-bench/bench/long_memory [--threads=N]
//
// Each line is a separate process, so that its peak of resident memory (VmHWM, Linux) includes no other work. It first
// runs a small size, so that code and threads are loaded, and releases the memory of that run; this is the base. Two
// passes follow; before the second, the tape merges its blocks. Inputs are queries, keys and values. The loss is the
// sum of the contexts' squares, so that it adds only contexts and gradients.
//
// "a thread keeps" is exact: the capacity of the largest workspace of a thread.

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include "harness.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;

struct size {
    std::size_t heads, queries, keys, width;

    /// Queries, keys, values, contexts, and their gradients.
    std::size_t bytes() const { return 2 * sizeof(float) * heads * width * (2 * queries + 2 * keys); }
    ops::heads_of how() const { return {heads, heads, 1 / std::sqrt(static_cast<double>(width))}; }
};

/// A line of /proc/self/status that is in kilobytes, converted to bytes.
std::size_t status(const std::string& name)
{
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    if (file == nullptr) {
        std::fprintf(stderr, "long_memory: cannot read /proc/self/status; this program needs Linux\n");
        std::exit(1);
    }
    char line[256];
    unsigned long kilobytes = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
        if (std::string(line).starts_with(name + ":")) std::sscanf(line + name.size() + 1, "%lu", &kilobytes);
    }
    std::fclose(file);
    return 1024 * std::size_t{kilobytes};
}

array<float, 3> numbers(std::size_t rows, const size& z, unsigned seed)
{
    array<float, 3> x(shape_of_rank<3>{1, rows, z.heads * z.width});
    bench::fill(x.data(), x.size(), seed, 1.0F);
    return x;
}

/// f() on each thread.
template <class F>
void on_each_thread(const F& f)
{
    parallel_for(threads(), 1, [&](std::size_t, std::size_t, std::size_t shard) { f(shard); });
}

template <class Operation>
void passes(const size& z, const Operation& attend, std::size_t count)
{
    const auto q = numbers(z.queries, z, 1), k = numbers(z.keys, z, 2), v = numbers(z.keys, z, 3);
    const auto real = lengths::full(1, z.keys);
    ad::tape<float> tape;
    for (std::size_t i = 0; i < count; ++i) {
        tape.clear();
        const auto queries = tape.parameter(q), keys = tape.parameter(k), values = tape.parameter(v);
        const auto contexts = attend(queries, keys, values, real, z.how());
        tape.backward(ops::dot(contexts, contexts));
        benchmark::DoNotOptimize(tape.gradient(queries));
    }
}

/// Prints one line, measured in a separate process.
template <class Operation>
void measure(const char* name, int threads, const size& z, const Operation& attend)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child > 0) {
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) {
            std::fprintf(stderr, "long_memory: %s failed\n", name);
            std::exit(1);
        }
        return;
    }
    if (child < 0) {
        std::fprintf(stderr, "long_memory: cannot start a process\n");
        std::exit(1);
    }
    set_threads(static_cast<std::size_t>(threads));
    passes({z.heads, 128, 128, z.width}, attend, 1);
    on_each_thread([](std::size_t) { release_workspace(); });
    malloc_trim(0);
    const std::size_t base = status("VmRSS");
    passes(z, attend, 2);
    const std::size_t beyond = status("VmHWM") - base;
    std::vector<std::size_t> kept(static_cast<std::size_t>(threads));
    on_each_thread([&](std::size_t shard) { kept[shard] = workspace_size(); });
    const auto megabytes = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    std::printf("%-14s %zu x %zu x %zu of %zu keys:  peak %.1f MB, inputs, results, gradients %.1f MB: %.3f;  "
                "beyond %.2f MB;  a thread keeps %.2f MB\n",
                name, z.heads, z.queries, z.width, z.keys, megabytes(beyond), megabytes(z.bytes()),
                static_cast<double>(beyond) / static_cast<double>(z.bytes()), megabytes(beyond) - megabytes(z.bytes()),
                megabytes(*std::max_element(kept.begin(), kept.end())));
    std::fflush(stdout);
    _exit(0);
}

}  // namespace

int main(int argc, char** argv)
{
    const int threads = bench::take_options(argc, argv).threads;
    if (argc > 1) {
        std::fprintf(stderr, "long_memory: unknown argument %s\n", argv[1]);
        return 2;
    }
    using kernels::tiles::unmasked;
    using kernels::tiles::unmodified;
    const auto of = [](const auto& mask, const auto& rule) { return ops::attend_tiled_op{unmodified{}, mask, rule}; };
    const auto softmax = of(unmasked{}, kernels::tiles::softmax{});
    // This comparison prepares a head's keys for all its queries: each thread makes one more copy of the keys.
    const ops::attend_tiled_op sum{unmodified{}, unmasked{}, kernels::tiles::softmax{}, kernels::tiles::additive{}};
    const array<float, 1> v(shape_of_rank<1>{64}, 0.1F), sink(shape_of_rank<1>{1}, -INFINITY), table{0.0F};
    const auto additive = [&](const auto& queries, const auto& keys, const auto& values, const lengths& real,
                              const ops::heads_of& how) {
        return sum(queries, keys, values, v, sink, table, real, how);
    };
    measure("softmax", threads, {8, 8192, 8192, 64}, softmax);
    measure("causal", threads, {8, 8192, 8192, 64}, of(not_behind{}, kernels::tiles::softmax{}));
    for (const std::size_t keys : {std::size_t{1024}, std::size_t{8192}, std::size_t{65536}, std::size_t{262144}}) {
        const size z{1, 512, keys, 64};
        measure("softmax", threads, z, softmax);
        measure("sparsemax", threads, z, of(unmasked{}, normalize::sparsemax{}.tile_rule()));
        measure("entmax15", threads, z, of(unmasked{}, normalize::entmax15{}.tile_rule()));
        measure("top 32", threads, z, of(unmasked{}, normalize::top_k{32}.tile_rule()));
        measure("sigmoid", threads, z, of(unmasked{}, normalize::sigmoid{-7}.tile_rule()));
        measure("stick-breaking", threads, z, of(unmasked{}, normalize::stick_breaking{}.tile_rule()));
        measure("additive", threads, z, additive);
    }
    return 0;
}
