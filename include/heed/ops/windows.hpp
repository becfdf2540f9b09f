// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/core/window.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/moves.hpp>

/// Neighbouring positions: the window of each row, and windows that slide over all positions.
namespace heed::ops {

namespace detail {

/// The shape of the window of each row of x [B,T] or [B,T,N].
template <std::size_t R>
shape_of_rank<R> window_shape(const shape_of_rank<R>& x, const window_view& where)
{
    where.count.require("window_of", x[0], x[1]);
    for (std::size_t b = 0; b < x[0]; ++b) {
        if (where.count[b] > where.width || where.begin[b] > x[1] - where.count[b]) {
            throw shape_error("window_of: the window of row " + std::to_string(b) + " has " +
                              counted(where.count[b], "position") + " from " + std::to_string(where.begin[b]) +
                              " on; it must lie within " + counted(x[1], "position") + ", and have at most " +
                              std::to_string(where.width));
        }
    }
    shape_of_rank<R> y = x;
    y[1] = where.width;
    return y;
}

/// f(place in the whole, place in the window, count of numbers) for the stretch of each row.
template <std::size_t R, class F>
void each_stretch(const shape_of_rank<R>& whole, const window_view& where, F&& f)
{
    const auto [B, positions, N] = by_position(whole);
    for (std::size_t b = 0; b < B; ++b) {
        f((b * positions + where.begin[b]) * N, b * where.width * N, where.count[b] * N);
    }
}

inline void require_width(const char* where, std::size_t width)
{
    if (width == 0) throw shape_error(std::string(where) + ": a window of 0 words; it must have at least 1");
}

}  // namespace detail

/// y[b,j] = x[b,begin_b + j], the window of each row: x [B,T] or [B,T,N] -> [B,W] or [B,W,N]. Zeros where a row's
/// window is shorter.
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

/// y = x with the window of each row replaced by w: x [B,T] or [B,T,N], w [B,W] or [B,W,N] -> the shape of x.
///
///     ∂x += ∂y outside of the window,  ∂w += ∂y within
struct put_window_op : operation<put_window_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, const auto& w, const window_view& where)
    {
        require_shape("put_window", "what is put", w.shape, detail::window_shape(x.shape, where),
                      "as wide as the window");
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
        std::size_t first = 0;  // where the row begins
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
        require_shape("put_window", "what is put", w.shape, detail::window_shape(y, where), "as wide as the window");
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

/// y = [past[:, N:]; x], a window that moves on by one: past [B,n·N], x [B,N] -> [B,n·N].
/// Without columns (n = 0) it stays empty.
///
///     ∂past[:, N:] += ∂y[:, :(n-1)N],  ∂x += ∂y[:, (n-1)N:]
struct slide_op : operation<slide_op> {
    static shape_of_rank<2> shape(const auto& past, const auto& x)
    {
        const std::size_t width = past.shape[1], N = x.shape[1];
        if (N == 0 || width % N != 0) {
            throw shape_error("slide: x is " + shape_text(x.shape) + " and the window " + shape_text(past.shape) +
                              ", but the window must hold a whole number of x");
        }
        require_shape("slide", "the window", past.shape, {x.shape[0], width}, "a row for each row of ", x.shape);
        return past.shape;
    }

    template <class T>
    static void forward(in<T, 2> past, in<T, 2> x, out<T, 2> y)
    {
        const std::size_t width = past.shape[1], N = x.shape[1];
        for (std::size_t b = 0; width > 0 && b < x.shape[0]; ++b) {
            T* const rest = std::copy_n(past.data + b * width + N, width - N, y.data + b * width);
            std::copy_n(x.data + b * N, N, rest);
        }
    }

    template <class T>
    static void backward(in<T, 2> past, in<T, 2> x, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_past, adjoint<T, 2> d_x)
    {
        const std::size_t width = past.shape[1], N = x.shape[1];
        for (std::size_t b = 0; width > 0 && b < x.shape[0]; ++b) {
            const T* const d = d_y.data + b * width;
            if (d_past) kernels::add(width - N, d_past.data + b * width + N, d);
            if (d_x) kernels::add(N, d_x.data + b * N, d + width - N);
        }
    }
};
inline constexpr slide_op slide{};

/// y[b,t,i] = x[b,t+i-k], each position with its neighbours, 0 beyond the sentence: x [B,T] -> [B,T,2k+1].
///
///     ∂x[b,t+i-k] += ∂y[b,t,i]
struct neighbourhood_op : move_operation<neighbourhood_op, std::size_t> {
    static constexpr ranks takes{2, 2};

    static shape_of_rank<3> shape(const auto& x, std::size_t reach) { return {x.shape[0], x.shape[1], 2 * reach + 1}; }

    static void each_move(const auto& x, std::size_t reach, auto move)
    {
        const std::size_t width = 2 * reach + 1;
        move.nothing(0, x[0] * x[1] * width);
        for (std::size_t b = 0; b < x[0]; ++b) {
            for (std::size_t t = 0; t < x[1]; ++t) {
                const auto near = stretch::around(t, reach, x[1]);
                move(b * x[1] + near.first, (b * x[1] + t) * width + near.first + reach - t, near.count);
            }
        }
    }
};
inline constexpr neighbourhood_op neighbourhood{};

/// y[b,t,n] = Σ_i F[n,i] x[b,t+i-(r-1)/2], zeros beyond the sentence: x [B,T], F [k,r] -> [B,T,k]. k filters of odd
/// width r slide over the positions; they are not mirrored.
///
///     ∂F[n,i] += Σ ∂y[b,t,n] x[b,t+i-(r-1)/2],  ∂x[b,t+i-(r-1)/2] += Σ_n ∂y[b,t,n] F[n,i]
struct convolve_op : operation<convolve_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& filters)
    {
        if (filters.shape[1] % 2 == 0) {
            throw shape_error("convolve: the filters are " + shape_text(filters.shape) +
                              ", but their width must be odd: as much to the left of a position as to the right");
        }
        return {x.shape[0], x.shape[1], filters.shape[0]};
    }

    template <class T>
    static void forward(in<T, 2> x, in<T, 2> filters, out<T, 3> y)
    {
        const auto [B, positions] = x.shape;
        const auto [k, r] = filters.shape;
        scratch here;
        T* const padded = here.take<T>(positions + r - 1);
        T* to = y.data;
        for (std::size_t b = 0; b < B; ++b) {
            pad(positions, r / 2, x.data + b * positions, padded);
            for (std::size_t t = 0; t < positions; ++t) {
                for (std::size_t n = 0; n < k; ++n) *to++ = kernels::dot(r, padded + t, filters.data + n * r);
            }
        }
    }

    template <class T>
    static void backward(in<T, 2> x, in<T, 2> filters, in<T, 3>, in<T, 3> d_y, adjoint<T, 2> d_x,
                         adjoint<T, 2> d_filters)
    {
        const auto [B, positions] = x.shape;
        const auto [k, r] = filters.shape;
        scratch here;
        T* const padded = here.take<T>(positions + r - 1);
        T* const d_padded = here.take<T>(positions + r - 1);
        for (std::size_t b = 0; b < B; ++b) {
            pad(positions, r / 2, x.data + b * positions, padded);
            std::fill_n(d_padded, positions + r - 1, T(0));
            const auto between = [&, k = k, r = r, length = positions](std::size_t first, std::size_t last,
                                                                       T* of_filters) {
                const T* d = d_y.data + (b * length + first) * k;
                for (std::size_t t = first; t < last; ++t) {
                    for (std::size_t n = 0; n < k; ++n, ++d) {
                        if (of_filters != nullptr) kernels::add_scaled(r, of_filters + n * r, *d, padded + t);
                        if (d_x) kernels::add_scaled(r, d_padded + t, *d, filters.data + n * r);
                    }
                }
            };
            if (d_filters) {
                kernels::add_in_blocks(positions, k * r, d_filters.data, between);
            } else {
                between(0, positions, nullptr);
            }
            if (d_x) kernels::add(positions, d_x.data + b * positions, d_padded + r / 2);
        }
    }

