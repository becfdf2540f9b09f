// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/target.hpp>

#if !defined(HEED_SIMD_PORTABLE) && defined(__SSE2__)
#define HEED_SIMD_HAS_MXCSR
#endif

namespace heed::inline HEED_TARGET::simd {

/// During its lifetime, this thread treats subnormal numbers as 0: those below 1.2e-38 in float, and below 2.2e-308 in
/// double. Intel processors multiply such numbers slowly, and the softmax of widely spread scores contains many of
/// these, for example with ALiBi. Without SSE, it does nothing.
class without_subnormals {
#if defined(HEED_SIMD_HAS_MXCSR)
public:
    without_subnormals() : before_(__builtin_ia32_stmxcsr()) { set(before_ | results_are_zero | operands_are_zero); }
    ~without_subnormals() { set((before_ & ~exceptions) | (__builtin_ia32_stmxcsr() & exceptions)); }
    without_subnormals& operator=(without_subnormals&&) = delete;

private:
    static constexpr unsigned exceptions = 0x3f, operands_are_zero = 0x40, results_are_zero = 0x8000;

    /// The compiler must not move it among computations.
    [[gnu::noinline]] static void set(unsigned control) { __builtin_ia32_ldmxcsr(control); }

    unsigned before_;
#else
public:
    without_subnormals() {}
    without_subnormals& operator=(without_subnormals&&) = delete;
#endif
};

}  // namespace heed::inline HEED_TARGET::simd
