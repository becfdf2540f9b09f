// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/target.hpp>

#if !defined(HEED_SIMD_PORTABLE) && defined(__SSE2__)
#include <xmmintrin.h>
#define HEED_SIMD_HAS_MXCSR
#endif

namespace heed::inline HEED_TARGET::simd {

/// While one lives, this thread computes with 0 in place of subnormal numbers: in float those below 1.2e-38, in double
/// those below 2.2e-308. A product with one takes about a hundred cycles more, and a softmax over distant scores, such
/// as ALiBi's, makes many of them.
class without_subnormals {
#if defined(HEED_SIMD_HAS_MXCSR)
public:
    without_subnormals() : before_(_mm_getcsr()) { set(before_ | results_are_zero | operands_are_zero); }
    ~without_subnormals() { set((before_ & ~exceptions) | (_mm_getcsr() & exceptions)); }
    without_subnormals& operator=(without_subnormals&&) = delete;

private:
    static constexpr unsigned exceptions = 0x3f, operands_are_zero = 0x40, results_are_zero = 0x8000;

    /// Not moved by the compiler among computations.
    [[gnu::noinline]] static void set(unsigned control) { _mm_setcsr(control); }

    unsigned before_;
#else
public:
    without_subnormals() {}
    without_subnormals& operator=(without_subnormals&&) = delete;
#endif
};

}  // namespace heed::inline HEED_TARGET::simd
