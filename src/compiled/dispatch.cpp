// SPDX-License-Identifier: BSD-3-Clause

// The functions called by a program that links heed::compiled: each calls the version of a kernel for this processor.

#include <heed/compiled.hpp>

#include <array>
#include <cpuid.h>
#include <cstdlib>
#include <string>

#include <heed/core/errors.hpp>

#include "lists.hpp"

namespace heed {

namespace {

struct target {
    std::string_view name;
    void (*fill)(heed_kernel* table);
    bool (*runs)();
    void (*fill_bfloat16)(heed_kernel* table) = nullptr;  // replaces kernels of `fill`
};

bool runs_avx512()
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool runs_vnni() { return runs_avx512() && __builtin_cpu_supports("avx512vnni"); }
bool runs_bfloat16() { return runs_vnni() && __builtin_cpu_supports("avx512bf16"); }
bool runs_amx()  // if the kernel does not permit AMX, its kernels do without
{
    constexpr unsigned bfloat16 = 1U << 22, tile = 1U << 24;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return runs_bfloat16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bfloat16) != 0 && (d & tile) != 0;
}

// In order of preference.
const target targets[] = {
    {"avx512_amx", heed_kernels_avx512_vnni, runs_amx, heed_kernels_avx512_amx},
    {"avx512_bf16", heed_kernels_avx512_vnni, runs_bfloat16, heed_kernels_avx512_bf16},
    {"avx512_vnni", heed_kernels_avx512_vnni, runs_vnni},
    {"avx512", heed_kernels_avx512, runs_avx512},
    {"avx2", heed_kernels_avx2,
     [] {
         return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                __builtin_cpu_supports("bmi2");
     }},
    {"sse2", heed_kernels_sse2, [] { return true; }},
};

/// The best target that this processor supports, or the one named by HEED_COMPILED_TARGET.
const target& choose()
{
    const char* const wanted = std::getenv("HEED_COMPILED_TARGET");
    __builtin_cpu_init();
    std::string names;
    for (const target& each : targets) {
        if (wanted == nullptr || *wanted == '\0' ? each.runs() : each.name == wanted) {
            if (!each.runs())
                throw error("HEED_COMPILED_TARGET: this processor cannot run " + std::string(each.name) + " code");
            return each;
        }
        names += (names.empty() ? "" : ", ") + std::string(each.name);
    }
    throw error("HEED_COMPILED_TARGET is \"" + std::string(wanted) + "\", but must be one of " + names);
}

struct choice {
    const target& of = choose();
    std::array<heed_kernel, heed_kernel_count> kernels{};

    choice()
    {
        of.fill(kernels.data());
        if (of.fill_bfloat16 != nullptr) of.fill_bfloat16(kernels.data());
    }
};

const choice& chosen()
{
    static const choice one;
    return one;
}

}  // namespace

std::string_view compiled_target() { return chosen().of.name; }

}  // namespace heed

#define HEED_CALLED(T, id, result, name, parameters, arguments)                                                        \
    template <>                                                                                                        \
    result name parameters                                                                                             \
    {                                                                                                                  \
        return reinterpret_cast<result(*) parameters>(chosen().kernels[id##_##T]) arguments;                           \
    }

namespace heed::inline HEED_TARGET {

namespace kernels {
HEED_IN_KERNELS(HEED_CALLED)
}  // namespace kernels

namespace blas {
HEED_IN_BLAS(HEED_CALLED)
namespace detail {
HEED_IN_BLAS_DETAIL(HEED_CALLED)
}  // namespace detail
}  // namespace blas

namespace ops::detail {
HEED_IN_OPERATIONS(HEED_CALLED)
}  // namespace ops::detail

}  // namespace heed::inline HEED_TARGET
