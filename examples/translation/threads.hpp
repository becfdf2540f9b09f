// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" {
[[gnu::weak]] char* openblas_get_corename();
}

namespace translation {

/// OpenBLAS chooses its kernels by the processor's name when it is loaded; a processor that is newer than the library
/// gets AVX2 kernels even if it has AVX-512, which halves the speed. The cure is a variable of the environment, and
/// only the user can set it in time.
inline void say_if_blas_is_slow()
{
#if defined(__x86_64__)
    if (openblas_get_corename == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
    const std::string_view core = openblas_get_corename();
    const bool avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (avx512 && (core == "Haswell" || core == "Zen")) {
        std::fputs("note: OpenBLAS does not know this processor and uses half of its vector width;\n"
                   "      export OPENBLAS_CORETYPE=SkylakeX makes this program up to twice as fast\n",
                   stderr);
    }
#endif
}

}  // namespace translation
