// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <heed/core/cxx20.hpp>

#if defined(HEED_SIMD_AVX512) || defined(HEED_SIMD_AVX)
#include <immintrin.h>
#elif defined(HEED_SIMD_SSE2) && !__has_builtin(__builtin_ia32_sqrtps)
#include <emmintrin.h>
#endif

/// One register of floats or doubles, of the target's width, and its functions for kernels.
///
/// Built on the vector extensions that g++ and clang share, so that `+ - * /` and comparisons work as usual; a
/// comparison returns a mask for `select`. Intrinsics appear only if the extensions cannot express an instruction. The
/// result of an element never depends on its position in the register. If the compiler may reassociate (-ffast-math
/// -fno-finite-math-only), results agree to rounding, but a zero may lose its sign; and g++ then links start-up code
/// that makes the processor treat subnormal numbers as 0.
namespace heed::inline HEED_TARGET::simd {

#if defined(HEED_SIMD_AVX512)
inline constexpr std::size_t register_bytes = 64;
#elif defined(HEED_SIMD_AVX)
inline constexpr std::size_t register_bytes = 32;
#else
inline constexpr std::size_t register_bytes = 16;
#endif

/// Whether `fma` rounds once.
#if defined(HEED_SIMD_AVX512) || (defined(HEED_SIMD_AVX) && defined(__FMA__))
inline constexpr bool fma_is_fused = true;
#else
inline constexpr bool fma_is_fused = false;
#endif

/// Elements in a register.
template <class T>
inline constexpr std::size_t lanes = register_bytes / sizeof(T);

namespace detail {
template <class T>
struct register_of {
    typedef T type __attribute__((vector_size(register_bytes)));
    typedef std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t> integer
        __attribute__((vector_size(register_bytes)));
};
}  // namespace detail

template <class T>
using vec = typename detail::register_of<T>::type;
/// The result of comparing two vec<T>: all bits of a lane are set where the comparison holds.
template <class T>
using mask = typename detail::register_of<T>::integer;

/// A register of floats or doubles, and the type of its numbers.
template <class V>
concept plain_register = std::is_same_v<V, vec<float>> || std::is_same_v<V, vec<double>>;
template <plain_register V>
using number_in = std::conditional_t<std::is_same_v<V, vec<float>>, float, double>;

#define HEED_SIMD_INLINE [[gnu::always_inline]] inline

template <class T>
HEED_SIMD_INLINE vec<T> splat(T x)
{
    return x - vec<T>{};  // not 0 + x, which would lose the sign of -0
}

template <class T>
HEED_SIMD_INLINE vec<T> load(const T* x)
{
    vec<T> v;
    std::memcpy(&v, x, sizeof v);
    return v;
}

template <class T>
HEED_SIMD_INLINE void store(T* y, std::type_identity_t<vec<T>> v)
{
    std::memcpy(y, &v, sizeof v);
}

/// The first `count` < lanes elements; the rest is zero, and its memory is not accessed.
template <class T>
HEED_SIMD_INLINE vec<T> load(const T* x, std::size_t count)
{
#if defined(HEED_SIMD_AVX512)
    if constexpr (sizeof(T) == 4) {
        return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), x);
    } else {
        return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1u), x);
    }
#else
    T lane[lanes<T>] = {};
    for (std::size_t i = 0; i < count; ++i) lane[i] = x[i];
    return load(lane);
#endif
}

template <class T>
HEED_SIMD_INLINE void store(T* y, std::type_identity_t<vec<T>> v, std::size_t count)
{
#if defined(HEED_SIMD_AVX512)
    if constexpr (sizeof(T) == 4) {
        _mm512_mask_storeu_ps(y, static_cast<__mmask16>((1u << count) - 1u), v);
    } else {
        _mm512_mask_storeu_pd(y, static_cast<__mmask8>((1u << count) - 1u), v);
    }
#else
    T lane[lanes<T>];
    store(lane, v);
    for (std::size_t i = 0; i < count; ++i) y[i] = lane[i];
#endif
}

