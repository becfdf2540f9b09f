// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>

/// Transposes rows of numbers to rows of lanes, [width][lanes], and back: once for a block of queries.
namespace heed::inline HEED_TARGET::kernels::tiles::detail {

/// f(i, q) for squares of registers within `width` and `n`; edge(i, q) for each element beyond them.
template <class T>
HEED_SIMD_INLINE void each_square(std::size_t width, std::size_t n, const auto& f, const auto& edge)
{
    const std::size_t whole = width / simd::lanes<T> * simd::lanes<T>, most = n / simd::lanes<T> * simd::lanes<T>;
    for (std::size_t q = 0; q < most; q += simd::lanes<T>)
        for (std::size_t i = 0; i < whole; i += simd::lanes<T>) f(i, q);
    for (std::size_t i = 0; i < width; ++i)
        for (std::size_t q = i < whole ? most : 0; q < n; ++q) edge(i, q);
}

/// to[i][q] = factor · from_q[i] for n queries; zeros in the other lanes.
template <std::size_t registers, class T>
void transposed(std::size_t width, std::size_t n, rows<const T> from, T factor, T* to)
{
    using namespace simd;
    constexpr std::size_t all = tiles::lanes<T, registers>;
    const auto square = [&](std::size_t i, std::size_t q) {
        vec<T> part[simd::lanes<T>];
        unrolled<simd::lanes<T>>([&](auto k) { part[k] = load(from[q + k] + i) * splat(factor); });
        simd::transpose<T>(part);
        unrolled<simd::lanes<T>>([&](auto k) { store(to + (i + k) * all + q, part[k]); });
    };
    each_square<T>(width, n, square, [&](std::size_t i, std::size_t q) { to[i * all + q] = factor * from[q][i]; });
    for (std::size_t i = 0; n < all && i < width; ++i) std::fill(to + i * all + n, to + (i + 1) * all, T(0));
}

/// to_q[i] (+)= by_q · from[i][q] for n queries.
template <std::size_t registers, bool add, class T>
void transposed_back(std::size_t width, std::size_t n, const T* from, const T* by, rows<T> to)
{
    using namespace simd;
    constexpr std::size_t all = tiles::lanes<T, registers>;
    const auto square = [&](std::size_t i, std::size_t q) {
        // Rows a power of two apart evict each other from the first-level cache.
        unrolled<simd::lanes<T>>([&](auto k) { __builtin_prefetch(to[q + k] + i, 1); });
        const vec<T> factor = load(by + q);
        vec<T> part[simd::lanes<T>];
        unrolled<simd::lanes<T>>([&](auto k) { part[k] = load(from + (i + k) * all + q) * factor; });
        simd::transpose<T>(part);
        unrolled<simd::lanes<T>>([&](auto k) {
            T* const at = to[q + k] + i;
            store(at, add ? load(at) + part[k] : part[k]);
        });
    };
    each_square<T>(width, n, square, [&](std::size_t i, std::size_t q) {
        to[q][i] = from[i * all + q] * by[q] + (add ? to[q][i] : T(0));
    });
}

/// to_{s+q}[i] += from[i][q] for n queries; `to` may be null.
template <std::size_t registers, class T>
void add_transposed(std::size_t width, std::size_t s, std::size_t n, const T* from, rows<T> to)
{
    if (to.data == nullptr) return;
    T ones[tiles::lanes<T, registers>];
    std::fill_n(ones, tiles::lanes<T, registers>, T(1));
    transposed_back<registers, true>(width, n, from, ones, to.from(s));
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles::detail
