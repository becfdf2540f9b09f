// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace heed {

/// The instruction set that the kernels of heed::compiled use in this program: "avx512_amx", "avx512_bf16",
/// "avx512_vnni", "avx512", "avx2" or "sse2". It is the best one that the processor supports, unless the environment
/// variable HEED_COMPILED_TARGET selects another. If that variable names an unknown or unsupported
/// instruction set, this function and the first call of a kernel throw heed::error.
std::string_view compiled_target();

}  // namespace heed
