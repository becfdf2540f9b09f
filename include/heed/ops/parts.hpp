// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <heed/ops/operation.hpp>

/// Parts of a tensor.
namespace heed::ops {

/// The rows [first, last) of a matrix [K,N]. A view, not a copy, on the tape and off it: the matrix must outlive it.
struct rows_between_op : operation<rows_between_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<2>& x, std::size_t first, std::size_t last)
    {
        if (first > last || last > x[0]) {
            throw shape_error("rows_between: rows " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                              shape_text(x) + ", which has " + std::to_string(x[0]));
        }
        return {last - first, x[1]};
    }

    template <plain_tensor X>
    auto plain(const X& x, std::size_t first, std::size_t last) const
    {
        const auto shape = result_shape(shape_of(x), first, last);
        return tensor_view<const element_of<X>, 2>{view_of(x).data + first * shape[1], shape};
    }
};
inline constexpr rows_between_op rows_between{};

/// y[b,t] = x[b, at[b,t,0]]: x [B,N] and whole numbers at [B,T,1] (constants) -> [B,T].
struct pick_op : operation<pick_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<2>& x, const shape_of_rank<3>& at)
    {
        require_shape("pick", "what is picked from", x, {at[0], x[1]}, "one row for each row of the positions");
        require_shape("pick", "the positions", at, {at[0], at[1], 1}, "one number a position");
        return {at[0], at[1]};
    }

    template <class T>
    static std::size_t index(const shape_of_rank<2>& x, T at)
    {
        if (!(at >= T(0) && at < static_cast<T>(x[1]))) {
            throw shape_error("pick: position " + std::to_string(at) + " of " + shape_text(x) + ", which has " +
                              std::to_string(x[1]) + " columns");
        }
        return static_cast<std::size_t>(at);
    }

    template <class T>
    static void compute(const shape_of_rank<2>& shape, const shape_of_rank<2>& from, const T* x, const T* at, T* y)
    {
        for (std::size_t i = 0; i < shape[0] * shape[1]; ++i) y[i] = x[i / shape[1] * from[1] + index(from, at[i])];
    }

    template <plain_tensor X, plain_tensor P>
    auto plain(const X& x, const P& at) const
    {
        using T = element_of<X>;
        const auto shape = result_shape(shape_of(x), shape_of(at));
        auto y = storage_for<T, 2>(shape);
        compute<T>(shape, shape_of(x), view_of(x).data, view_of(at).data, y.data());
        return y;
    }
};
inline constexpr pick_op pick{};

}  // namespace heed::ops