/// a where the mask holds, b elsewhere: selected, not computed, so that NaN in the other operand has no effect.
template <class M, class V>
HEED_SIMD_INLINE V select(M mask, V a, V b)
{
    return mask ? a : b;
}

/// x, computed as written, even if the compiler may reassociate: as_written(x + c) - c is x, rounded. Costs nothing.
template <class V>
HEED_SIMD_INLINE V as_written(V x)
{
#if defined(__clang__) && defined(__x86_64__)
    return __arithmetic_fence(x);
#elif defined(__ASSOCIATIVE_MATH__) && defined(__x86_64__)
    asm("" : "+v"(x));  // g++ 12 splits a register for __builtin_assoc_barrier
    return x;
#elif defined(__ASSOCIATIVE_MATH__)
    return __builtin_assoc_barrier(x);
#else
    return x;
#endif
}

HEED_SIMD_INLINE auto bits_as(plain_register auto like, auto bits) { return reinterpret_cast<decltype(like)>(bits); }
HEED_SIMD_INLINE auto bits_of(plain_register auto x) { return reinterpret_cast<mask<number_in<decltype(x)>>>(x); }

#if defined(HEED_SIMD_AVX512)
// The plain forms of these intrinsics start from an undefined register, which g++ 12 warns about; hence maskz with all
// lanes.
#define HEED_SIMD_ALL16 static_cast<__mmask16>(0xFFFF)
#define HEED_SIMD_ALL8 static_cast<__mmask8>(0xFF)
/// a > b ? a : b, so b if either is NaN.
HEED_SIMD_INLINE vec<float> max(vec<float> a, vec<float> b) { return _mm512_maskz_max_ps(HEED_SIMD_ALL16, a, b); }
HEED_SIMD_INLINE vec<double> max(vec<double> a, vec<double> b) { return _mm512_maskz_max_pd(HEED_SIMD_ALL8, a, b); }
HEED_SIMD_INLINE vec<float> min(vec<float> a, vec<float> b) { return _mm512_maskz_min_ps(HEED_SIMD_ALL16, a, b); }
HEED_SIMD_INLINE vec<double> min(vec<double> a, vec<double> b) { return _mm512_maskz_min_pd(HEED_SIMD_ALL8, a, b); }
HEED_SIMD_INLINE vec<float> sqrt(vec<float> x) { return _mm512_maskz_sqrt_ps(HEED_SIMD_ALL16, x); }
HEED_SIMD_INLINE vec<double> sqrt(vec<double> x) { return _mm512_maskz_sqrt_pd(HEED_SIMD_ALL8, x); }
HEED_SIMD_INLINE vec<float> fma(vec<float> a, vec<float> b, vec<float> c) { return _mm512_fmadd_ps(a, b, c); }
HEED_SIMD_INLINE vec<double> fma(vec<double> a, vec<double> b, vec<double> c) { return _mm512_fmadd_pd(a, b, c); }
#else
#if defined(HEED_SIMD_AVX)
HEED_SIMD_INLINE vec<float> max(vec<float> a, vec<float> b) { return _mm256_max_ps(a, b); }
HEED_SIMD_INLINE vec<double> max(vec<double> a, vec<double> b) { return _mm256_max_pd(a, b); }
HEED_SIMD_INLINE vec<float> min(vec<float> a, vec<float> b) { return _mm256_min_ps(a, b); }
HEED_SIMD_INLINE vec<double> min(vec<double> a, vec<double> b) { return _mm256_min_pd(a, b); }
HEED_SIMD_INLINE vec<float> sqrt(vec<float> x) { return _mm256_sqrt_ps(x); }
HEED_SIMD_INLINE vec<double> sqrt(vec<double> x) { return _mm256_sqrt_pd(x); }
#else
HEED_SIMD_INLINE auto max(plain_register auto a, decltype(a) b) { return select(a > b, a, b); }
HEED_SIMD_INLINE auto min(plain_register auto a, decltype(a) b) { return select(a < b, a, b); }
#if defined(HEED_SIMD_SSE2) && __has_builtin(__builtin_ia32_sqrtps)
// The instructions themselves: <emmintrin.h> takes g++ a fiftieth of the time of xtensor, <immintrin.h> a third.
HEED_SIMD_INLINE vec<float> sqrt(vec<float> x) { return __builtin_ia32_sqrtps(x); }
HEED_SIMD_INLINE vec<double> sqrt(vec<double> x) { return __builtin_ia32_sqrtpd(x); }
#elif defined(HEED_SIMD_SSE2)
HEED_SIMD_INLINE vec<float> sqrt(vec<float> x) { return _mm_sqrt_ps(x); }
HEED_SIMD_INLINE vec<double> sqrt(vec<double> x) { return _mm_sqrt_pd(x); }
#else
HEED_SIMD_INLINE auto sqrt(plain_register auto x)
{
    for (std::size_t i = 0; i < sizeof x / sizeof x[0]; ++i) {
        if constexpr (sizeof x[0] == 4) {
            x[i] = __builtin_sqrtf(x[i]);
        } else {
            x[i] = __builtin_sqrt(x[i]);
        }
    }
    return x;
}
#endif
#endif
#if defined(HEED_SIMD_AVX) && defined(__FMA__)
HEED_SIMD_INLINE vec<float> fma(vec<float> a, vec<float> b, vec<float> c) { return _mm256_fmadd_ps(a, b, c); }
HEED_SIMD_INLINE vec<double> fma(vec<double> a, vec<double> b, vec<double> c) { return _mm256_fmadd_pd(a, b, c); }
#else
HEED_SIMD_INLINE auto fma(plain_register auto a, decltype(a) b, decltype(a) c) { return a * b + c; }
#endif
#endif

