// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/rows.hpp>
#include <heed/ops/rows.hpp>

/// Neighboring positions: the window of each row, and windows that slide over all positions.
namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// The shape of the window of each row of x [B,T] or [B,T,N].
template <std::size_t R>
shape_of_rank<R> window_shape(const shape_of_rank<R>& x, const window_view& where)
{
    where.count.require("window_of", x[0], x[1]);
    for (std::size_t b = 0; b < x[0]; ++b) {
        if (where.count[b] > where.width || where.begin[b] > x[1] - where.count[b])
            detail::refuse("window_of: the window of row ", b, " has ", counted(where.count[b], "position"), " from ",
                           where.begin[b], " on; it must be within ", counted(x[1], "position"), ", and have at most ",
                           where.width);
    }
    shape_of_rank<R> y = x;
    y[1] = where.width;
    return y;
}

/// f(offset in the full row, offset in the window, number of elements) for the range of each row.
void each_stretch(const auto& whole, const window_view& where, const auto& f)
{
    const auto [B, positions, N] = by_position(whole);
    for (std::size_t b = 0; b < B; ++b) {
        f((b * positions + where.begin[b]) * N, b * where.width * N, where.count[b] * N);
    }
}

inline void require_width(const char* where, std::size_t width)
{
    if (width == 0) detail::refuse(where, ": a window of 0 words; it must have at least 1");
}

}  // namespace detail

/// y[b,j] = x[b,begin_b + j], the window of each row: x [B,T] or [B,T,N] -> [B,W] or [B,W,N]. Zeros after the end of a
/// shorter window.
///
///     ∂x += ∂y within the window
struct window_of_op : move_operation<window_of_op, window_view> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, const window_view& where) { return detail::window_shape(x.shape, where); }

    static void each_move(const auto& x, const window_view& where, auto move)
    {
        move.nothing(0, x[0] * where.width * detail::width_of(x));
        detail::each_stretch(x, where, move);
    }
};
inline constexpr window_of_op window_of{};

/// y = x where w replaces the window of each row: x [B,T] or [B,T,N], w [B,W] or [B,W,N] -> the shape of x.
///
///     ∂x += ∂y outside of the window,  ∂w += ∂y within
struct put_window_op : operation<put_window_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, const auto& w, const window_view& where)
    {
        require_shape("put_window", "the new window", w.shape, detail::window_shape(x.shape, where),
                      "the size of the window");
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, R> w, const window_view& where, out<T, R> y)
    {
        std::copy_n(x.data, y.size(), y.data);
        detail::each_stretch(x.shape, where, [=](std::size_t to, std::size_t from, std::size_t n) {
            std::copy_n(w.data + from, n, y.data + to);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R>, const window_view& where, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x,
                         adjoint<T, R> d_w)
    {
        const std::size_t row = x.size() / std::max<std::size_t>(1, x.shape[0]);
        std::size_t first = 0;  // start of the row
        detail::each_stretch(x.shape, where, [&](std::size_t at, std::size_t in_window, std::size_t n) {
            if (d_x) {
                kernels::add(at - first, d_x.data + first, d_y.data + first);
                kernels::add(first + row - at - n, d_x.data + at + n, d_y.data + at + n);
            }
            if (d_w) kernels::add(n, d_w.data + in_window, d_y.data + at);
            first += row;
        });
    }
};
inline constexpr put_window_op put_window{};

/// y[b,begin_b + j] = w[b,j], zeros elsewhere: w [B,W] or [B,W,N] -> [B,T] or [B,T,N].
///
///     ∂w += ∂y within the window
struct spread_window_op : move_operation<spread_window_op, window_view, std::size_t> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& w, const window_view& where, std::size_t positions)
    {
        auto y = w.shape;
        y[1] = positions;
        require_shape("put_window", "the new window", w.shape, detail::window_shape(y, where),
                      "the size of the window");
        return y;
    }

    static void each_move(const auto& w, const window_view& where, std::size_t positions, auto move)
    {
        auto y = w;
        y[1] = positions;
        move.nothing(0, y[0] * positions * detail::width_of(y));
        detail::each_stretch(y, where, [&](std::size_t to, std::size_t from, std::size_t n) { move(from, to, n); });
    }
};
inline constexpr spread_window_op spread_window{};

}  // namespace heed::inline HEED_TARGET::ops
