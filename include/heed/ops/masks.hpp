// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <heed/core/mask.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// What a query may not see: scores become -inf, values become zeros. Selected, never added or multiplied: what is
/// hidden may be NaN, and no gradient comes back from there.
namespace heed::ops {

namespace detail {

/// y = x where the mask says attend, `hidden` elsewhere; `width` numbers per position.
template <class T>
void select_shown(const boolean_mask_view<2>& mask, std::size_t width, const T* x, T hidden, T* y)
{
    for (std::size_t i = 0, n = mask.shape()[0] * mask.shape()[1]; i < n; ++i) {
        if (mask[i] != 0) {
            std::copy_n(x + i * width, width, y + i * width);
        } else {
            std::fill_n(y + i * width, width, hidden);
        }
    }
}

/// ∂x += ∂y where the mask says attend.
template <class T>
void add_shown(const boolean_mask_view<2>& mask, std::size_t width, const T* d_y, T* d_x)
{
    for (std::size_t i = 0, n = mask.shape()[0] * mask.shape()[1]; i < n; ++i) {
        if (mask[i] != 0) kernels::add(width, d_x + i * width, d_y + i * width);
    }
}

}  // namespace detail

/// y = e where the mask says attend, -inf elsewhere: e [B,T] or [B,T,D], mask [B,T].
///
///     ∂e += ∂y where the mask says attend
struct hide_op : operation<hide_op> {
    static auto shape(const auto& e, const boolean_mask_view<2>& mask)
    {
        constexpr std::size_t R = rank_of<decltype(e)>;
        static_assert(R == 2 || R == 3, "heed: hide takes scores [B,T] or [B,T,D]");
        mask.require("attention", {e.shape[0], e.shape[1]});
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const boolean_mask_view<2>& mask, out<T, R> y)
    {
        detail::select_shown(mask, detail::by_position(e.shape)[2], e.data, -std::numeric_limits<T>::infinity(),
                             y.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const boolean_mask_view<2>& mask, in<T, R>, in<T, R> d_y, adjoint<T, R> d_e)
    {
        if (d_e) detail::add_shown(mask, detail::by_position(e.shape)[2], d_y.data, d_e.data);
    }
};
inline constexpr hide_op hide{};

/// y = x where the mask says attend, 0 elsewhere: x [B,T] or [B,T,D], mask [B,T].
///
///     ∂x += ∂y where the mask says attend
struct clear_hidden_op : operation<clear_hidden_op> {
    static auto shape(const auto& x, const boolean_mask_view<2>& mask)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        static_assert(R == 2 || R == 3, "heed: clear_hidden takes [B,T] or [B,T,D]");
        mask.require("attention::on", {x.shape[0], x.shape[1]});
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, const boolean_mask_view<2>& mask, out<T, R> y)
    {
        detail::select_shown(mask, detail::by_position(x.shape)[2], x.data, T(0), y.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, const boolean_mask_view<2>& mask, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x)
    {
        if (d_x) detail::add_shown(mask, detail::by_position(x.shape)[2], d_y.data, d_x.data);
    }
};
inline constexpr clear_hidden_op clear_hidden{};

/// y = e + m, and -inf where m is -inf, whatever e is there: e [B,T] or [B,T,D], m [B,T], the same for all dimensions.
///
///     where m is not -inf:  ∂e[b,t,:] += ∂y[b,t,:],  ∂m[b,t] += Σ_d ∂y[b,t,d]
struct add_mask_op : operation<add_mask_op> {
    static auto shape(const auto& e, const auto& mask)
    {
        constexpr std::size_t R = rank_of<decltype(e)>;
        static_assert(R == 2 || R == 3, "heed: add_mask takes scores [B,T] or [B,T,D]");
        require_shape("attention", "the additive mask", mask.shape, {e.shape[0], e.shape[1]},
                      "one number for each position");
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, 2> mask, out<T, R> y)
    {
        constexpr T none = -std::numeric_limits<T>::infinity();
        const std::size_t positions = mask.size(), width = detail::by_position(e.shape)[2];
        for (std::size_t i = 0; i < positions; ++i) {
            const T m = mask.data[i];
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) y.data[k] = m == none ? none : e.data[k] + m;
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, 2> mask, in<T, R>, in<T, R> d_y, adjoint<T, R> d_e, adjoint<T, 2> d_mask)
    {
        const std::size_t positions = mask.size(), width = detail::by_position(e.shape)[2];
        for (std::size_t i = 0; i < positions; ++i) {
            if (mask.data[i] == -std::numeric_limits<T>::infinity()) continue;
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) {
                if (d_e) d_e.data[k] += d_y.data[k];
                if (d_mask) d_mask.data[i] += d_y.data[k];
            }
        }
    }
};
inline constexpr add_mask_op add_mask{};

/// y = x within each row's length, 0 behind it: x [B,T] or [B,T,D].
///
///     ∂x += ∂y within the length
struct clear_padding_op : operation<clear_padding_op> {
    static auto shape(const auto& x, const lengths_view& real)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        static_assert(R == 2 || R == 3, "heed: clear_padding takes [B,T] or [B,T,D]");
        real.require("clear_padding", x.shape[0], x.shape[1]);
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, const lengths_view& real, out<T, R> y)
    {
        const auto [B, positions, width] = detail::by_position(x.shape);
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t begin = b * positions * width, kept = real[b] * width;
            std::copy_n(x.data + begin, kept, y.data + begin);
            std::fill_n(y.data + begin + kept, positions * width - kept, T(0));
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, const lengths_view& real, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x)
    {
        if (!d_x) return;
        const auto [B, positions, width] = detail::by_position(x.shape);
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t begin = b * positions * width;
            kernels::add(real[b] * width, d_x.data + begin, d_y.data + begin);
        }
    }
};
inline constexpr clear_padding_op clear_padding{};

