// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstring>

/// A program that was built for another processor reports it instead of crashing with an illegal instruction.
///
/// The program's main.cpp writes HEED_BUILT_FOR once and links processor.cpp, which is compiled for the baseline
/// processor and runs before everything else.
namespace program {

/// Whether this processor has a feature, by its compiler name. Returns false for unknown names.
inline bool processor_has(const char* feature, std::size_t length)
{
    const auto is = [&](const char* name) {
        return std::strlen(name) == length && std::memcmp(feature, name, length) == 0;
    };
#if defined(__x86_64__)
    __builtin_cpu_init();
#define HEED_FEATURE(name)                                                                                             \
    if (is(name)) return __builtin_cpu_supports(name) != 0
    HEED_FEATURE("sse4.2");
    HEED_FEATURE("popcnt");
    HEED_FEATURE("avx");
    HEED_FEATURE("avx2");
    HEED_FEATURE("fma");
    HEED_FEATURE("bmi");
    HEED_FEATURE("bmi2");
    HEED_FEATURE("avx512f");
    HEED_FEATURE("avx512cd");
    HEED_FEATURE("avx512dq");
    HEED_FEATURE("avx512bw");
    HEED_FEATURE("avx512vl");
    HEED_FEATURE("avx512vbmi");
    HEED_FEATURE("avx512ifma");
    HEED_FEATURE("avx512vnni");
    HEED_FEATURE("avx512vbmi2");
    HEED_FEATURE("avx512bitalg");
    HEED_FEATURE("avx512vpopcntdq");
#undef HEED_FEATURE
#endif
    (void)is;
    return false;
}

/// The first feature of a space-separated list that this processor lacks; its length, 0 if it has all features.
inline std::size_t missing_feature(const char* features, const char*& missing)
{
    while (*features != '\0') {
        const std::size_t length = std::strcspn(features, " ");
        if (length > 0 && !processor_has(features, length)) {
            missing = features;
            return length;
        }
        features += length + (features[length] == ' ' ? 1 : 0);
    }
    return 0;
}

}  // namespace program

/// The features that the compiler was allowed to use for this program.
extern "C" const char* const heed_built_for;

#ifdef __SSE4_2__
#define HEED_BUILT_FOR_SSE42 "sse4.2 popcnt "
#else
#define HEED_BUILT_FOR_SSE42
#endif
#ifdef __AVX__
#define HEED_BUILT_FOR_AVX "avx "
#else
#define HEED_BUILT_FOR_AVX
#endif
#ifdef __AVX2__
#define HEED_BUILT_FOR_AVX2 "avx2 "
#else
#define HEED_BUILT_FOR_AVX2
#endif
#ifdef __FMA__
#define HEED_BUILT_FOR_FMA "fma "
#else
#define HEED_BUILT_FOR_FMA
#endif
#ifdef __BMI2__
#define HEED_BUILT_FOR_BMI "bmi bmi2 "
#else
#define HEED_BUILT_FOR_BMI
#endif
#ifdef __AVX512F__
#define HEED_BUILT_FOR_AVX512F "avx512f "
#else
#define HEED_BUILT_FOR_AVX512F
#endif
#if defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512CD__)
#define HEED_BUILT_FOR_AVX512 "avx512cd avx512dq avx512bw avx512vl "
#else
#define HEED_BUILT_FOR_AVX512
#endif
#if defined(__AVX512VBMI__) && defined(__AVX512IFMA__)
#define HEED_BUILT_FOR_VBMI "avx512vbmi avx512ifma "
#else
#define HEED_BUILT_FOR_VBMI
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512VBMI2__) && defined(__AVX512BITALG__) && defined(__AVX512VPOPCNTDQ__)
#define HEED_BUILT_FOR_VNNI "avx512vnni avx512vbmi2 avx512bitalg avx512vpopcntdq "
#else
#define HEED_BUILT_FOR_VNNI
#endif

/// Write this in one file of a program, compiled like the rest of the program.
#define HEED_BUILT_FOR                                                                                                 \
    "" HEED_BUILT_FOR_SSE42 HEED_BUILT_FOR_AVX HEED_BUILT_FOR_AVX2 HEED_BUILT_FOR_FMA HEED_BUILT_FOR_BMI               \
        HEED_BUILT_FOR_AVX512F HEED_BUILT_FOR_AVX512 HEED_BUILT_FOR_VBMI HEED_BUILT_FOR_VNNI
