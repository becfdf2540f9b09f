// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/block_sums.hpp>
#include <heed/simd/simd.hpp>

/// Sums over one or two rows of memory.
namespace heed::kernels {

namespace detail {

/// A row that is longer than this is summed in parts, and these in double.
inline constexpr std::size_t numbers_of_part = 4096;

/// Σ part(first, count) over n numbers.
template <class T>
[[gnu::noinline]] T sum_of_parts(std::size_t n, const auto& part)
{
    in_double<T> sum = 0;
    for (std::size_t first = 0; first < n; first += numbers_of_part)
        sum += static_cast<in_double<T>>(part(first, std::min(n - first, numbers_of_part)));
    return static_cast<T>(sum);
}

}  // namespace detail

/// Σ_i a_i b_i, in four partial sums of registers.
template <class T>
HEED_SIMD_INLINE T dot(std::size_t n, const T* a, const T* b)
{
    if (n > detail::numbers_of_part) [[unlikely]] {
        return detail::sum_of_parts<T>(
            n, [a, b](std::size_t first, std::size_t count) { return kernels::dot(count, a + first, b + first); });
    }
    constexpr std::size_t L = simd::lanes<T>;
    simd::vec<T> s0{}, s1{}, s2{}, s3{};
    std::size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        s0 = simd::fma(simd::load(a + i), simd::load(b + i), s0);
        s1 = simd::fma(simd::load(a + i + L), simd::load(b + i + L), s1);
        s2 = simd::fma(simd::load(a + i + 2 * L), simd::load(b + i + 2 * L), s2);
        s3 = simd::fma(simd::load(a + i + 3 * L), simd::load(b + i + 3 * L), s3);
    }
    for (; i + L <= n; i += L) s0 = simd::fma(simd::load(a + i), simd::load(b + i), s0);
    if (i < n) s1 = simd::fma(simd::load(a + i, n - i), simd::load(b + i, n - i), s1);
    return simd::sum((s0 + s1) + (s2 + s3));
}

/// Σ_i x_i, in four partial sums of registers.
template <class T>
HEED_SIMD_INLINE T sum_of(std::size_t n, const T* x)
{
    if (n > detail::numbers_of_part) [[unlikely]] {
        return detail::sum_of_parts<T>(
            n, [x](std::size_t first, std::size_t count) { return kernels::sum_of(count, x + first); });
    }
    constexpr std::size_t L = simd::lanes<T>;
    simd::vec<T> s0{}, s1{}, s2{}, s3{};
    std::size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        s0 += simd::load(x + i);
        s1 += simd::load(x + i + L);
        s2 += simd::load(x + i + 2 * L);
        s3 += simd::load(x + i + 3 * L);
    }
    for (; i + L <= n; i += L) s0 += simd::load(x + i);
    if (i < n) s1 += simd::load(x + i, n - i);
    return simd::sum((s0 + s1) + (s2 + s3));
}

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

/// y += factor · x.
template <class T>
void add_scaled(std::size_t n, T* y, T factor, const T* x)
{
    const simd::vec<T> f = simd::splat<T>(factor);
    simd::transform(
        n, y, [f](auto sum, auto v) { return simd::fma(f, v, sum); }, y, x);
}

/// y += factor · (a - b).
template <class T>
void add_scaled_difference(std::size_t n, T* y, T factor, const T* a, const T* b)
{
    const simd::vec<T> f = simd::splat<T>(factor);
    simd::transform(
        n, y, [f](auto sum, auto u, auto v) { return simd::fma(f, u - v, sum); }, y, a, b);
}

/// y += c.
template <class T>
void add_constant(std::size_t n, T* y, T c)
{
    simd::transform(
        n, y, [c](auto sum) { return sum + c; }, y);
}

/// y += x.
template <class T>
void add(std::size_t n, T* y, const T* x)
{
    simd::transform(
        n, y, [](auto sum, auto v) { return sum + v; }, y, x);
}

/// y += a ⊙ b, rounded once.
template <class T>
void add_product(std::size_t n, T* y, const T* a, const T* b)
{
    simd::transform(
        n, y, [](auto sum, auto u, auto v) { return simd::fma(u, v, sum); }, y, a, b);
}

/// y[j] += Σ_i x[i,j]: x [rows,n].
template <class T>
void add_columns(std::size_t rows, std::size_t n, T* y, const T* x)
{
    add_in_blocks(rows, n, y, [n, x](std::size_t first, std::size_t last, T* to) {
        for (std::size_t i = first; i < last; ++i) add(n, to, x + i * n);
    });
}

}  // namespace heed::kernels
