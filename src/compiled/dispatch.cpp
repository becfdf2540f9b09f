// SPDX-License-Identifier: BSD-3-Clause

// The functions called by a program that links heed::compiled: each calls the version of a kernel for this processor.

#include <heed/compiled.hpp>

#include <array>
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
};

bool runs_avx512()
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

// In order of preference.
const target targets[] = {
    {"avx512_vnni", heed_kernels_avx512_vnni, [] { return runs_avx512() && __builtin_cpu_supports("avx512vnni"); }},
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

    choice() { of.fill(kernels.data()); }
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
}  // namespace blas

namespace ops::detail {
HEED_IN_OPERATIONS(HEED_CALLED)
}  // namespace ops::detail

}  // namespace heed::inline HEED_TARGET