/// Whether a comparison holds in any lane.
template <class M>
HEED_SIMD_INLINE bool any(M m)
{
#if defined(HEED_SIMD_AVX512)
    return _mm512_test_epi32_mask(__m512i(m), __m512i(m)) != 0;
#elif defined(HEED_SIMD_AVX)
    return _mm256_testz_si256(__m256i(m), __m256i(m)) == 0;
#elif defined(HEED_SIMD_SSE2)
    typedef char bytes __attribute__((vector_size(16)));
    return __builtin_ia32_pmovmskb128(bytes(m)) != 0;
#else
    std::uint64_t half[2];
    std::memcpy(half, &m, sizeof m);
    return (half[0] | half[1]) != 0;
#endif
}

namespace detail {

/// Folds a register in halves down to one element; f takes vectors and elements alike.
template <class T, std::size_t bytes, class V, class Fold>
HEED_SIMD_INLINE T fold(V v, Fold&& f)
{
    if constexpr (bytes == 16) {
        if constexpr (sizeof(T) == 4) {
            return f(f(v[0], v[2]), f(v[1], v[3]));
        } else {
            return f(v[0], v[1]);
        }
    } else {
        typedef T half __attribute__((vector_size(bytes / 2)));
        half part[2];
        std::memcpy(&part, &v, sizeof v);
        return fold<T, bytes / 2, half>(f(part[0], part[1]), f);
    }
}

template <class T>
HEED_SIMD_INLINE vec<T> splats(double x)
{
    return splat<T>(static_cast<T>(x));
}

/// Σ_i c[i] x^i
template <class T, std::size_t N>
HEED_SIMD_INLINE vec<T> polynomial(vec<T> x, const double (&c)[N])
{
    vec<T> y = splats<T>(c[N - 1]);
    for (std::size_t i = N - 1; i > 0; --i) y = fma(y, x, splats<T>(c[i - 1]));
    return y;
}

template <class T>
struct real;
template <>
struct real<float> {
    static constexpr int mantissa = 23, bias = 127;
    // exp is 0 below `lowest` and inf above `highest`, with a margin for an error in the last place. A product that
    // underflows takes a hundred times as long, and hidden scores are -inf: so `lowest` is chosen such that nothing
    // underflows. The two-step scaling then multiplies by 0 in both steps; AVX-512 scales in one step, and is fast
    // again from 2^-513 on.
#if defined(HEED_SIMD_AVX512)
    static constexpr double lowest = -400;  // 2^-577
#else
    static constexpr double lowest = -176;     // 2^-254
#endif
    static constexpr double highest = 89, tanh_one = 10;
    static constexpr double ln2_high = 0.693359375, ln2_low = -2.12194440054690583e-4;  // n * ln2_high is exact
    static constexpr double round = 12582912.0;  // 1.5 * 2^23: adding it leaves no room for a fraction
};
template <>
struct real<double> {
    static constexpr int mantissa = 52, bias = 1023;
#if defined(HEED_SIMD_AVX512)
    static constexpr double lowest = -3200;  // 2^-4617
#else
    static constexpr double lowest = -1418.2;  // 2^-2046
#endif
    static constexpr double highest = 710, tanh_one = 20;
    static constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    static constexpr double round = 6755399441055744.0;
};

/// x = n ln 2 + r with |r| <= ln 2 / 2, for x within the range of exp.
template <class T>
struct reduced {
    vec<T> n, r;
    mask<T> integer;
};
template <class T>
HEED_SIMD_INLINE reduced<T> reduce(vec<T> x)
{
    const vec<T> round = splats<T>(real<T>::round);
    const vec<T> shifted = as_written(fma(x, splats<T>(1.44269504088896340736), round));
    const vec<T> n = as_written(shifted - round);
    vec<T> r = as_written(fma(n, splats<T>(-real<T>::ln2_high), x));
    r = as_written(fma(n, splats<T>(-real<T>::ln2_low), r));
    return {n, r, bits_of(shifted) - bits_of(round)};
}

/// 2^n for n within the exponents of T.
template <class T>
HEED_SIMD_INLINE vec<T> power_of_two(mask<T> n)
{
    return bits_as(vec<T>{}, (n + real<T>::bias) << real<T>::mantissa);
}

/// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2. Float: interpolated at the Chebyshev nodes, which changes exp(r) - 1 by
/// a relative error of at most 2.5e-8. Double: Taylor, with a truncation error of 4e-18.
template <class T>
HEED_SIMD_INLINE vec<T> exp_tail(vec<T> r)
{
    if constexpr (sizeof(T) == 4) {
        return polynomial<T>(
            r, {0.5, 0.16666576845993977, 0.04166655443768594, 0.008363202971575855, 0.0013926213466332444});
    } else {
        return polynomial<T>(r, {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                                 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800});
    }
}

#if defined(HEED_SIMD_AVX512)
/// x = 2^n m with m in [¾, 1½): ln x = n ln 2 - ln c + ln(1 + r), r = c m - 1, with c near 1/m from a table of 16,
/// whose logarithms are nearly floats. c is 1 near m = 1, so that nothing cancels; -1/32 <= r <= 1/16. n is infinite
/// for 0 and infinity, m is NaN below 0.
HEED_SIMD_INLINE vec<float> log_by_table(vec<float> x)
{
    const vec<float> c = {1.0F,         0.914179265F, 0.864982545F, 0.820596099F, 0.780449152F, 0.74428308F,
                          0.711086273F, 0.680818319F, 1.3061446F,   1.25470519F,  1.20758951F,  1.16362619F,
                          1.12269998F,  1.084903F,    1.04931295F,  1.0F};
    const vec<float> minus_log_c = {0.0F,          0.0897285938F,  0.145045951F,   0.197724253F,
                                    0.247885689F,  0.295333833F,   0.340961516F,   0.384459794F,
                                    -0.267079741F, -0.226900637F,  -0.18862623F,   -0.151541159F,
                                    -0.115736477F, -0.0814905837F, -0.0481356159F, 0.0F};
    const vec<float> m = _mm512_maskz_getmant_ps(HEED_SIMD_ALL16, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
    const vec<float> n =
        vec<float>(_mm512_maskz_getexp_ps(HEED_SIMD_ALL16, x)) - vec<float>(_mm512_maskz_getexp_ps(HEED_SIMD_ALL16, m));
    const __m512i part = __m512i(bits_of(m) >> 19);  // the exponent's last bit and the mantissa's first: 16 cases
    const vec<float> r = fma(m, _mm512_maskz_permutexvar_ps(HEED_SIMD_ALL16, part, c), splat(-1.0F));
    const vec<float> rest = _mm512_maskz_permutexvar_ps(HEED_SIMD_ALL16, part, minus_log_c);
    // Interpolated at the Chebyshev nodes: error 5.9e-9 of ln(1 + r).
    const vec<float> tail =
        polynomial<float>(r, {-0.4999999799512394, 0.3333417696702169, -0.2501231570096505, 0.19021256807034348});
    return fma(n, splats<float>(0.69314718055994530942), rest) + fma(r * r, tail, r);
}
#endif

/// x = 2^n m with m in [√½, √2): ln x = n ln 2 + 2 artanh((m-1)/(m+1)), for normal numbers and, with `special`, others.
template <class T, bool special>
HEED_SIMD_INLINE vec<T> log_by_quotient(vec<T> x)
{
    const vec<T> smallest = splat<T>(std::numeric_limits<T>::min());
    const mask<T> subnormal = x < smallest;
    vec<T> normal = x;
    if constexpr (special)
        normal = select(subnormal, x * splats<T>(sizeof(T) == 4 ? 8388608.0 : 4503599627370496.0), x);
    const mask<T> root_half = bits_of(splats<T>(0.70710678118654752440));
    const mask<T> n = (bits_of(normal) - root_half) >> real<T>::mantissa;
    const vec<T> m = bits_as(x, bits_of(normal) - (n << real<T>::mantissa));
    mask<T> exponent = n;
    if constexpr (special) exponent = n - (subnormal & (mask<T>{} + real<T>::mantissa));
    const vec<T> k = __builtin_convertvector(exponent, vec<T>);
    const vec<T> s = (m - T(1)) / (m + T(1));
    const vec<T> z = s * s;
    vec<T> tail;
    if constexpr (sizeof(T) == 4) {
        tail = polynomial<T>(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11});
    } else {
        tail = polynomial<T>(z, {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19,
                                 2.0 / 21, 2.0 / 23});
    }
    vec<T> y = as_written(fma(k, splats<T>(real<T>::ln2_low), s * z * tail));
    y = as_written(y + (s + s));
    y = fma(k, splats<T>(real<T>::ln2_high), y);
    if constexpr (special) {
        const vec<T> infinity = splat<T>(std::numeric_limits<T>::infinity());
        y = select(x == infinity, infinity, y);
        y = select(x == T(0), -infinity, y);
        y = select(x >= T(0), y, splat<T>(std::numeric_limits<T>::quiet_NaN()));
    }
    return y;
}
/// For any numbers; `const`, so that unused results are omitted.
template <class T>
[[gnu::noinline, gnu::cold, gnu::const]] vec<T> log_of_any(const vec<T> x) noexcept
{
    return log_by_quotient<T, true>(x);
}

}  // namespace detail

