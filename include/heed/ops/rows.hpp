// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/core/parallel.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/operation.hpp>

/// Loops over rows, shared by the operations, and operations that move elements without changing them.
namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// The product of all extents except the last one.
template <std::size_t R>
std::size_t rows_of(const shape_of_rank<R>& shape)
{
    std::size_t rows = 1;
    for (std::size_t axis = 0; axis + 1 < R; ++axis) rows *= shape[axis];
    return rows;
}

/// The shape with the last axis halved. Throws shape_error if it is odd.
template <std::size_t R>
shape_of_rank<R> half_of(const char* where, shape_of_rank<R> shape, const char* because)
{
    if (shape[R - 1] % 2 != 0) detail::refuse(where, ": x is ", shape, ", but its last axis must be even: ", because);
    shape[R - 1] /= 2;
    return shape;
}

/// f(i) for i < rows, in parallel if each thread gets about `worth` multiplications or more; a row costs `work`.
void each_row(std::size_t rows, std::size_t work, const auto& f, std::size_t worth = std::size_t{1} << 15)
{
    parallel_for(rows, kernels::detail::rows_a_shard(work, worth),
                 [&](std::size_t first, std::size_t last, std::size_t) {
                     const auto local = f;  // its captures stay in registers
                     for (std::size_t i = first; i < last; ++i) local(i);
                 });
}

/// f(b, i) for each position of B sentences, i = b·T + t, in the order of a sentence; a position costs `work`. Parallel
/// over sentences.
void each_position(std::size_t B, std::size_t positions, std::size_t work, const auto& f,
                   std::size_t worth = std::size_t{1} << 15)
{
    each_row(
        B, positions * work,
        [&](std::size_t b) {
            const auto local = f;
            for (std::size_t i = b * positions; i < (b + 1) * positions; ++i) local(b, i);
        },
        worth);
}

/// f(its offset, its real elements, all of its elements) for each row of [B,T] or [B,T,D], in parallel.
void each_real_row(const auto& shape, const lengths_view& real, const auto& f)
{
    const std::size_t width = width_of(shape), row = shape[1] * width;
    each_row(shape[0], row, [&](std::size_t b) { f(b * row, real[b] * width, row); });
}

/// f(its offset, stride of positions, real positions, all positions) for each row of [B,T] and each dimension of
/// [B,T,D]; a position costs `work`. Parallel over rows.
void each_column(const auto& shape, const lengths_view& real, std::size_t work, const auto& f)
{
    const std::size_t positions = shape[1], width = width_of(shape);
    each_row(shape[0], work * positions * width, [&](std::size_t b) {
        for (std::size_t d = 0; d < width; ++d) f(b * positions * width + d, width, real[b], positions);
    });
}

}  // namespace detail

/// An operation on scores or weights [B,T] or [B,T,D] with the lengths of their rows; the result has the same shape.
/// `Self::name` is its name in errors.
template <class Self>
struct row_operation : operation<Self> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const lengths_view& real, const auto&...)
    {
        real.require(Self::name, e.shape[0], e.shape[1]);
        return e.shape;
    }
};

namespace detail {

/// A move in the forward pass: y[to] = x[from].
template <class T>
struct copying {
    const T* x;
    T *y, fill;

    void operator()(std::size_t from, std::size_t to) const { y[to] = x[from]; }
    void operator()(std::size_t from, std::size_t to, std::size_t n) const { std::copy_n(x + from, n, y + to); }
    void nothing(std::size_t to, std::size_t n) const { std::fill_n(y + to, n, fill); }
    void each(std::size_t rows, std::size_t n, const auto& f) const { each_row(rows, n, f, std::size_t{1} << 18); }
};

/// The move in the backward pass: ∂x[from] += ∂y[to].
template <class T>
struct adding {
    T* d_x;
    const T* d_y;

    void operator()(std::size_t from, std::size_t to) const { d_x[from] += d_y[to]; }
    void operator()(std::size_t from, std::size_t to, std::size_t n) const { kernels::add(n, d_x + from, d_y + to); }
    void nothing(std::size_t, std::size_t) const {}
    void each(std::size_t rows, std::size_t, const auto& f) const
    {
        for (std::size_t i = 0; i < rows; ++i) f(i);
    }
};

}  // namespace detail

/// y[to] = x[from] for each move of `Self::each_move(x.shape, settings..., move)`, and `Self::fill` elsewhere:
///
///     move(from, to)          one element
///     move(from, to, n)       n elements that are contiguous in both
///     move.nothing(to, n)     fills n elements of y; a later move may replace them
///     move.each(rows, n, f)   f(i) for i < rows, each of which moves n elements; several may read the same element
///
/// Together they set every element of y.
///
///     ∂x[from] += ∂y[to]
template <class Self, class... Settings>
struct move_operation : operation<Self> {
    static double fill(const Settings&...) { return 0; }

    template <class T, std::size_t R, std::size_t Q>
    static void forward(in<T, R> x, const Settings&... settings, out<T, Q> y)
    {
        Self::each_move(x.shape, settings..., detail::copying<T>{x.data, y.data, T(Self::fill(settings...))});
    }

    template <class T, std::size_t R, std::size_t Q>
    static void backward(in<T, R> x, const Settings&... settings, in<T, Q>, in<T, Q> d_y, adjoint<T, R> d_x)
    {
        Self::each_move(x.shape, settings..., detail::adding<T>{d_x.data, d_y.data});
    }
};

}  // namespace heed::inline HEED_TARGET::ops
