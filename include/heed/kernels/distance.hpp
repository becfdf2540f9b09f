// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/simd/simd.hpp>

/// Differences of two rows of memory.
namespace heed::kernels {

/// Σ_i (a_i - b_i)², summed from the differences: |a|² + |b|² - 2ab would lose all precision where a is near b.
template <class T>
T squared_distance(std::size_t n, const T* a, const T* b)
{
    constexpr std::size_t L = simd::lanes<T>;
    simd::vec<T> s0{}, s1{};
    std::size_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        const simd::vec<T> d0 = simd::load(a + i) - simd::load(b + i);
        const simd::vec<T> d1 = simd::load(a + i + L) - simd::load(b + i + L);
        s0 = simd::fma(d0, d0, s0);
        s1 = simd::fma(d1, d1, s1);
    }
    for (; i + L <= n; i += L) {
        const simd::vec<T> d = simd::load(a + i) - simd::load(b + i);
        s0 = simd::fma(d, d, s0);
    }
    if (i < n) {
        const simd::vec<T> d = simd::load(a + i, n - i) - simd::load(b + i, n - i);
        s1 = simd::fma(d, d, s1);
    }
    return simd::sum(s0 + s1);
}

/// y += factor · (a - b).
template <class T>
void add_scaled_difference(std::size_t n, T* y, T factor, const T* a, const T* b)
{
    const simd::vec<T> f = simd::splat<T>(factor);
    simd::transform(
        n, y, [f](auto sum, auto u, auto v) { return simd::fma(f, u - v, sum); }, static_cast<const T*>(y), a, b);
}

}  // namespace heed::kernels
