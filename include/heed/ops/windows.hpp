// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/ops/rows.hpp>

/// Neighbouring positions: the window of each row, and windows that slide over all positions.
namespace heed::ops {

namespace detail {

/// The shape of the window of each row of x [B,T] or [B,T,N].
template <std::size_t R>
shape_of_rank<R> window_shape(const shape_of_rank<R>& x, const window_view& where)
{
    where.count.require("window_of", x[0], x[1]);
    for (std::size_t b = 0; b < x[0]; ++b) {
        if (where.count[b] > where.width || where.begin[b] > x[1] - where.count[b])
            detail::refuse("window_of: the window of row ", b, " has ", counted(where.count[b], "position"), " from ",
                           where.begin[b], " on; it must lie within ", counted(x[1], "position"), ", and have at most ",
                           where.width);
    }
    shape_of_rank<R> y = x;
    y[1] = where.width;
    return y;
}

/// f(place in the whole, place in the window, count of numbers) for the stretch of each row.
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

}  // namespace heed::ops
