// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heed/core/parallel.hpp>
#include <heed/ops/operation.hpp>

namespace heed::ops {

/// y[..., i] = x[..., columns[i]] along the last axis: W [K,V] -> [K,n], b [V] -> [n]. An output layer of some words.
struct columns_of_op : operation<columns_of_op> {
    template <std::size_t R>
    static shape_of_rank<R> result_shape(const shape_of_rank<R>& x, const std::vector<std::uint32_t>& columns)
    {
        for (const std::uint32_t column : columns) {
            if (column >= x[R - 1]) {
                throw shape_error("columns_of: column " + std::to_string(column) + " of " + shape_text(x) +
                                  ", whose last axis has only " + std::to_string(x[R - 1]));
            }
        }
        shape_of_rank<R> y = x;
        y[R - 1] = columns.size();
        return y;
    }

    /// x [rows,V] -> y [rows,n]
    template <class T>
    static void compute(std::size_t rows, std::size_t V, const std::uint32_t* columns, std::size_t n, const T* x, T* y)
    {
        parallel_for(rows, (std::size_t{1} << 15) / (n + 1) + 1, [=](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t r = begin; r < end; ++r) {
                for (std::size_t i = 0; i < n; ++i) y[r * n + i] = x[r * V + columns[i]];
            }
        });
    }

    template <plain_tensor X>
    auto plain(const X& x, const std::vector<std::uint32_t>& columns) const
    {
        const auto shape = shape_of(x);
        array<element_of<X>, rank_of<X>> y(result_shape(shape, columns));
        const std::size_t V = shape[rank_of<X> - 1];
        compute(V == 0 ? 0 : view_of(x).size() / V, V, columns.data(), columns.size(), view_of(x).data, y.data());
        return y;
    }
};
inline constexpr columns_of_op columns_of{};

}  // namespace heed::ops
