// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <heed/ops/operation.hpp>

/// Whole rows of a result: scaled, kept or dropped.
namespace heed::ops {

/// y[b,:] = g[b] x[b,:]: x [B,N], g [B,1] -> [B,N].
struct multiply_rows_op : operation<multiply_rows_op> {
    static void check(const shape_of_rank<2>& x, const shape_of_rank<2>& g)
    {
        require_shape("multiply_rows", "the factors", g, {x[0], 1}, "one for each row of ", x);
    }

    template <class T>
    static void compute(std::size_t rows, std::size_t n, const T* x, const T* g, T* y)
    {
        for (std::size_t i = 0; i < rows * n; ++i) y[i] = g[i / n] * x[i];
    }

    template <plain_tensor X, plain_tensor G>
    auto plain(const X& x, const G& g) const
    {
        using T = element_of<X>;
        check(shape_of(x), shape_of(g));
        auto y = storage_for<T, 2>(shape_of(x));
        compute<T>(y.shape()[0], y.shape()[1], view_of(x).data, view_of(g).data, y.data());
        return y;
    }
};
inline constexpr multiply_rows_op multiply_rows{};

/// The rows of x that are wanted, zeros for the others: x [B,N], one truth value a row. Selected: what is not wanted
/// may be NaN, and no gradient comes back from there.
struct keep_rows_op : operation<keep_rows_op> {
    static void check(const shape_of_rank<2>& x, const std::vector<std::uint8_t>& rows)
    {
        if (rows.size() != x[0]) {
            throw shape_error("keep_rows: " + std::to_string(rows.size()) + " truth values for the rows of " +
                              shape_text(x) + "; give one for each row");
        }
    }

    template <plain_tensor X>
    auto plain(const X& x, const std::vector<std::uint8_t>& rows) const
    {
        using T = element_of<X>;
        check(shape_of(x), rows);
        auto y = filled<T, 2>(shape_of(x), T(0));
        const std::size_t n = y.shape()[1];
        for (std::size_t b = 0; b < rows.size(); ++b) {
            if (rows[b] != 0) std::copy_n(view_of(x).data + b * n, n, y.data() + b * n);
        }
        return y;
    }
};
inline constexpr keep_rows_op keep_rows{};

}  // namespace heed::ops
