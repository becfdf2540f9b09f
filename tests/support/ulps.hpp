// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include <heed/simd/simd.hpp>

#include "special_values.hpp"

/// The accuracy of functions of registers.
namespace heed::test {

/// The error of a result in units in the last place of T.
template <class T>
double ulps(T got, long double want)
{
    if (std::isnan(got) || std::isinf(got) || std::isinf(static_cast<T>(want))) {
        return got == static_cast<T>(want) ? 0 : 1e9;
    }
    int exponent = 0;
    std::frexp(want, &exponent);
    const int last = std::max(exponent - std::numeric_limits<T>::digits,
                              std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits);
    return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / std::ldexp(1.0L, last));
}

template <class T, class F, class Exact>
double worst(T low, T high, F f, Exact exact, bool logarithmic = false)
{
    constexpr std::size_t n = 100001;
    std::vector<T> x(n), y(n);
    for (std::size_t i = 0; i < n; ++i) {
        const T at = low + (high - low) * static_cast<T>(i) / static_cast<T>(n - 1);
        x[i] = logarithmic ? std::exp(at) : at;
    }
    simd::transform(n, y.data(), f, x.data());
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) most = std::max(most, ulps(y[i], exact(static_cast<long double>(x[i]))));
    return most;
}

template <class F, class T>
T one(F f, T x)
{
    T y = 0;
    simd::transform(1, &y, f, &x);
    return y;
}

/// Runs f on arrays with a special value at one position: correct there, and the other results keep their bits.
template <class T, class F, class Exact>
void check_everywhere(const char* what, double units, F f, Exact exact)
{
    INFO(what);
    for (const std::size_t n : awkward_sizes(simd::lanes<T>)) {
        std::vector<T> plain(n, T(0.5)), undisturbed(n);
        simd::transform(n, undisturbed.data(), f, plain.data());
        for (const T value : special_values<T>()) {
            for (std::size_t at = 0; at < n; ++at) {
                std::vector<T> x = plain, y(n);
                x[at] = value;
                simd::transform(n, y.data(), f, x.data());
                CAPTURE(value);
                CAPTURE(at);
                CAPTURE(y[at]);
                REQUIRE(agree(y[at], exact(value), units));
                y[at] = undisturbed[at];
                REQUIRE(std::memcmp(y.data(), undisturbed.data(), n * sizeof(T)) == 0);
            }
        }
    }
}

}  // namespace heed::test
