// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/rows.hpp>
#include <heed/ops/rows.hpp>

/// Operations that move numbers without changing them.
namespace heed::ops {

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

/// The same move in the backward pass: ∂x[from] += ∂y[to].
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

/// y[to] = x[from] for every move that `Self::each_move(x.shape, settings..., move)` makes, and `Self::fill` elsewhere:
///
///     move(from, to)          one number
///     move(from, to, n)       n numbers that are contiguous in both
///     move.nothing(to, n)     fills n numbers of y; a later move may replace them
///     move.each(rows, n, f)   f(i) for i < rows, each of which moves n numbers; several may move the same ones
///
/// Together they set every number of y.
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

}  // namespace heed::ops