/// The same for words in the order of steps, x [T,B,N]: zeros at step t of a row that has at most t words.
///
///     ∂x += ∂y before the end of each row
struct clear_ended_op : operation<clear_ended_op> {
    static shape_of_rank<3> shape(const auto& x, const lengths_view& real)
    {
        real.require("clear_ended", x.shape[1], x.shape[0]);
        return x.shape;
    }

    template <class T>
    static void forward(in<T, 3> x, const lengths_view& real, out<T, 3> y)
    {
        const auto [steps, B, N] = x.shape;
        for (std::size_t row = 0; row < steps * B; ++row) {
            if (row / B < real[row % B]) {
                std::copy_n(x.data + row * N, N, y.data + row * N);
            } else {
                std::fill_n(y.data + row * N, N, T(0));
            }
        }
    }

    template <class T>
    static void backward(in<T, 3> x, const lengths_view& real, in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_x)
    {
        if (!d_x) return;
        const auto [steps, B, N] = x.shape;
        for (std::size_t row = 0; row < steps * B; ++row) {
            if (row / B < real[row % B]) kernels::add(N, d_x.data + row * N, d_y.data + row * N);
        }
    }
};
inline constexpr clear_ended_op clear_ended{};

/// The rows of x that are wanted, zeros for the others: x [B,N], one truth value per row.
///
///     ∂x[b,:] += ∂y[b,:] of the rows that are wanted
struct keep_rows_op : operation<keep_rows_op> {
    static shape_of_rank<2> shape(const auto& x, std::span<const std::uint8_t> rows)
    {
        if (rows.size() != x.shape[0]) {
            throw shape_error("keep_rows: " + std::to_string(rows.size()) + " truth values for the rows of " +
                              shape_text(x.shape) + "; give one for each row");
        }
        return x.shape;
    }

    template <class T>
    static void forward(in<T, 2> x, std::span<const std::uint8_t> rows, out<T, 2> y)
    {
        detail::select_shown(as_mask(rows), x.shape[1], x.data, T(0), y.data);
    }

    template <class T>
    static void backward(in<T, 2> x, std::span<const std::uint8_t> rows, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_x)
    {
        if (d_x) detail::add_shown(as_mask(rows), x.shape[1], d_y.data, d_x.data);
    }

private:
    static boolean_mask_view<2> as_mask(std::span<const std::uint8_t> rows)
    {
        return {rows.data(), shape_of_rank<2>{rows.size(), 1}};
    }
};
inline constexpr keep_rows_op keep_rows{};

}  // namespace heed::ops
