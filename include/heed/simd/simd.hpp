// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/parallel.hpp>
#include <heed/simd/dual_registers.hpp>
#include <heed/simd/registers.hpp>
#include <heed/simd/subnormals.hpp>
#include <heed/simd/trig.hpp>

/// Loops over memory by registers: of floats and doubles (simd/registers.hpp), and of dual numbers
/// (simd/dual_registers.hpp).
namespace heed::inline HEED_TARGET::simd {

/// f(0), f(1), … f(count - 1), unrolled: g++ does not unroll a loop over rows inside a loop over columns, which runs at
/// half the speed from DRAM (one load instruction then reads all rows, which may defeat prefetching).
template <std::size_t count, class F>
HEED_SIMD_INLINE void unrolled(F&& f)
{
    [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline))
    {
        (f(std::integral_constant<std::size_t, i>{}), ...);
    }
    (std::make_index_sequence<count>{});
}

namespace detail {

/// For two concatenated registers as blocks of m lanes: the sums of adjacent pairs of blocks.
template <std::size_t m, class V, std::size_t... i>
HEED_SIMD_INLINE V sum_of_neighbors(V a, V b, std::index_sequence<i...>)
{
    return __builtin_shufflevector(a, b, (i / m * 2 * m + i % m)...) +
           __builtin_shufflevector(a, b, (i / m * 2 * m + m + i % m)...);
}

/// Swaps the off-diagonal quarters of each block of 2·half rows and columns: a and b are rows `half` apart.
template <std::size_t half, class V, std::size_t... j>
HEED_SIMD_INLINE void swap_quarters(V& a, V& b, std::index_sequence<j...>)
{
    constexpr int count = sizeof...(j);
    const V upper = __builtin_shufflevector(a, b, ((j & half) == 0 ? int(j) : count + int(j) - int(half))...);
    b = __builtin_shufflevector(a, b, ((j & half) == 0 ? int(j) + int(half) : count + int(j))...);
    a = upper;
}
template <class T, std::size_t half = lanes<T> / 2>
HEED_SIMD_INLINE void transpose_blocks(vec<T> (&rows)[lanes<T>])
{
    unrolled<lanes<T>>([&](auto i) {
        if constexpr ((i & half) == 0)
            swap_quarters<half>(rows[i], rows[i + half], std::make_index_sequence<lanes<T>>{});
    });
    if constexpr (half > 1) transpose_blocks<T, half / 2>(rows);
}

}  // namespace detail

/// The sums of the lanes of four registers, y[0] … y[3]: folded in halves like a single register, all four together.
template <class T>
HEED_SIMD_INLINE void sums(std::type_identity_t<vec<T>> a, std::type_identity_t<vec<T>> b,
                           std::type_identity_t<vec<T>> c, std::type_identity_t<vec<T>> d, T* y)
{
    if constexpr (dual_element<T>) {
        y[0] = sum(a), y[1] = sum(b), y[2] = sum(c), y[3] = sum(d);
        return;
    } else {
        using all = std::make_index_sequence<lanes<T>>;
        vec<T> ab = detail::sum_of_neighbors<lanes<T> / 2>(a, b, all{});
        const vec<T> cd = detail::sum_of_neighbors<lanes<T> / 2>(c, d, all{});
        if constexpr (lanes<T> == 2) {
            store(y, ab);
            store(y + 2, cd);
        } else {
            ab = detail::sum_of_neighbors<lanes<T> / 4>(ab, cd, all{});
            if constexpr (lanes<T> >= 8) ab = detail::sum_of_neighbors<lanes<T> / 8>(ab, ab, all{});
            if constexpr (lanes<T> >= 16) ab = detail::sum_of_neighbors<lanes<T> / 16>(ab, ab, all{});
            std::memcpy(y, &ab, 4 * sizeof(T));
        }
    }
}

