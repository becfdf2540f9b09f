// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/simd/simd.hpp>

#include "special_values.hpp"

/// Rows with a special value at each position, for kernels that compare numbers or sum a row: NaN must be detected at
/// any position and with any register width.
namespace heed::test {

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

/// Calls f(row) for rows of ordinary numbers with a special value at each position, with or without -inf at the next
/// position.
template <class T, class F>
void each_row(F f)
{
    for (const std::size_t n : awkward_sizes(simd::lanes<T>)) {
        for (const T value : special_values<T>()) {
            for (std::size_t at = 0; at < n; ++at) {
                for (const bool masked : {false, true}) {
                    std::vector<T> x(n);
                    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>((i * 5 + 3) % 7) * T(0.5) - 1;
                    if (masked) x[(at + 1) % n] = -infinity<T>;
                    x[at] = value;
                    CAPTURE(n);
                    CAPTURE(at);
                    CAPTURE(value);
                    CAPTURE(masked);
                    f(x);
                }
            }
        }
    }
}

template <class T>
void require_equal(const T* got, const std::vector<double>& want, double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-13)
{
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double is = static_cast<double>(got[i]);
        if (is == want[i] || (std::isnan(is) && std::isnan(want[i]))) continue;
        CAPTURE(i);
        CAPTURE(is);
        CAPTURE(want[i]);
        REQUIRE(std::fabs(is - want[i]) <= tolerance * std::max(1.0, std::fabs(want[i])));
    }
}

template <class T>
bool any_nan(const std::vector<T>& x)
{
    return std::any_of(x.begin(), x.end(), [](T e) { return std::isnan(e); });
}

/// The maximum of the numbers.
template <class T>
T greatest(const std::vector<T>& x)
{
    T top = -infinity<T>;
    for (const T e : x) top = e > top ? e : top;
    return top;
}

/// A score of -inf is masked: its weight is 0 for any other scores.
template <class T>
std::vector<double> expected_softmax(const std::vector<T>& x)
{
    const double top = static_cast<double>(greatest(x));
    std::vector<double> y(x.size(), 0);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != -infinity<T>) sum += y[i] = std::exp(static_cast<double>(x[i]) - top);
    for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i] != -infinity<T>) y[i] /= sum;
    return y;
}

/// Checks that a masked score has weight 0 and gradient 0, for any other scores and incoming gradient.
template <class T>
void check_hidden(const auto& forward, const auto& backward)
{
    each_row<T>([&](const std::vector<T>& x) {
        const std::size_t n = x.size();
        std::vector<T> y(n), in_place = x, dy(n), with_zeros(n), dx(n), must(n);
        forward(n, x.data(), y.data());
        forward(n, in_place.data(), in_place.data());
        for (std::size_t i = 0; i < n; ++i) {
            if (x[i] == -infinity<T>) CHECK((y[i] == 0 && in_place[i] == 0));
            dy[i] = with_zeros[i] = T(0.5) + static_cast<T>(i % 3);
            if (y[i] == 0) dy[i] = std::numeric_limits<T>::quiet_NaN();
            if (y[i] == 0) with_zeros[i] = 0;
        }
        backward(n, y.data(), dy.data(), dx.data());
        backward(n, y.data(), with_zeros.data(), must.data());
        require_equal(dx.data(), std::vector<double>(must.begin(), must.end()));
        for (std::size_t i = 0; i < n; ++i)
            if (y[i] == 0) CHECK(dx[i] == 0);
    });
}

}  // namespace heed::test