/// e^x, error at most 2 ulp; 0 for -inf and below underflow, inf above overflow, NaN for NaN.
HEED_SIMD_INLINE auto exp(plain_register auto x) -> decltype(x)
{
    using namespace detail;
    using T = number_in<decltype(x)>;
    // In this order NaN propagates.
    x = min(splats<T>(real<T>::highest), max(splats<T>(real<T>::lowest), x));
    const reduced<T> part = reduce<T>(x);
    const vec<T> y = fma(part.r * part.r, exp_tail<T>(part.r), part.r) + T(1);
#if defined(HEED_SIMD_AVX512)
    if constexpr (sizeof(T) == 4) {
        return _mm512_maskz_scalef_ps(HEED_SIMD_ALL16, y, part.n);
    } else {
        return _mm512_maskz_scalef_pd(HEED_SIMD_ALL8, y, part.n);
    }
#else
    // Two steps, because 2^n itself may not be a normal number.
    const mask<T> half = part.integer >> 1;
    return as_written(y * power_of_two<T>(half)) * power_of_two<T>(part.integer - half);
#endif
}

/// e^x for x <= 0, bit-identical to exp(x) down to x = -87.3365 (double: -708.396); smaller results, below 1.17553e-38
/// (2.226e-308), are 0, or with AVX-512 those of exp; NaN for NaN.
HEED_SIMD_INLINE auto exp_of_nonpositive(plain_register auto x) -> decltype(x)
{
#if defined(HEED_SIMD_AVX512)
    return exp(x);  // one instruction scales in any range
#else
    using namespace detail;
    using T = number_in<decltype(x)>;
    constexpr double least = sizeof(T) == 4 ? -87.3365 : -708.396;  // slightly above ln(smallest normal number)
    const auto none = x < splats<T>(least);
    const reduced<T> part = reduce<T>(max(splats<T>(least), x));
    const vec<T> y = fma(part.r * part.r, exp_tail<T>(part.r), part.r) + T(1);
    return select(none, vec<T>{}, y * power_of_two<T>(part.integer));
#endif
}

