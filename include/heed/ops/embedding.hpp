// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

namespace heed {

/// The words of a batch at each step, as ids of a vocabulary: [S,B], step by step.
struct word_ids {
    std::size_t steps = 0, batch = 0;
    std::vector<std::uint32_t> ids;  // [S,B]

    word_ids() = default;
    word_ids(std::size_t s, std::size_t b, std::uint32_t fill = 0) : steps(s), batch(b), ids(s * b, fill) {}
    std::uint32_t& operator()(std::size_t step, std::size_t row) { return ids[step * batch + row]; }
    std::uint32_t operator()(std::size_t step, std::size_t row) const { return ids[step * batch + row]; }
};

namespace ops {

/// y[s,b] = E[ids[s,b]]: a table of embeddings E [V,N] -> [S,B,N].
///
///     ∂E[ids[s,b]] += ∂y[s,b]                    on the tape: ad/lookup.hpp
struct lookup_op : operation<lookup_op> {
    static shape_of_rank<3> shape(const auto& table, const word_ids& words)
    {
        for (const std::uint32_t id : words.ids) {
            if (id >= table.shape[0]) {
                throw error("lookup: word " + std::to_string(id) + " of a table of " + std::to_string(table.shape[0]) +
                            " embeddings; ids count from 0");
            }
        }
        return {words.steps, words.batch, table.shape[1]};
    }

    template <class T>
    static void forward(in<T, 2> table, const word_ids& words, out<T, 3> y)
    {
        T* to = y.data;
        for (const std::uint32_t id : words.ids) to = std::copy_n(table.data + id * table.shape[1], table.shape[1], to);
    }
};
inline constexpr lookup_op lookup{};

/// y[s,b] = x[s,b] + P[first + s], a vector for each step: x [S,B,N], a table P [M,N] -> [S,B,N].
///
///     ∂x += ∂y,  ∂P[first + s] += Σ_b ∂y[s,b]
struct add_positions_op : operation<add_positions_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& table, std::size_t first)
    {
        require_shape("add_positions", "the table", table.shape, {table.shape[0], x.shape[2]}, "as wide as ", x.shape);
        if (first + x.shape[0] > table.shape[0]) {
            throw shape_error("add_positions: position " + std::to_string(first + x.shape[0] - 1) + " of a table of " +
                              std::to_string(table.shape[0]) +
                              "; positions count from 0: give shorter sentences or a longer table");
        }
        return x.shape;
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 2> table, std::size_t first, out<T, 3> y)
    {
        const auto [S, B, N] = x.shape;
        for (std::size_t row = 0; row < S * B; ++row) {
            simd::transform(
                N, y.data + row * N, [](auto v, auto p) { return v + p; }, x.data + row * N,
                table.data + (first + row / B) * N);
        }
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 2>, std::size_t first, in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_x,
                         adjoint<T, 2> d_table)
    {
        const auto [S, B, N] = x.shape;
        if (d_x) kernels::add(x.size(), d_x.data, d_y.data);
        for (std::size_t s = 0; d_table && s < S; ++s) {
            kernels::add_columns(B, N, d_table.data + (first + s) * N, d_y.data + s * B * N);
        }
    }
};
inline constexpr add_positions_op add_positions{};

}  // namespace ops

}  // namespace heed
