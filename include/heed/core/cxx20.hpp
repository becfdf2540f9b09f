// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The single header (scripts/single_header.sh) contains these headers as well.
#ifdef HEED_SINGLE_HEADER
#error "heed: this header comes after the single header, which contains it: include one or the other"
#include <heed/needs/one of the two>
#endif
#define HEED_SEPARATE_HEADERS

// Every heed header includes this one before any line that another compiler would reject. Compilers continue after an
// #error; a missing file stops them.
#if defined(_MSC_VER) || !defined(__GNUC__)
#error "heed needs g++ 12, clang++ 14 or later: its kernels use vector types that MSVC does not have"
#include <heed/needs/g++ or clang++>
#endif
#if __cplusplus <= 201703L || !defined(__cpp_concepts)
#error "heed needs C++20: compile with -std=c++20, or in CMake: target_compile_features(<target> PRIVATE cxx_std_20)"
#include <heed/needs/C++20>
#endif
#ifndef __cpp_exceptions
#error "heed needs exceptions: it throws heed::shape_error if a shape does not fit; compile without -fno-exceptions"
#include <heed/needs/exceptions>
#endif

// heed computes with infinity and NaN: a masked score is -inf, as is the history of a position that was never attended
// to, and the padding may hold NaN. A compiler that assumes that neither occurs computes wrong weights.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error                                                                                                                 \
    "heed needs infinity and NaN, which -ffast-math, -Ofast and -ffinite-math-only rule out: add -fno-finite-math-only after that option"
#endif

// The x87, which g++ -m32 uses by default, keeps more digits in registers than in memory: a result would depend on
// where the compiler keeps it.
#if defined(__i386__) && !defined(__SSE2_MATH__)
#error "heed needs float and double arithmetic that rounds each result, which the x87 does not: add -msse2 -mfpmath=sse"
#endif

// clang++ 15 to 18 write to a wrong address when a struct whose first member is empty and has no distinct address is
// brace-initialized inside another struct (llvm-project, issue 59831): for these, empty members take up room.
#if defined(__clang__) && __clang_major__ >= 15 && __clang_major__ <= 18
#define HEED_NO_UNIQUE_ADDRESS
#else
#define HEED_NO_UNIQUE_ADDRESS [[no_unique_address]]
#endif

#include <heed/core/target.hpp>

namespace heed::inline HEED_TARGET::detail {

/// std::bit_cast, which Debian 12's Emscripten lacks: the same bits as a To.
template <class To, class From>
constexpr To bit_cast(const From& x)
{
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, x);
}

}  // namespace heed::inline HEED_TARGET::detail