private:
    /// A row of x with `reach` zeros before and behind it.
    template <class T>
    static void pad(std::size_t positions, std::size_t reach, const T* x, T* padded)
    {
        std::fill_n(padded, reach, T(0));
        std::copy_n(x, positions, padded + reach);
        std::fill_n(padded + reach + positions, reach, T(0));
    }
};
inline constexpr convolve_op convolve{};

/// The words under each place of a wide convolution, one after another: x [B,S,D] -> [B,S+w-1,w·D].
///
///     y_i = [x_{i-w+1}; …; x_i], i = 0 … S+w-2, zeros where there is no word
///     ∂x_k += its part of each ∂y_i
///
/// One matrix product with W [w·D,N] then is the convolution.
struct unfold_op : move_operation<unfold_op, std::size_t> {
    static constexpr ranks takes{3, 3};

    static shape_of_rank<3> shape(const auto& x, std::size_t width)
    {
        detail::require_width("unfold", width);
        return {x.shape[0], x.shape[1] + width - 1, width * x.shape[2]};
    }

    /// The words of each place: they lie together in both.
    static void each_move(const auto& x, std::size_t width, auto move)
    {
        const auto [B, S, D] = x;
        move.nothing(0, B * (S + width - 1) * width * D);
        for (std::size_t b = 0; S > 0 && b < B; ++b) {
            for (std::size_t i = 0; i < S + width - 1; ++i) {
                const std::size_t first = i + 1 > width ? i + 1 - width : 0, last = std::min(i + 1, S);
                const std::size_t place = (b * (S + width - 1) + i) * width;
                move((b * S + first) * D, (place + first + width - 1 - i) * D, (last - first) * D);
            }
        }
    }
};
inline constexpr unfold_op unfold{};