/// v in the first `count` lanes, `rest` in the others.
template <class T>
HEED_SIMD_INLINE vec<T> fill_behind(std::type_identity_t<vec<T>> v, std::size_t count, T rest)
{
    mask<T> lane{};
    for (std::size_t i = 0; i < lanes<T>; ++i) lane[i] = static_cast<std::remove_cvref_t<decltype(lane[i])>>(i);
    const mask<T> limit = mask<T>{} + static_cast<std::remove_cvref_t<decltype(lane[0])>>(count);
    return select(lane < limit, static_cast<vec<T>>(v), splat(rest));
}

/// f(few, i) for `few` numbers i, i + 1, … at a time from `first` on, and f(1, i) for each remaining number; few and 1
/// are constants.
template <std::size_t few, class F>
HEED_SIMD_INLINE void in_groups(std::size_t first, std::size_t last, F&& f)
{
    for (; first + few <= last; first += few) f(std::integral_constant<std::size_t, few>{}, first);
    for (; first < last; ++first) f(std::integral_constant<std::size_t, 1>{}, first);
}

/// Transposes a square of registers.
template <class T>
HEED_SIMD_INLINE void transpose(vec<T> (&rows)[lanes<T>])
{
    if constexpr (dual_element<T>) {
        using real = plain_number<T>;
        vec<real> values[lanes<T>], slopes[lanes<T>];
        unrolled<lanes<T>>([&](auto i) { values[i] = rows[i].value, slopes[i] = rows[i].slope; });
        transpose<real>(values);
        transpose<real>(slopes);
        unrolled<lanes<T>>([&](auto i) { rows[i] = {values[i], slopes[i]}; });
    } else {
        detail::transpose_blocks<T>(rows);
    }
}

/// The first `count` numbers at x, at most one register; the other lanes are 0.
template <class T>
HEED_SIMD_INLINE vec<T> load_first(const T* x, std::size_t count)
{
    return count == lanes<T> ? load(x) : load(x, count);
}
/// Writes the first `count` lanes.
template <class T>
HEED_SIMD_INLINE void store_first(T* y, std::type_identity_t<vec<T>> v, std::size_t count)
{
    count == lanes<T> ? store(y, v) : store(y, v, count);
}

/// f(i, count) for each register of n numbers: the `count` numbers at i.
template <class T, class F>
HEED_SIMD_INLINE void each_register(std::size_t n, F&& f)
{
    std::size_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) f(i, lanes<T>);
    if (i < n) f(i, n - i);
}

/// y[i] = f(x[i]...) for i < n, where f maps registers to a register. y may be one of the x.
template <class T, class F, class... X>
inline void transform(std::size_t n, T* y, F&& f, const X*... x)
{
    std::size_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store(y + i, f(load(x + i)...));
    if (i < n) store(y + i, f(load(x + i, n - i)...), n - i);
}

/// The prefetch distance, in bytes, of a loop over memory that no cache holds. The processor's own prefetcher restarts
/// at every page, which leaves a third of the bandwidth unused.
inline constexpr std::size_t bytes_ahead = 8192;

/// Prefetches n numbers, bytes_ahead from here. They need not exist.
template <class T>
HEED_SIMD_INLINE void fetch_ahead(const T* now, std::size_t n)
{
    constexpr std::size_t line = 64;
    const auto first = reinterpret_cast<std::uintptr_t>(now) + bytes_ahead;
    for (std::size_t i = 0; i < n * sizeof(T); i += line) __builtin_prefetch(reinterpret_cast<const void*>(first + i));
}

/// Is a block of this size large enough for fetch_ahead to pay?
template <class T>
constexpr bool worth_fetching(std::size_t numbers)
{
    return numbers * sizeof(T) >= std::size_t{1} << 18;
}

/// transform, shared among heed's threads if that pays (64 K elements and more).
template <class T, class F, class... X>
inline void parallel_transform(std::size_t n, T* y, F&& f, const X*... x)
{
    parallel_for(
        n, std::size_t{1} << 15,
        [&](std::size_t begin, std::size_t end, std::size_t) { transform(end - begin, y + begin, f, (x + begin)...); },
        lanes<T>);
}

}  // namespace heed::inline HEED_TARGET::simd
