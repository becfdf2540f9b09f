// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/simd/simd.hpp>

/// Compares each kernel with plain loops in double, written independently from the equations, and each backward pass
/// with finite differences; the padding is poisoned.
namespace heed::test {

template <class T>
using list = std::vector<T>;
using counts = std::vector<std::size_t>;

template <class T>
list<T> some(std::size_t n, unsigned seed, double size = 1)
{
    std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    list<T> x(n);
    for (T& element : x) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        element = static_cast<T>(size * (static_cast<double>(state >> 33) / 1073741824.0 - 1.0));
    }
    return x;
}

/// The indices of the `most` largest admitted numbers; ties in order.
template <class T, class Admit>
list<std::uint32_t> in_order(const list<T>& x, std::size_t most, Admit admit)
{
    list<std::uint32_t> order;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (admit(x[i])) order.push_back(static_cast<std::uint32_t>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
    order.resize(std::min(order.size(), most));
    return order;
}

/// Fills the padding of each row alternately with NaN and infinity.
template <class T>
void poison(list<T>& x, const counts& lengths, std::size_t positions, std::size_t width = 1)
{
    const T bad[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                     -std::numeric_limits<T>::infinity()};
    for (std::size_t b = 0; b < lengths.size(); ++b) {
        for (std::size_t i = lengths[b] * width; i < positions * width; ++i) x[b * positions * width + i] = bad[i % 3];
    }
}

template <class T>
bool same_bits(const T* a, const T* b, std::size_t n)
{
    return n == 0 || std::memcmp(a, b, n * sizeof(T)) == 0;
}

template <class T>
bool same_bits(const list<T>& a, const list<T>& b)
{
    return a.size() == b.size() && same_bits(a.data(), b.data(), a.size());
}

template <class T>
double far(const list<T>& got, const list<double>& want)
{
    REQUIRE(got.size() == want.size());
    double most = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double off = std::fabs(static_cast<double>(got[i]) - want[i]) / std::max(1.0, std::fabs(want[i]));
        if (!(off <= most)) most = off;  // NaN counts as different
    }
    return most;
}

template <class T>
inline constexpr double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-13;
/// For results with few roundings.
template <class T>
inline constexpr double few_roundings = sizeof(T) == 4 ? 2e-6 : 1e-14;

/// Checks gradient = base + d loss / d x, by central differences.
inline void check_gradient(const char* what, list<double>& x, const std::function<double()>& loss,
                           const list<double>& gradient, double base)
{
    INFO(what);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!std::isfinite(x[i])) {
            CHECK(gradient[i] == base);
            continue;
        }
        const double before = x[i], h = 1e-5;
        x[i] = before + h;
        const double up = loss();
        x[i] = before - h;
        const double down = loss();
        x[i] = before;
        const double slope = (up - down) / (2 * h);
        CAPTURE(i);
        CHECK(std::fabs(gradient[i] - base - slope) <= 1e-7 * std::max(1.0, std::fabs(slope)));
    }
}

template <class T>
double dot(const list<T>& a, const list<T>& b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (b[i] != 0) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return sum;
}

struct with_threads {
    explicit with_threads(std::size_t count) { set_threads(count); }
    ~with_threads() { set_threads(1); }
};

/// Less than a register, registers with and without a remainder, many registers.
template <class T>
counts awkward()
{
    constexpr std::size_t n = simd::lanes<T>;
    return {1, 3, n - 1, n, n + 1, 257};
}

/// softmax over t of x[t * stride], t < n, in double
inline list<double> plain_softmax(std::size_t n, std::size_t stride, const std::function<double(std::size_t)>& x)
{
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t t = 0; t < n; ++t) top = std::max(top, x(t * stride));
    list<double> y(n);
    for (std::size_t t = 0; t < n; ++t) sum += y[t] = std::exp(x(t * stride) - top);
    for (double& e : y) e /= sum;
    return y;
}

/// With and without a remainder after the last whole register.
inline constexpr std::size_t widths[] = {1, 3, 4, 8, 16, 17, 35};

inline double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

}  // namespace heed::test