/// Weighted sums of w neighbours: x [B,S,D], a [B,S] -> [B,S-w+1,D].
///
///     y_j = Σ_{k=j}^{j+w-1} a_k x_k           w of them, j = 0 … S-w
///     ∂x_k += a_k ∂y_j,  ∂a_k += ∂y_j · x_k
struct pool_windows_op : operation<pool_windows_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& a, std::size_t width)
    {
        detail::require_width("pool_windows", width);
        require_shape("pool_windows", "the weights", a.shape, {x.shape[0], x.shape[1]}, "one for each column of ",
                      x.shape);
        if (x.shape[1] + 1 < width) {
            throw shape_error("pool_windows: windows of " + std::to_string(width) + " columns in " +
                              shape_text(x.shape) + ", which has only " + std::to_string(x.shape[1]));
        }
        return {x.shape[0], x.shape[1] + 1 - width, x.shape[2]};
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 2> a, std::size_t width, out<T, 3> y)
    {
        std::fill_n(y.data, y.size(), T(0));
        each_pair(y.shape, width, [=, D = x.shape[2]](std::size_t j, std::size_t k) {
            kernels::add_scaled(D, y.data + j * D, a.data[k], x.data + k * D);
        });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 2> a, std::size_t width, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_x,
                         adjoint<T, 2> d_a)
    {
        each_pair(y.shape, width, [=, D = x.shape[2]](std::size_t j, std::size_t k) {
            if (d_x) kernels::add_scaled(D, d_x.data + k * D, a.data[k], d_y.data + j * D);
            if (d_a) d_a.data[k] += kernels::dot(D, d_y.data + j * D, x.data + k * D);
        });
    }

private:
    /// f(column j of the result, column k of x under its window), both counted over the whole batch.
    template <class F>
    static void each_pair(const shape_of_rank<3>& y, std::size_t width, F&& f)
    {
        for (std::size_t b = 0; b < y[0]; ++b) {
            for (std::size_t j = 0; j < y[1]; ++j) {
                for (std::size_t k = j; k < j + width; ++k) f(b * y[1] + j, b * (y[1] + width - 1) + k);
            }
        }
    }
};
inline constexpr pool_windows_op pool_windows{};

}  // namespace heed::ops
