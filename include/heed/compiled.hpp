// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace heed {

/// The instruction set whose kernels a program with heed::compiled calls: "avx512", "avx2" or "sse2". It is the best
/// one that the processor has, or the one that the environment variable HEED_COMPILED_TARGET names. Throws heed::error
/// if that is none of them, or one that the processor does not have; so does the first call of a kernel.
std::string_view compiled_target();

}  // namespace heed
