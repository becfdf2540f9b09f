// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include <heed/simd/registers.hpp>

/// Sines and cosines of registers.
///
///     sin x = (−1)^k sin r,  r = x − k π,  |r| <= π / 2;     cos x = (−1)^(k+1) sin r,  r = x − (k + ½) π
///
/// π is subtracted in parts, so that r is exact to the last place even near 0 (Cody and Waite 1980), and
/// sin r = r + r³ P(r²). Beyond the range of these parts, from 1e5 (float) and 1e6 (double) on, the standard library
/// computes each lane.
namespace heed::inline HEED_TARGET::simd {

namespace detail {

template <class T>
struct sines;
template <>
struct sines<float> {
    static constexpr double farthest = 1e5;
    static constexpr double pi[] = {3.1415927410125732422, -8.7422776573475857731e-8, -3.4302490200117637456e-15};
    // Minimax up to 1.575, which a rounded quotient may reach: error 6.2e-9 of the sine. Rounded so that cos 0 is 1.
    static constexpr double tail[] = {-0.166666597, 0.00833306275, -0.000198092515, 2.60497973e-06};
};
template <>
struct sines<double> {
    static constexpr double farthest = 1e6;
    static constexpr double pi[] = {3.141592653589793116, 1.2246467991473532072e-16, -2.9947698097183396659e-33};
    // 33 bits each, so that products with k are exact, and the rest
    static constexpr double short_pi[] = {3.1415926534682512283, 1.2154201012607931953e-10, 4.0445324974223329116e-21,
                                          1.695685532073779914e-31};
    // Minimax: error 2.8e-19.
    static constexpr double tail[] = {-0.16666666666666665568,    0.0083333333333331941802,  -0.00019841269841209171502,
                                      2.7557319211128797605e-6,   -2.5052106872001110679e-8, 1.6058939664485110788e-10,
                                      -7.6429903841977536338e-13, 2.7211630566072285019e-15};
};

inline constexpr double turns_per_unit = 0.31830988618379067154;  // 1 / π

/// x − k π for k π near x, k a multiple of ½.
HEED_SIMD_INLINE vec<double> without_turns(vec<double> x, vec<double> k)
{
    if constexpr (fma_is_fused) {
        for (const double part : sines<double>::pi) x = as_written(fma(k, splat(-part), x));
    } else {
        for (const double part : sines<double>::short_pi) x = as_written(x - as_written(k * splat(part)));
    }
    return x;
}
HEED_SIMD_INLINE vec<float> without_turns(vec<float> x, vec<float> k)
{
    if constexpr (fma_is_fused) {
        for (const double part : sines<float>::pi) x = as_written(fma(k, splats<float>(-part), x));
        return x;
    } else {  // products with short parts of π are not exact in floats; in doubles they are
        typedef float half __attribute__((vector_size(register_bytes / 2)));
        half from[2], turns[2];
        std::memcpy(&from, &x, sizeof x);
        std::memcpy(&turns, &k, sizeof k);
        for (std::size_t i = 0; i < 2; ++i) {
            const vec<double> r = without_turns(__builtin_convertvector(from[i], vec<double>),
                                                __builtin_convertvector(turns[i], vec<double>));
            from[i] = __builtin_convertvector(r, half);
        }
        std::memcpy(&x, &from, sizeof x);
        return x;
    }
}

/// Sines or cosines if numbers of a register are too large; `const`, so that unused results are omitted.
template <bool cosine, class T>
[[gnu::noinline, gnu::cold, gnu::const]] vec<T> far_sines(const vec<T> x, vec<T> y) noexcept
{
    for (std::size_t i = 0; i < lanes<T>; ++i) {
        if (!(std::abs(x[i]) < T(sines<T>::farthest))) y[i] = cosine ? std::cos(x[i]) : std::sin(x[i]);
    }
    return y;
}

template <bool cosine, class T>
HEED_SIMD_INLINE vec<T> sine(vec<T> x)
{
    const mask<T> minus = bits_of(splats<T>(-0.0)), sign = bits_of(x) & minus;
    const vec<T> magnitude = bits_as(x, bits_of(x) ^ sign), round = splats<T>(real<T>::round);
    vec<T> shifted = as_written(fma(magnitude, splats<T>(turns_per_unit), cosine ? splats<T>(-0.5) : round));
    if constexpr (cosine) shifted = as_written(shifted + round);
    vec<T> k = as_written(shifted - round);
    if constexpr (cosine) k = k + T(0.5);
    const vec<T> r = without_turns(magnitude, k), z = r * r;
    vec<T> s = fma(r * z, polynomial<T>(z, sines<T>::tail), r);
    s = max(splats<T>(-1), min(splats<T>(1), s));            // in this order NaN propagates
    mask<T> flip = bits_of(shifted) << (8 * sizeof(T) - 1);  // is k odd?
    flip = cosine ? flip ^ minus : flip ^ sign;
    vec<T> y = bits_as(x, bits_of(s) ^ flip);
    if (any_not_below<T>(magnitude, T(sines<T>::farthest))) [[unlikely]]
        y = far_sines<cosine, T>(x, y);
    return y;
}

/// (−1)^k (x − k π), |…| <= π / 2; its sine is that of x, or with `cosine` the cosine of x. The error is less than half
/// of x's last place, if the result is within its bounds.
template <bool cosine>
HEED_SIMD_INLINE vec<double> within_half_a_turn(vec<double> x)
{
    const vec<double> round = splat(real<double>::round);
    vec<double> shifted = as_written(fma(x, splat(turns_per_unit), cosine ? splat(0.5) : round));
    if constexpr (cosine) shifted = as_written(shifted + round);
    vec<double> k = as_written(shifted - round);
    if constexpr (cosine) k = k - 0.5;
    vec<double> rest;
    if constexpr (fma_is_fused) {
        rest = fma(k, splat(-sines<double>::pi[0]), x);  // exact to half of x's last place
    } else {
        rest = without_turns(x, k);
    }
    return bits_as(x, bits_of(rest) ^ (bits_of(shifted) << 63));
}

/// Two registers of doubles as one of floats.
HEED_SIMD_INLINE vec<float> narrowed(vec<double> a, vec<double> b)
{
    typedef float half __attribute__((vector_size(register_bytes / 2)));
    const half parts[] = {__builtin_convertvector(a, half), __builtin_convertvector(b, half)};
    return [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline))
    {
        return vec<float>(__builtin_shufflevector(parts[0], parts[1], static_cast<int>(i)...));
    }
    (std::make_index_sequence<lanes<float>>{});
}

template <bool cosine>
[[gnu::noinline, gnu::cold, gnu::const]] inline vec<float> far_sines(const vec<double> a, const vec<double> b) noexcept
{
    vec<float> y;
    for (std::size_t i = 0; i < lanes<float>; ++i) {
        const double x = i < lanes<double> ? a[i] : b[i - lanes<double>];
        y[i] = static_cast<float>(cosine ? std::cos(x) : std::sin(x));
    }
    return y;
}

/// Sines or cosines of doubles, as floats.
template <bool cosine>
HEED_SIMD_INLINE vec<float> rounded_sine(vec<double> a, vec<double> b)
{
    const vec<float> r = narrowed(within_half_a_turn<cosine>(a), within_half_a_turn<cosine>(b)), z = r * r;
    const vec<float> s = fma(r * z, polynomial<float>(z, sines<float>::tail), r);
    vec<float> y = max(splat(-1.0F), min(splat(1.0F), s));
    if (any_not_below<float>(z, 2.5F)) [[unlikely]]
        y = far_sines<cosine>(a, b);  // too far for doubles, or infinite
    return y;
}

}  // namespace detail

/// sin x and cos x, error at most 2.5 ulp and never beyond ±1; NaN for infinity and NaN.
HEED_SIMD_INLINE auto sin(plain_register auto x) { return detail::sine<false, number_in<decltype(x)>>(x); }
HEED_SIMD_INLINE auto cos(plain_register auto x) { return detail::sine<true, number_in<decltype(x)>>(x); }

}  // namespace heed::inline HEED_TARGET::simd
