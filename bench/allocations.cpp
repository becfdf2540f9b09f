// SPDX-License-Identifier: BSD-3-Clause

// The number of allocations in a steady-state inference step into reused results; the target is 0. All heap functions
// are counted, including those that OpenBLAS calls.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <heed/heed.hpp>

#include "harness.hpp"
#include "sizes.hpp"

extern "C" {
// glibc's internal names of the functions replaced here
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {
std::atomic<long> allocations{0};
}

extern "C" {
void* malloc(std::size_t size)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size)
{
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_memalign(alignment, size);
}
void* memalign(std::size_t alignment, std::size_t size) { return aligned_alloc(alignment, size); }
int posix_memalign(void** result, std::size_t alignment, std::size_t size)
{
    *result = aligned_alloc(alignment, size);
    return *result == nullptr ? ENOMEM : 0;
}
}

namespace {

using namespace heed;

array<float, 2> matrix(std::size_t rows, std::size_t columns)
{
    array<float, 2> result(shape_of_rank<2>{rows, columns});
    bench::fill(result.data(), result.size(), static_cast<unsigned>(rows + columns), 0.1F);
    return result;
}

constexpr std::size_t B = 12, T = 50, Q = 256, D = 512, A = 256;

/// Registers the number of allocations per step of a mechanism: the average of many steps after a few warm-up steps.
template <class Attention>
void count(const char* name, Attention attend)
{
    benchmark::RegisterBenchmark((std::string{"allocations/"} + name).c_str(), [attend](benchmark::State& state) {
        array<float, 3> annotations(shape_of_rank<3>{B, T, D});
        bench::fill(annotations.data(), annotations.size(), 3, 0.1F);
        const auto query = matrix(B, Q);
        const auto memory = attend.on(annotations);
        auto now = attend.start(memory);
        auto result = attend.step(memory, query, now);
        for (int i = 0; i < 3; ++i) attend.step_into(result, memory, query, now);
        long steps = 0;
        long asked = 0;
        for (auto _ : state) {
            const long before = allocations.load();
            attend.step_into(result, memory, query, now);
            asked += allocations.load() - before;
            ++steps;
        }
        state.counters["allocations"] = static_cast<double>(asked) / static_cast<double>(steps);
    });
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    set_threads(static_cast<std::size_t>(chosen.threads));
    array<float, 1> v(shape_of_rank<1>{A});
    bench::fill(v.data(), v.size(), 5, 0.1F);
    const score::additive additive{matrix(Q, A), matrix(D, A), v};
    const score::additive_per_dimension per_dimension{matrix(Q, A), matrix(D, A), matrix(A, D)};
    count("additive-softmax", attention{additive, normalize::softmax{}, combine::weighted_sum{}});
    count("additive-temporal", attention{additive, normalize::temporal{}, combine::weighted_sum{}});
    count("per-dimension-softmax", attention{per_dimension, normalize::softmax{}, combine::elementwise_sum{}});
    return bench::run(argc, argv, chosen);
}
