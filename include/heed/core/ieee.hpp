// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

/// heed computes with infinity and NaN: a masked score is -inf, so is the history of a position that was never attended
/// to, and the padding may hold NaN. A compiler that assumes that there is neither computes wrong weights.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error                                                                                                                 \
    "heed needs infinity and NaN, which -ffast-math, -Ofast and -ffinite-math-only rule out: add -fno-finite-math-only after that option"
#endif

/// The x87, with which g++ -m32 computes by default, keeps more digits in registers than in memory: a result would
/// depend on where the compiler keeps it.
#if defined(__i386__) && !defined(__SSE2_MATH__)
#error "heed needs float and double arithmetic that rounds each result, which the x87 does not: add -msse2 -mfpmath=sse"
#endif
