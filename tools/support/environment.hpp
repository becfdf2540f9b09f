// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

/// Of the manual pages of both tools.
namespace program {

inline const std::pair<std::string, std::string> environment_section{
    "ENVIRONMENT",
    "OPENBLAS_NUM_THREADS: set it to 1, since the program shares its work among --threads itself, and threads of the "
    "BLAS "
    "would compete with these for the same cores.\n\n"
    "OPENBLAS_CORETYPE: names the kernels of OpenBLAS. A release before 0.3.25 may not know a newer processor and then "
    "computes at half its speed; SkylakeX is right for one with AVX-512."};

}  // namespace program
