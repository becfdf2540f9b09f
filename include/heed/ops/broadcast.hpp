// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>

#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/rows.hpp>
#include <heed/simd/simd.hpp>

/// Loops over tensors with strides: for broadcast arguments and permuted axes.
namespace heed::inline HEED_TARGET::ops::detail {

/// The offset of the i-th element of a walk over some axes in row-major order. An axis of stride 0 repeats elements.
struct strided_walk {
    static constexpr std::size_t most = 8;
    std::array<std::size_t, most> extents{}, strides{};
    std::size_t axes = 0;

    void add(std::size_t extent, std::size_t stride)
    {
        extents[axes] = extent;
        strides[axes++] = stride;
    }

    std::size_t operator()(std::size_t i) const
    {
        std::size_t offset = 0;
        for (std::size_t axis = axes; axis-- > 0; i /= extents[axis]) offset += i % extents[axis] * strides[axis];
        return offset;
    }
};

/// How b is broadcast over a along its axes of size 1: b has n elements or one for each run of n elements of a.
struct repetition {
    std::size_t runs = 1, n = 1;
    bool each = true;  // n elements of b are paired with n of a; else one is repeated
    strided_walk from;

    template <std::size_t R>
    repetition(const shape_of_rank<R>& a, const shape_of_rank<R>& b)
    {
        static_assert(R <= strided_walk::most);
        std::size_t axis = R;
        while (axis > 0 && a[axis - 1] == 1 && b[axis - 1] == 1) --axis;
        each = axis == 0 || b[axis - 1] == a[axis - 1];
        for (; axis > 0 && b[axis - 1] == (each ? a[axis - 1] : 1); --axis) n *= a[axis - 1];
        for (std::size_t k = 0; k < axis; ++k) {
            std::size_t stride = 1;
            for (std::size_t later = k + 1; later < R; ++later) stride *= b[later];
            from.add(a[k], b[k] == 1 ? 0 : stride);
            runs *= a[k];
        }
    }
};

/// ∂a += ∂f/∂a ∂y,  ∂b += ∂f/∂b ∂y for n elements. A gradient that is null is not computed.
template <class F, class T>
void add_slopes(std::size_t n, const T* a, const T* b, const T* y, const T* d_y, T* d_a, T* d_b)
{
    const auto add_to = [=](T* d, const auto& slope) {
        simd::transform(
            n, d, [&](auto sum, auto... x) { return sum + slope(x...); }, static_cast<const T*>(d), a, b, y, d_y);
    };
    if (d_a != nullptr) add_to(d_a, [](auto... x) { return F::slope_a(x...); });
    if (d_b != nullptr) add_to(d_b, [](auto... x) { return F::slope_b(x...); });
}

/// y = f(a, b)
template <class F, class T>
void repeat_forward(const repetition& over, const T* a, const T* b, T* y)
{
    each_row(over.runs, over.n, [=](std::size_t i) {
        const T* const of_b = b + over.from(i);
        const std::size_t at = i * over.n;
        if (over.each) {
            simd::transform(
                over.n, y + at, [](auto u, auto v) { return F::value(u, v); }, a + at, of_b);
        } else {
            simd::transform(
                over.n, y + at, [v = simd::splat<T>(*of_b)](auto u) { return F::value(u, v); }, a + at);
        }
    });
}

/// ∂a += ∂f/∂a ∂y,  ∂b += Σ ∂f/∂b ∂y over the repetitions of an element of b. A gradient that is null is not computed.
template <class F, class T>
void repeat_backward(const repetition& over, const T* a, const T* b, const T* y, const T* d_y, T* d_a, T* d_b)
{
    // Runs [begin, end) with the same elements of b; their gradients are added to of_b.
    const auto add_rows = [&](std::size_t begin, std::size_t end, std::size_t from, T* of_b) {
        for (std::size_t at = begin * over.n; at < end * over.n; at += over.n)
            add_slopes<F>(over.n, a + at, b + from, y + at, d_y + at, d_a == nullptr ? d_a : d_a + at, of_b);
    };
    // A run with a single element of b. Returns its gradient.
    const auto add_one = [&](std::size_t i, std::size_t from) {
        const std::size_t at = i * over.n;
        const auto v = simd::splat<T>(b[from]);
        if (d_a != nullptr) {
            simd::transform(
                over.n, d_a + at, [v](auto sum, auto u, auto of_y, auto d) { return sum + F::slope_a(u, v, of_y, d); },
                static_cast<const T*>(d_a + at), a + at, y + at, d_y + at);
        }
        kernels::detail::long_sum<T> sum;
        if (d_b != nullptr) {
            simd::each_register<T>(over.n, [&](std::size_t k, std::size_t count) {
                const auto slope =
                    F::slope_b(simd::load_first(a + at + k, count), v, simd::load_first(y + at + k, count),
                               simd::load_first(d_y + at + k, count));
                sum.add(count == simd::lanes<T> ? slope : simd::fill_behind<T>(slope, count, T(0)));
            });
        }
        return static_cast<in_double<T>>(sum.get());
    };
    for (std::size_t begin = 0, end = 0; begin < over.runs; begin = end) {
        const std::size_t from = over.from(begin);
        for (end = begin + 1; end < over.runs && over.from(end) == from;) ++end;
        if (over.each && d_b == nullptr) {
            add_rows(begin, end, from, nullptr);
        } else if (over.each) {
            kernels::add_in_blocks(end - begin, over.n, d_b + from, [&](std::size_t first, std::size_t last, T* to) {
                add_rows(begin + first, begin + last, from, to);
            });
        } else {
            in_double<T> sum = 0;
            for (std::size_t i = begin; i < end; ++i) sum += add_one(i, from);
            if (d_b != nullptr) d_b[from] += static_cast<T>(sum);
        }
    }
}

}  // namespace heed::inline HEED_TARGET::ops::detail
