// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <string_view>

extern "C" {
[[gnu::weak]] char* openblas_get_corename();
}

namespace translation {

/// OpenBLAS selects its kernels by the processor's name when it is loaded. If the processor is newer than the library,
/// or OPENBLAS_CORETYPE is set, it may use AVX2 kernels on a processor with AVX-512, at half the speed. Only the user
/// can fix that, and only before the program starts.
inline void say_if_blas_is_slow()
{
#if defined(__x86_64__)
    if (openblas_get_corename == nullptr) return;
    const std::string_view core = openblas_get_corename();
    const bool avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (avx512 && (core == "Haswell" || core == "Zen")) {
        std::fputs("note: OpenBLAS runs its AVX2 kernels on this processor, which has AVX-512; setting the environment "
                   "variable\n"
                   "      OPENBLAS_CORETYPE=SkylakeX makes this program up to twice as fast\n",
                   stderr);
    }
#endif
}

}  // namespace translation
