// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The registers that the kernels use. With HEED_SIMD_PORTABLE they use no intrinsics, as on processors other than x86.
#if !defined(HEED_SIMD_PORTABLE) && defined(__SSE2__)
#if defined(__AVX512F__)
#define HEED_SIMD_AVX512
#elif defined(__AVX__)
#define HEED_SIMD_AVX
#else
#define HEED_SIMD_SSE2
#endif
#endif

// HEED_TARGET is the name of an inline namespace around everything in heed, such as heed::avx2. It encodes the flags
// that change the generated code: instruction set, BLAS, and whether sums may be reassociated.
//
// Two files of a program may be compiled with different flags. If both use an inline function or a template, the linker
// keeps only one of its two versions: a file compiled for SSE2 may then call code compiled for AVX-512, and crash with
// an illegal instruction. With the target in the name, each file calls its own version. A function that is declared in
// one file and defined in another, with a heed type as a parameter, does not link if their flags differ; the linker's
// message shows both targets.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define HEED_TARGET_SET avx512
#elif defined(__AVX512F__)
#define HEED_TARGET_SET avx512f
#elif defined(__AVX2__) && defined(__FMA__)
#define HEED_TARGET_SET avx2
#elif defined(__AVX2__)
#define HEED_TARGET_SET avx2_without_fma
#elif defined(__AVX__) && defined(__FMA__)
#define HEED_TARGET_SET avx_fma
#elif defined(__AVX__)
#define HEED_TARGET_SET avx
#elif defined(__SSE4_2__)
#define HEED_TARGET_SET sse4
#elif defined(__SSE2__)
#define HEED_TARGET_SET sse2
#else
#define HEED_TARGET_SET generic
#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define HEED_TARGET_INT8 _vnni
#else
#define HEED_TARGET_INT8
#endif

// clang's macros had other names before version 16.
#if (defined(__AMX_TILE__) && defined(__AMX_BF16__)) || (defined(__AMXTILE__) && defined(__AMXBF16__))
#define HEED_TARGET_HAS_AMX
#endif

#if defined(__AVX512BF16__) && defined(HEED_TARGET_HAS_AMX)
#define HEED_TARGET_BFLOAT16 _bf16_amx
#elif defined(__AVX512BF16__)
#define HEED_TARGET_BFLOAT16 _bf16
#else
#define HEED_TARGET_BFLOAT16
#endif

#if defined(HEED_SIMD_PORTABLE)
#define HEED_TARGET_REGISTERS _portable
#else
#define HEED_TARGET_REGISTERS
#endif

#if defined(HEED_BLAS_NONE)
#define HEED_TARGET_BLAS _without_blas
#elif defined(HEED_BLAS_CBLAS)
#define HEED_TARGET_BLAS _cblas
#else
#define HEED_TARGET_BLAS
#endif

#if defined(__ASSOCIATIVE_MATH__) || defined(__FAST_MATH__)
#define HEED_TARGET_MATH _reassociated
#else
#define HEED_TARGET_MATH
#endif

// heed::compiled (src/compiled) contains the kernels for several targets and chooses one at run time. Its CMake target
// defines HEED_COMPILED. Files compiled for the x86-64 baseline then call its kernels; files compiled for a wider
// instruction set keep using the headers. HEED_COMPILES is for the library's own files.
#if defined(HEED_COMPILED) && defined(__x86_64__) && defined(__SSE2__) && !defined(__SSE4_2__) && !defined(__AVX__) && \
    !defined(HEED_SIMD_PORTABLE) && !defined(__ASSOCIATIVE_MATH__) && !defined(__FAST_MATH__)
#define HEED_CALLS_COMPILED
#define HEED_TARGET_LIBRARY _and_compiled
#elif defined(HEED_COMPILES)
#define HEED_TARGET_LIBRARY _of_library
#else
#define HEED_TARGET_LIBRARY
#endif

#define HEED_JOIN_TARGET_NAMES(set, int8, bfloat16, registers, blas, math, library)                                    \
    set##int8##bfloat16##registers##blas##math##library
#define HEED_JOIN_TARGET(...) HEED_JOIN_TARGET_NAMES(__VA_ARGS__)
#define HEED_TARGET                                                                                                    \
    HEED_JOIN_TARGET(HEED_TARGET_SET, HEED_TARGET_INT8, HEED_TARGET_BFLOAT16, HEED_TARGET_REGISTERS, HEED_TARGET_BLAS, \
                     HEED_TARGET_MATH, HEED_TARGET_LIBRARY)

// HEED_TARGET as a string literal.
#define HEED_TEXT_OF(name) #name
#define HEED_TEXT(name) HEED_TEXT_OF(name)
#define HEED_TARGET_NAME HEED_TEXT(HEED_TARGET)
