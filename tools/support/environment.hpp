// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>
#include <vector>

/// Shared by the manual pages of both tools.
namespace program {

inline const std::pair<std::string, std::string> environment_section{
    "ENVIRONMENT",
    "OPENBLAS_NUM_THREADS: set it to 1: the program uses --threads threads itself, and threads of the "
    "BLAS "
    "would compete for the same cores.\n\n"
    "OPENBLAS_CORETYPE: selects the OpenBLAS kernels. Releases before 0.3.25 may not recognize newer processors and "
    "run at half speed; use SkylakeX for processors with AVX-512."};

}  // namespace program