/// tanh x, error at most 5 ulp; odd, exactly ±1 once that is the nearest number, NaN for NaN.
///
/// Float: tanh |x| = |x| (1 + x² P(x²)) / Q(x²), minimax (2.1e-8) up to 9 with coefficients adjusted to the rounding of
/// every float; beyond 9 it exceeds 1 and is clamped. Double, and float if the rounding of unfused products would be
/// too large: with E = exp(2|x|) - 1, tanh |x| = E / (E + 2), which is accurate near 0.
HEED_SIMD_INLINE auto tanh(plain_register auto x) -> decltype(x)
{
    using namespace detail;
    using T = number_in<decltype(x)>;
    const mask<T> sign = bits_of(x) & bits_of(splats<T>(-0.0));
    const vec<T> magnitude = bits_as(x, bits_of(x) ^ sign);
    vec<T> y;
    if constexpr (sizeof(T) == 4 && fma_is_fused) {
        const vec<T> m = min(splats<T>(9.6), magnitude), z = m * m;
        const vec<T> p = polynomial<T>(z, {0.133810222, 0.00349558447, 2.06090281e-05, 1.33545708e-08});
        const vec<T> q = polynomial<T>(z, {1.0, 0.467143387, 0.0258769672, 0.000328562921, 7.77652247e-07});
        y = min(splats<T>(1), fma(m * z, p, m) / q);
    } else {
        const reduced<T> part = reduce<T>(min(splats<T>(2 * real<T>::tanh_one), magnitude + magnitude));
        const vec<T> scale = power_of_two<T>(part.integer);
        const vec<T> e = fma(scale, fma(part.r * part.r, exp_tail<T>(part.r), part.r), as_written(scale - T(1)));
        y = e / (e + T(2));
    }
    return bits_as(x, bits_of(y) | sign);
}

