// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include <heed/core/window.hpp>
#include <heed/ops/operation.hpp>

/// Scores and values of the positions that a query may look at.
namespace heed::ops {

/// e where the mask says attend, -inf elsewhere: e [B,T] or [B,T,D], mask [B,T]. Selected, never added: what is hidden
/// may be NaN, and no gradient comes back from there.
struct hide_op : operation<hide_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& e, const boolean_mask<2>& mask)
    {
        static_assert(R == 2 || R == 3, "heed: hide takes scores [B,T] or [B,T,D]");
        mask.require("attention", {e[0], e[1]});
    }

    template <class T>
    static void compute(std::size_t positions, std::size_t width, const std::uint8_t* attend, const T* e, T* y)
    {
        for (std::size_t i = 0; i < positions; ++i) {
            if (attend[i] != 0) {
                std::copy_n(e + i * width, width, y + i * width);
            } else {
                std::fill_n(y + i * width, width, -std::numeric_limits<T>::infinity());
            }
        }
    }

    template <plain_tensor E>
    auto plain(const E& e, const boolean_mask<2>& mask) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(e);
        check(shape, mask);
        auto y = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape[0] * shape[1], rank_of<E> == 3 ? shape[rank_of<E> - 1] : 1, mask.data(), view_of(e).data,
                   y.data());
        return y;
    }
};
inline constexpr hide_op hide{};

/// e + m, and -inf where m is -inf whatever e is there: e [B,T] or [B,T,D], m [B,T], the same for all dimensions.
struct add_mask_op : operation<add_mask_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& e, const shape_of_rank<2>& mask)
    {
        static_assert(R == 2 || R == 3, "heed: add_mask takes scores [B,T] or [B,T,D]");
        require_shape("attention", "the additive mask", mask, {e[0], e[1]}, "one number for each position");
    }

    template <class T>
    static void compute(std::size_t positions, std::size_t width, const T* mask, const T* e, T* y)
    {
        constexpr T none = -std::numeric_limits<T>::infinity();
        for (std::size_t i = 0; i < positions; ++i) {
            for (std::size_t d = i * width; d < (i + 1) * width; ++d) y[d] = mask[i] == none ? none : e[d] + mask[i];
        }
    }

    template <plain_tensor E, plain_tensor M>
    auto plain(const E& e, const M& mask) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(e);
        check(shape, shape_of(mask));
        auto y = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape[0] * shape[1], rank_of<E> == 3 ? shape[rank_of<E> - 1] : 1, view_of(mask).data,
                   view_of(e).data, y.data());
        return y;
    }
};
inline constexpr add_mask_op add_mask{};

/// x with zeros at the positions that the mask hides: [B,T] or [B,T,D]. Selected, as in clear_padding.
struct clear_hidden_op : operation<clear_hidden_op> {
    template <class T>
    static void compute(std::size_t positions, std::size_t width, const std::uint8_t* attend, const T* x, T* y)
    {
        for (std::size_t i = 0; i < positions; ++i) {
            if (attend[i] != 0) {
                std::copy_n(x + i * width, width, y + i * width);
            } else {
                std::fill_n(y + i * width, width, T(0));
            }
        }
    }

    template <plain_tensor X>
    auto plain(const X& x, const boolean_mask<2>& mask) const
    {
        using T = element_of<X>;
        const auto shape = shape_of(x);
        mask.require("attention::on", {shape[0], shape[1]});
        auto y = storage_for<T, rank_of<X>>(shape);
        compute<T>(shape[0] * shape[1], rank_of<X> == 3 ? shape[rank_of<X> - 1] : 1, mask.data(), view_of(x).data,
                   y.data());
        return y;
    }
};
inline constexpr clear_hidden_op clear_hidden{};

/// What lies in a window of each row: x [B,T] or [B,T,N] -> [B,W] or [B,W,N], zeros where a row's window is shorter.
struct window_of_op : operation<window_of_op> {
    template <std::size_t R>
    static shape_of_rank<R> result_shape(const shape_of_rank<R>& x, const window& where)
    {
        static_assert(R == 2 || R == 3, "heed: window_of takes [B,T] or [B,T,N]");
        where.count.require("window_of", x[0], x[1]);
        shape_of_rank<R> y = x;
        y[1] = where.width;
        return y;
    }

    /// copy(offset in the whole, offset in the window, elements) for the stretch of each row.
    template <std::size_t R, class Copy>
    static void each_row(const shape_of_rank<R>& whole, const window& where, Copy&& copy)
    {
        const std::size_t width = R == 3 ? whole[R - 1] : 1;
        for (std::size_t b = 0; b < whole[0]; ++b) {
            copy((b * whole[1] + where.begin[b]) * width, b * where.width * width, where.count[b] * width);
        }
    }

    template <plain_tensor X>
    auto plain(const X& x, const window& where) const
    {
        using T = element_of<X>;
        const auto shape = shape_of(x);
        auto y = filled<T, rank_of<X>>(result_shape(shape, where), T(0));
        each_row(shape, where, [&](std::size_t from, std::size_t to, std::size_t n) {
            std::copy_n(view_of(x).data + from, n, y.data() + to);
        });
        return y;
    }
};
inline constexpr window_of_op window_of{};

/// The whole with a window of each row replaced: x [B,T] or [B,T,N], w [B,W] or [B,W,N] -> the shape of x.
struct put_window_op : operation<put_window_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& x, const shape_of_rank<R>& w, const window& where)
    {
        require_shape("put_window", "what is put", w, window_of_op::result_shape(x, where), "as wide as the window");
    }

    template <plain_tensor X, plain_tensor W>
    auto plain(const X& x, const W& w, const window& where) const
    {
        using T = element_of<X>;
        check(shape_of(x), shape_of(w), where);
        auto y = storage_for<T, rank_of<X>>(shape_of(x));
        std::copy_n(view_of(x).data, y.size(), y.data());
        window_of_op::each_row(shape_of(x), where, [&](std::size_t to, std::size_t from, std::size_t n) {
            std::copy_n(view_of(w).data + from, n, y.data() + to);
        });
        return y;
    }
};
inline constexpr put_window_op put_window{};

/// w [B,W] or [B,W,N] in its place among T positions, zeros elsewhere: -> [B,T] or [B,T,N].
struct spread_window_op : operation<spread_window_op> {
    template <std::size_t R>
    static shape_of_rank<R> result_shape(const shape_of_rank<R>& w, const window& where, std::size_t positions)
    {
        shape_of_rank<R> y = w;
        y[1] = positions;
        put_window_op::check(y, w, where);
        return y;
    }

    template <plain_tensor W>
    auto plain(const W& w, const window& where, std::size_t positions) const
    {
        using T = element_of<W>;
        auto y = filled<T, rank_of<W>>(result_shape(shape_of(w), where, positions), T(0));
        window_of_op::each_row(shape_of(y), where, [&](std::size_t to, std::size_t from, std::size_t n) {
            std::copy_n(view_of(w).data + from, n, y.data() + to);
        });
        return y;
    }
};
inline constexpr spread_window_op spread_window{};

}  // namespace heed::ops
