// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/core/compiled.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/simd/simd.hpp>

/// Sums over one or two rows of memory.
namespace heed::inline HEED_TARGET::kernels {

namespace detail {

/// A row that is longer than this is summed in parts, and the parts in double.
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

/// A sum in partial sums of registers: add(sum, i, load) adds the terms of the elements at i.
template <std::size_t chains, class T>
HEED_SIMD_INLINE T sum_in_chains(std::size_t n, const auto& add)
{
    constexpr std::size_t L = simd::lanes<T>;
    const auto load = [](const T* x) { return simd::load(x); };
    simd::vec<T> sum[chains] = {};
    std::size_t i = 0;
    for (; i + chains * L <= n; i += chains * L)
        simd::unrolled<chains>([&](auto c) { sum[c] = add(sum[c], i + c * L, load); });
    for (; i + L <= n; i += L) sum[0] = add(sum[0], i, load);
    if (i < n) sum[1] = add(sum[1], i, [n, i](const T* x) { return simd::load(x, n - i); });
    simd::vec<T> all = sum[0] + sum[1];
    if constexpr (chains == 4) all += sum[2] + sum[3];
    return simd::sum(all);
}

}  // namespace detail

/// Σ_i a_i b_i
template <class T>
HEED_SIMD_INLINE T dot(std::size_t n, const T* a, const T* b)
{
    if (n > detail::numbers_of_part) [[unlikely]] {
        return detail::sum_of_parts<T>(
            n, [a, b](std::size_t first, std::size_t count) { return kernels::dot(count, a + first, b + first); });
    }
    return detail::sum_in_chains<4, T>(
        n, [a, b](auto sum, std::size_t i, const auto& load) { return simd::fma(load(a + i), load(b + i), sum); });
}

/// Σ_i x_i
template <class T>
HEED_SIMD_INLINE T sum_of(std::size_t n, const T* x)
{
    if (n > detail::numbers_of_part) [[unlikely]] {
        return detail::sum_of_parts<T>(
            n, [x](std::size_t first, std::size_t count) { return kernels::sum_of(count, x + first); });
    }
    return detail::sum_in_chains<4, T>(n, [x](auto sum, std::size_t i, const auto& load) { return sum + load(x + i); });
}

/// Σ_i (a_i - b_i)², summed from the differences: |a|² + |b|² - 2ab would lose all precision where a is near b.
template <class T>
T squared_distance(std::size_t n, const T* a, const T* b)
{
    return detail::sum_in_chains<2, T>(n, [a, b](auto sum, std::size_t i, const auto& load) {
        const auto apart = load(a + i) - load(b + i);
        return simd::fma(apart, apart, sum);
    });
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

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_ROWS(X, T) \
    X(T, squared_distance, T, squared_distance, (std::size_t n, const T* a, const T* b), (n, a, b)) \
    X(T, add_scaled, void, add_scaled, (std::size_t n, T* y, T factor, const T* x), (n, y, factor, x)) \
    X(T, add_scaled_difference, void, add_scaled_difference, (std::size_t n, T* y, T factor, const T* a, const T* b), (n, y, factor, a, b)) \
    X(T, add_constant, void, add_constant, (std::size_t n, T* y, T c), (n, y, c)) \
    X(T, add, void, add, (std::size_t n, T* y, const T* x), (n, y, x)) \
    X(T, add_product, void, add_product, (std::size_t n, T* y, const T* a, const T* b), (n, y, a, b)) \
    X(T, add_columns, void, add_columns, (std::size_t rows, std::size_t n, T* y, const T* x), (rows, n, y, x))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_ROWS)

}  // namespace heed::inline HEED_TARGET::kernels