/// ln x, error at most 2 ulp; -inf for 0, NaN below 0 and for NaN.
HEED_SIMD_INLINE auto log(plain_register auto x) -> decltype(x)
{
    using T = number_in<decltype(x)>;
#if defined(HEED_SIMD_AVX512)
    if constexpr (sizeof(T) == 4) return detail::log_by_table(x);
#endif
    const mask<T> normal =
        (x >= splat<T>(std::numeric_limits<T>::min())) & (x < splat<T>(std::numeric_limits<T>::infinity()));
    if (any(~normal)) [[unlikely]]
        return detail::log_of_any<T>(x);
    return detail::log_by_quotient<T, false>(x);
}

/// ln(1 + x) for x >= 0, inf included, error at most 2.5 ulp; NaN for NaN.
template <class V>
HEED_SIMD_INLINE V log1p(V x)
{
    const V u = as_written(x + 1), lost = x - as_written(u - 1);
    return log(u) + select(u == x, V{}, lost) / u;  // if adding 1 has no effect, x may be infinite
}

/// 1 / (1 + e^-x), error at most 2.5 ulp; within [0, 1], and 0 where e^-x overflows; NaN for NaN.
HEED_SIMD_INLINE auto sigmoid(plain_register auto x) { return 1 / (1 + exp(-x)); }

