// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>

#include <heed/ops/rows.hpp>

/// Masks and padding: masked scores become -inf, masked values 0. They are selected, never added or multiplied: masked
/// elements may be NaN, and they get no gradient.
namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// Moves the positions i for which `shown(i)` holds, and fills the others. `width` elements per position.
void each_shown(std::size_t positions, std::size_t width, const auto& shown, auto move)
{
    for (std::size_t i = 0; i < positions; ++i) {
        if (shown(i)) {
            move(i * width, i * width, width);
        } else {
            move.nothing(i * width, width);
        }
    }
}

template <class Self>
struct masked : move_operation<Self, boolean_mask_view<2>> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, const boolean_mask_view<2>& mask)
    {
        mask.require(Self::name, {x.shape[0], x.shape[1]});
        return x.shape;
    }

    static void each_move(const auto& x, const boolean_mask_view<2>& mask, auto move)
    {
        each_shown(
            x[0] * x[1], width_of(x), [&](std::size_t i) { return mask[i] != 0; }, move);
    }
};

}  // namespace detail

/// y = e where the mask is true, -inf elsewhere: e [B,T] or [B,T,D], mask [B,T].
///
///     ∂e += ∂y where the mask is true
struct masked_fill_op : detail::masked<masked_fill_op> {
    static constexpr const char* name = "attention";
    static double fill(const boolean_mask_view<2>&) { return -std::numeric_limits<double>::infinity(); }
};
inline constexpr masked_fill_op masked_fill{};

/// y = x where the mask is true, 0 elsewhere: x [B,T] or [B,T,D], mask [B,T].
///
///     ∂x += ∂y where the mask is true
struct zero_masked_op : detail::masked<zero_masked_op> {
    static constexpr const char* name = "attention::on";
};
inline constexpr zero_masked_op zero_masked{};

/// y = x within each row's length, 0 beyond it: x [B,T] or [B,T,D] -> the shape of x.      ∂x += ∂y within the length
struct clear_padding_op : move_operation<clear_padding_op, lengths_view> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, const lengths_view& real)
    {
        real.require("clear_padding", x.shape[0], x.shape[1]);
        return x.shape;
    }

    static void each_move(const auto& x, const lengths_view& real, auto move)
    {
        const std::size_t width = detail::width_of(x), row = x[1] * width;
        for (std::size_t b = 0; b < x[0]; ++b) {
            const std::size_t kept = real[b] * width;
            move(b * row, b * row, kept);
            move.nothing(b * row + kept, row - kept);
        }
    }
};
inline constexpr clear_padding_op clear_padding{};

/// y[t,b] = x[t,b] where row b has more than t words, 0 elsewhere: x [T,B,N] -> [T,B,N]. clear_padding for tensors with
/// the step as the first axis.
///
///     ∂x += ∂y before the end of each row
struct clear_ended_op : move_operation<clear_ended_op, lengths_view> {
    static constexpr ranks takes{3, 3};

    static shape_of_rank<3> shape(const auto& x, const lengths_view& real)
    {
        real.require("clear_ended", x.shape[1], x.shape[0]);
        return x.shape;
    }

    static void each_move(const auto& x, const lengths_view& real, auto move)
    {
        const std::size_t B = x[1];
        detail::each_shown(
            x[0] * B, x[2], [&](std::size_t i) { return i / B < real[i % B]; }, move);
    }
};
inline constexpr clear_ended_op clear_ended{};

/// y = e + m, and -inf where m is -inf, even if e is NaN: e [B,T] or [B,T,D], m [B,T], the same for all dimensions.
///
///     where m is not -inf:  ∂e[b,t,:] += ∂y[b,t,:],  ∂m[b,t] += Σ_d ∂y[b,t,d]
struct add_mask_op : operation<add_mask_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& mask)
    {
        require_shape("attention", "the additive mask", mask.shape, {e.shape[0], e.shape[1]},
                      "one number for each position");
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, 2> mask, out<T, R> y)
    {
        constexpr T none = -std::numeric_limits<T>::infinity();
        const std::size_t positions = mask.size(), width = detail::width_of(e.shape);
        for (std::size_t i = 0; i < positions; ++i) {
            const T m = mask.data[i];
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) y.data[k] = m == none ? none : e.data[k] + m;
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, 2> mask, in<T, R>, in<T, R> d_y, adjoint<T, R> d_e, adjoint<T, 2> d_mask)
    {
        const std::size_t positions = mask.size(), width = detail::width_of(e.shape);
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

}  // namespace heed::inline HEED_TARGET::ops
