// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/compiled.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// One context per row: the sum of the values, each times its weight.
///
/// weights [B,T], values [B,T,D], context [B,D]; `lengths` as in softmax.hpp. Values beyond the length are never read.
/// Reads of several rows of values are interleaved, each row sequentially, which is the fastest way to read memory.
namespace heed::inline HEED_TARGET::kernels {

/// Names of the ways in which kernels combine weights and values, for combiners: `using kernel_tag = …;`.
struct weighted_sum_of_row {};     // c = Σ_j α_j h_j
struct elementwise_sum_of_row {};  // c = Σ_j α_j ⊙ h_j

namespace detail {

/// c += Σ_r α_r h_r of the rows r = at(0), … at(3), summed in this order.
template <class T>
HEED_SIMD_INLINE void add_four(std::size_t columns, std::size_t stride, const T* weights, const T* values, T* context,
                               const auto& at)
{
    using namespace simd;
    const vec<T> a0 = splat(weights[at(0)]), a1 = splat(weights[at(1)]), a2 = splat(weights[at(2)]),
                 a3 = splat(weights[at(3)]);
    transform(
        columns, context,
        [=](auto c, auto h0, auto h1, auto h2, auto h3) {
            return fma(a3, h3, fma(a2, h2, fma(a1, h1, fma(a0, h0, c))));
        },
        context, values + at(0) * stride, values + at(1) * stride, values + at(2) * stride, values + at(3) * stride);
}

/// c += Σ_j α_j h_j of n rows with row stride `stride`, summed in order.
template <class T>
inline void add_weighted(std::size_t n, std::size_t columns, std::size_t stride, const T* weights, const T* values,
                         T* context)
{
    std::size_t j = 0;
    for (; j + 4 <= n; j += 4)
        add_four(columns, stride, weights, values, context, [j](std::size_t r) { return j + r; });
    for (; j < n; ++j) add_scaled(columns, context, weights[j], values + j * stride);
}

/// c[d0..d1) = Σ_j α_j h_j of one sentence, summed in the order of the positions. Not inlined: a kernel calls it in
/// several places.
template <class T>
[[gnu::noinline]] void weighted_sum_row(std::size_t n, std::size_t width, const T* weights, const T* values, T* context,
                                        std::size_t d0, std::size_t d1)
{
    zero(context + d0, d1 - d0);
    add_in_blocks(n, d1 - d0, context + d0, [=](std::size_t first, std::size_t last, T* to) {
        add_weighted(last - first, d1 - d0, width, weights + first, values + first * width + d0, to);
    });
}

/// Σ_j α_j h_j over all columns, skipping weights of 0, for values that are `registers` registers wide.
template <std::size_t registers, class T>
[[gnu::noinline]] void selected_sum_narrow(std::size_t n, const T* weights, const T* values, T* context, bool ahead)
{
    using namespace simd;
    constexpr std::size_t width = registers * lanes<T>;
    vec<T> sums[registers] = {};
    for (std::size_t j = 0; j < n; ++j) {
        const T* const h = values + j * width;
        if (ahead) fetch_ahead(h, width);
        if (weights[j] == T(0)) continue;
        const vec<T> a = splat(weights[j]);
        unrolled<registers>([&](auto r) { sums[r] = fma(a, load(h + r * lanes<T>), sums[r]); });
    }
    unrolled<registers>([&](auto r) { store(context + r * lanes<T>, sums[r]); });
}

/// selected_sum_narrow for any width.
template <class T>
inline void selected_sum_block(std::size_t n, std::size_t width, const T* weights, const T* values, T* context,
                               bool ahead)
{
    using namespace simd;
    if (width == lanes<T>) return selected_sum_narrow<1>(n, weights, values, context, ahead);
    if (width == 2 * lanes<T>) return selected_sum_narrow<2>(n, weights, values, context, ahead);
    if (width == 4 * lanes<T>) return selected_sum_narrow<4>(n, weights, values, context, ahead);
    if (width == 8 * lanes<T>) return selected_sum_narrow<8>(n, weights, values, context, ahead);
    zero(context, width);
    std::size_t chosen[4], count = 0;
    for (std::size_t j = 0; j < n; ++j) {
        if (ahead) fetch_ahead(values + j * width, width);
        if (weights[j] == T(0)) continue;
        chosen[count++] = j;
        if (count < 4) continue;
        add_four(width, width, weights, values, context, [&](std::size_t r) { return chosen[r]; });
        count = 0;
    }
    for (std::size_t k = 0; k < count; ++k) add_scaled(width, context, weights[chosen[k]], values + chosen[k] * width);
}

/// selected_sum_block for any number of positions; skipped values may be NaN. `ahead`: the values are not cached.
template <class T>
inline void selected_sum_row(std::size_t n, std::size_t width, const T* weights, const T* values, T* context,
                             bool ahead = false)
{
    if (n > numbers_of_block) zero(context, width);
    add_in_blocks(n, width, context, [=](std::size_t first, std::size_t last, T* to) {
        selected_sum_block(last - first, width, weights + first, values + first * width, to, ahead);
    });
}

/// dα_j = g_j + dcᵀ h_j (written) and dh_j += α_j dc, for `rows` positions at once.
template <std::size_t rows, class T>
inline void weighted_sum_rows_backward(std::size_t width, const T* weights, const T* values, const T* d_context,
                                       const T* g, T* d_weights, T* d_values)
{
    using namespace simd;
    vec<T> dot[rows] = {};
    vec<T> a[rows];
    for (std::size_t r = 0; r < rows; ++r) a[r] = splat(weights[r]);
    const auto column = [&](std::size_t d, auto get, auto put) {
        const vec<T> dc = get(d_context + d);
        unrolled<rows>([&](auto r) {
            dot[r] = fma(dc, get(values + r * width + d), dot[r]);
            if (d_values != nullptr) put(d_values + r * width + d, fma(a[r], dc, get(d_values + r * width + d)));
        });
    };
    each_column<T>(0, width, column);
    for (std::size_t r = 0; r < rows; ++r) d_weights[r] = (g == nullptr ? T(0) : g[r]) + sum(dot[r]);
}

/// weighted_sum_rows_backward for the positions [j0, j1) of one sentence.
template <class T>
inline void weighted_sum_row_backward(std::size_t j0, std::size_t j1, std::size_t width, const T* weights,
                                      const T* values, const T* d_context, const T* g, T* d_weights, T* d_values)
{
    if (d_context == nullptr) {
        for (std::size_t j = j0; j < j1; ++j) d_weights[j] = g == nullptr ? T(0) : g[j];
        return;
    }
    const auto step = [&](auto rows, std::size_t j) {
        weighted_sum_rows_backward<decltype(rows)::value>(width, weights + j, values + j * width, d_context,
                                                          behind(g, j), d_weights + j, behind(d_values, j * width));
    };
    simd::in_groups<4>(j0, j1, step);
}

/// f(row, begin, end) over the positions of all sentences, split evenly among threads even if there is only one
/// sentence.
template <class F>
inline void each_position(std::size_t batch, std::size_t positions, const std::size_t* lengths, std::size_t cost, F&& f)
{
    parallel_for(batch * positions, rows_a_shard(cost), [&](std::size_t begin, std::size_t end, std::size_t) {
        const simd::without_subnormals quick;
        for (std::size_t b = begin / positions; b * positions < end; ++b) {
            const std::size_t n = length_of(lengths, b, positions), first = b * positions;
            const std::size_t j0 = begin > first ? begin - first : 0;
            const std::size_t j1 = end - first < n ? end - first : n;
            if (j0 < j1) f(b, j0, j1);
        }
    });
}

/// f(row, d0, d1) over the columns of all sentences: whole rows if there are enough for all threads.
template <class T, class F>
inline void each_row_or_column(std::size_t batch, std::size_t width, std::size_t cost, F&& f)
{
    const bool rows = batch >= 4 * threads();
    parallel_for(
        rows ? batch : width, rows_a_shard((rows ? width : batch) * cost),
        [&](std::size_t begin, std::size_t end, std::size_t) {
            const simd::without_subnormals quick;
            const std::size_t b0 = rows ? begin : 0, b1 = rows ? end : batch;
            const std::size_t d0 = rows ? 0 : begin, d1 = rows ? width : end;
            for (std::size_t b = b0; b < b1; ++b) f(b, d0, d1);
        },
        rows ? 1 : simd::lanes<T>);
}

}  // namespace detail

/// c_b = Σ_j α_bj h_bj
template <class T>
void weighted_sum(std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths,
                  const T* weights, const T* values, T* context)
{
    detail::each_row_or_column<T>(batch, width, positions, [=](std::size_t b, std::size_t d0, std::size_t d1) {
        detail::weighted_sum_row(detail::length_of(lengths, b, positions), width, weights + b * positions,
                                 values + b * positions * width, context + b * width, d0, d1);
    });
}

/// Backward of c = Σ_j α_j h_j:   dα_j += dcᵀ h_j,  dh_j += α_j dc.
template <class T>
void weighted_sum_backward(std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths,
                           const T* weights, const T* values, const T* d_context, T* d_weights, T* d_values)
{
    if (d_context == nullptr) return;
    detail::each_position(batch, positions, lengths, 2 * width, [=](std::size_t b, std::size_t j0, std::size_t j1) {
        const std::size_t at = b * positions;
        T* dh = detail::behind(d_values, at * width);
        if (d_weights != nullptr) {
            detail::weighted_sum_row_backward(j0, j1, width, weights + at, values + at * width, d_context + b * width,
                                              d_weights + at, d_weights + at, dh);
        } else if (dh != nullptr) {
            for (std::size_t j = j0; j < j1; ++j)
                add_scaled(width, dh + j * width, weights[at + j], d_context + b * width);
        }
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_WEIGHTED_SUM(X, T) \
    X(T, weighted_sum, void, weighted_sum, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* weights, const T* values, T* context), (batch, positions, width, lengths, weights, values, context)) \
    X(T, weighted_sum_backward, void, weighted_sum_backward, (std::size_t batch, std::size_t positions, std::size_t width, const std::size_t* lengths, const T* weights, const T* values, const T* d_context, T* d_weights, T* d_values), (batch, positions, width, lengths, weights, values, d_context, d_weights, d_values))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_WEIGHTED_SUM)

}  // namespace heed::inline HEED_TARGET::kernels