/// Φ(x) = (1 + erf(x / √2)) / 2, error at most 1 ulp of 1; within [0, 1], NaN for NaN.
///
/// Φ(−a) = e^(−a²/2) R(a) for a >= 0, and R(a) = 1/2 − a/(1 + a) S. As a function of
/// (a − k) / (a + k), which is between -1 and 1, S is smooth up to infinity; it is interpolated at the Chebyshev nodes,
/// with errors of 2e-8 (float) and 4e-17 (double).
HEED_SIMD_INLINE auto normal_cdf(plain_register auto x) -> decltype(x)
{
    using namespace detail;
    using T = number_in<decltype(x)>;
    const vec<T> far = splats<T>(40);  // Φ(−a) is 0 here; NaN stays NaN
    vec<T> a = select(x < T(0), -x, x);
    a = select(a > far, far, a);
    const vec<T> k = splats<T>(sizeof(T) == 4 ? 3.5 : 4.5), t = (a - k) / (a + k);
    vec<T> s;
    if constexpr (sizeof(T) == 4) {
        s = polynomial<T>(t, {0.5061276728855729, 0.015662497940177798, -0.04380592337775949, 0.03316052316672745,
                              -0.013638348403087688, 0.0020266133056642947, 0.0008403274083677951,
                              -0.000358239272699393, -5.260030369454847e-05, 3.7469681859021546e-05});
    } else {
        s = polynomial<T>(
            t, {0.5074625207571329,      0.006065349349776281,    -0.03235417682917224,   0.033447578630549736,
                -0.02249212360223042,    0.01071585662268792,     -0.0033364353332114333, 0.0003803616676928452,
                0.0001956361631594819,   -9.068997688707199e-05,  -3.521796681133201e-06, 1.1769715298516225e-05,
                -9.412773187657336e-07,  -1.5712906239005301e-06, 2.0918681299478444e-07, 2.393797339424883e-07,
                -2.986709368778109e-08,  -3.972273623301016e-08,  2.9397207497432304e-09, 5.969948382373341e-09,
                -1.4040207474691258e-10, -5.461567796942147e-10});
    }
    const vec<T> rest = splats<T>(0.5) - a / (T(1) + a) * s;
    const vec<T> tail = exp(a * a * splats<T>(-0.5)) * rest;
    return select(x < T(0), tail, T(1) - tail);
}

/// The sum of the lanes, folded in halves.
HEED_SIMD_INLINE auto sum(plain_register auto v)
{
    return detail::fold<number_in<decltype(v)>, register_bytes>(
        v, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}
/// The maximum lane, if none is NaN (the effect of a NaN depends on the width).
HEED_SIMD_INLINE auto max(plain_register auto v)
{
    return detail::fold<number_in<decltype(v)>, register_bytes>(
        v, [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}

/// Whether any lane is NaN or at least the limit.
template <class T>
HEED_SIMD_INLINE bool any_not_below(vec<T> x, std::type_identity_t<T> limit)
{
#if defined(HEED_SIMD_AVX512)
    if constexpr (sizeof(T) == 4) {
        return _mm512_cmp_ps_mask(x, splat(limit), _CMP_NLT_UQ) != 0;
    } else {
        return _mm512_cmp_pd_mask(x, splat(limit), _CMP_NLT_UQ) != 0;
    }
#else
    return any(~(x < splat(limit)));
#endif
}

}  // namespace heed::inline HEED_TARGET::simd
