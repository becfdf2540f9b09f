// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// What a convolution over the words of a sentence is made of, and pooling over a few of its columns.
namespace heed::ops {

namespace detail {

inline void require_width(const char* where, std::size_t width)
{
    if (width == 0) throw shape_error(std::string(where) + ": a window of 0 words; it must have at least 1");
}

}  // namespace detail

/// The words under each place of a wide convolution, one behind the other: x [B,S,D] -> [B,S+w-1,w·D].
///
///     y_i = [x_{i-w+1}; …; x_i], i = 0 … S+w-2, zeros where there is no word
///
/// One matrix product with W [w·D,N] then is the convolution.
struct unfold_op : operation<unfold_op> {
    static shape_of_rank<3> result_shape(const shape_of_rank<3>& x, std::size_t width)
    {
        detail::require_width("unfold", width);
        return {x[0], x[1] + width - 1, width * x[2]};
    }

    /// copy(offset in x, offset in y, elements) for the words of each place: they lie together in both.
    template <class Copy>
    static void each_place(const shape_of_rank<3>& x, std::size_t width, Copy&& copy)
    {
        const auto [B, S, D] = x;
        for (std::size_t b = 0; S > 0 && b < B; ++b) {
            for (std::size_t i = 0; i < S + width - 1; ++i) {
                const std::size_t first = i + 1 > width ? i + 1 - width : 0, last = std::min(i + 1, S);
                const std::size_t place = (b * (S + width - 1) + i) * width;
                copy((b * S + first) * D, (place + first + width - 1 - i) * D, (last - first) * D);
            }
        }
    }

    template <plain_tensor X>
    auto plain(const X& x, std::size_t width) const
    {
        using T = element_of<X>;
        const auto shape = result_shape(shape_of(x), width);
        auto y = filled<T, 3>(shape, T(0));
        each_place(shape_of(x), width, [&](std::size_t from, std::size_t to, std::size_t n) {
            std::copy_n(view_of(x).data + from, n, y.data() + to);
        });
        return y;
    }
};
inline constexpr unfold_op unfold{};

/// Weighted sums of w neighbours: x [B,S,D], a [B,S] -> [B,S-w+1,D].
///
///     y_j = Σ_{k=j}^{j+w-1} a_k x_k           w of them, j = 0 … S-w
struct pool_windows_op : operation<pool_windows_op> {
    static shape_of_rank<3> result_shape(const shape_of_rank<3>& x, const shape_of_rank<2>& a, std::size_t width)
    {
        detail::require_width("pool_windows", width);
        require_shape("pool_windows", "the weights", a, {x[0], x[1]}, "one for each column of ", x);
        if (x[1] + 1 < width) {
            throw shape_error("pool_windows: windows of " + std::to_string(width) + " columns in " + shape_text(x) +
                              ", which has only " + std::to_string(x[1]));
        }
        return {x[0], x[1] + 1 - width, x[2]};
    }

    /// meet(column j of the result, column k of x under its window), both counted over the whole batch.
    template <class Meet>
    static void each_pair(const shape_of_rank<3>& y, std::size_t width, Meet&& meet)
    {
        for (std::size_t b = 0; b < y[0]; ++b) {
            for (std::size_t j = 0; j < y[1]; ++j) {
                for (std::size_t k = j; k < j + width; ++k) meet(b * y[1] + j, b * (y[1] + width - 1) + k);
            }
        }
    }

    template <class T>
    static void compute(const shape_of_rank<3>& y, std::size_t width, const T* x, const T* a, T* out)
    {
        const std::size_t D = y[2];
        std::fill_n(out, y[0] * y[1] * D, T(0));
        each_pair(y, width,
                  [=](std::size_t j, std::size_t k) { kernels::add_scaled(D, out + j * D, a[k], x + k * D); });
    }

    template <plain_tensor X, plain_tensor A>
    auto plain(const X& x, const A& a, std::size_t width) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, 3>(result_shape(shape_of(x), shape_of(a), width));
        compute<T>(y.shape(), width, view_of(x).data, view_of(a).data, y.data());
        return y;
    }
};
inline constexpr pool_windows_op pool_windows{};

/// The last two axes change places: [B,S,T] -> [B,T,S].
struct transpose_op : operation<transpose_op> {
    /// write(offset in x, offset in y) for every number.
    template <class Write>
    static void each_number(const shape_of_rank<3>& x, Write&& write)
    {
        const auto [B, S, T_] = x;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t s = 0; s < S; ++s) {
                for (std::size_t t = 0; t < T_; ++t) write((b * S + s) * T_ + t, (b * T_ + t) * S + s);
            }
        }
    }

    template <plain_tensor X>
    auto plain(const X& x) const
    {
        using T = element_of<X>;
        const shape_of_rank<3> shape = shape_of(x);
        auto y = storage_for<T, 3>(shape_of_rank<3>{shape[0], shape[2], shape[1]});
        each_number(shape, [&](std::size_t from, std::size_t to) { y.data()[to] = view_of(x).data[from]; });
        return y;
    }
};
inline constexpr transpose_op transpose{};

}  // namespace heed::ops
