// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include <heed/core/parallel.hpp>
#include <heed/ops/operation.hpp>

namespace heed::ops {

/// y[i] = x[rows[i]] along the first axis: x [B,...] -> [rows,...]. A row may be taken several times, or not at all: so
/// a beam goes on with the hypotheses that it keeps. For plain tensors.
struct rows_of_op {
    template <plain_tensor X>
    auto operator()(const X& x, std::span<const std::size_t> rows) const
    {
        static_assert(rank_of<X> > 0, "heed: rows_of takes a tensor with at least one axis");
        using T = element_of<X>;
        auto shape = shape_of(x);
        for (const std::size_t row : rows) {
            if (row >= shape[0]) {
                throw shape_error("rows_of: row " + std::to_string(row) + " of " + shape_text(shape) +
                                  ", which has only " + std::to_string(shape[0]));
            }
        }
        shape[0] = rows.size();
        array<T, rank_of<X>> y(shape);
        const std::size_t n = rows.empty() ? 0 : y.size() / rows.size();
        const T* const from = view_of(x).data;
        T* const to = y.data();
        parallel_for(rows.size(), n == 0 ? rows.size() : (std::size_t{1} << 18) / n + 1,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t i = begin; i < end; ++i) std::copy_n(from + rows[i] * n, n, to + i * n);
                     });
        return y;
    }
};
inline constexpr rows_of_op rows_of{};

}  // namespace heed::ops
