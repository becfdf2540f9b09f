// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/parallel.hpp>
#include <heed/kernels/registers.hpp>
#include <heed/kernels/registers_of_duals.hpp>

/// Loops over memory by registers: of floats and doubles (kernels/registers.hpp), and of dual numbers
/// (kernels/registers_of_duals.hpp).
namespace heed::simd {

/// v in the first `count` lanes, `rest` in the others.
template <class T>
HEED_SIMD_INLINE vec<T> fill_behind(std::type_identity_t<vec<T>> v, std::size_t count, T rest)
{
    mask<T> lane{};
    for (std::size_t i = 0; i < lanes<T>; ++i) lane[i] = static_cast<std::remove_cvref_t<decltype(lane[i])>>(i);
    const mask<T> limit = mask<T>{} + static_cast<std::remove_cvref_t<decltype(lane[0])>>(count);
    return select(lane < limit, static_cast<vec<T>>(v), splat(rest));
}

/// f(0), f(1), … f(count - 1), unrolled: g++ does not unroll a loop over rows inside a loop over columns, which from
/// DRAM runs at half the speed (one load instruction then reads all rows, which may defeat prefetching).
template <std::size_t count, class F>
HEED_SIMD_INLINE void unrolled(F&& f)
{
    [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline))
    {
        (f(std::integral_constant<std::size_t, i>{}), ...);
    }
    (std::make_index_sequence<count>{});
}

/// The first `count` numbers from x on, at most a register of them; zeros behind them.
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

/// f(i, count) for each register of n numbers: `count` of them from i on.
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

/// transform, shared among heed's threads if that pays (64 K elements and more).
template <class T, class F, class... X>
inline void parallel_transform(std::size_t n, T* y, F&& f, const X*... x)
{
    parallel_for(
        n, std::size_t{1} << 15,
        [&](std::size_t begin, std::size_t end, std::size_t) { transform(end - begin, y + begin, f, (x + begin)...); },
        lanes<T>);
}

}  // namespace heed::simd
