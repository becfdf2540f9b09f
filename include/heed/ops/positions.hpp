// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/ops/operation.hpp>

namespace heed::ops {

/// The positions [first, first + count) of a batch of one sentence: x [1,T] or [1,T,N] -> [1,count] or [1,count,N]. On
/// the tape and in the workspace it shares the memory of x.
struct positions_between_op : operation<positions_between_op> {
    static auto piece(const auto& x, std::size_t first, std::size_t count)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        auto shape = x.shape;
        std::size_t width = 1;
        for (std::size_t axis = 2; axis < R; ++axis) width *= shape[axis];
        shape[1] = count;
        return piece_of<R>{first * width, shape};
    }
};
inline constexpr positions_between_op positions_between{};

/// x with one column set to a number: x [B,T,N] -> the same shape.       ∂x += ∂y in the other columns
struct with_column_op : operation<with_column_op> {
    static auto shape(const auto& x, std::size_t column, double)
    {
        if (column >= x.shape[2]) {
            throw shape_error("with_column: column " + std::to_string(column) + " of " + shape_text(x.shape) +
                              "; columns count from 0");
        }
        return x.shape;
    }

    template <class T>
    static void forward(in<T, 3> x, std::size_t column, double value, out<T, 3> y)
    {
        std::copy_n(x.data, x.size(), y.data);
        for (std::size_t i = column; i < x.size(); i += x.shape[2]) y.data[i] = static_cast<T>(value);
    }

    template <class T>
    static void backward(in<T, 3> x, std::size_t column, double, in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_x)
    {
        for (std::size_t i = 0; d_x && i < x.size(); ++i) {
            if (i % x.shape[2] != column) d_x.data[i] += d_y.data[i];
        }
    }
};
inline constexpr with_column_op with_column{};

}  // namespace heed::ops
