// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>

/// Dimensions in groups that share a weight.
namespace heed::ops {

/// c[b,d] = Σ_t α[b,t,g(d)] h[b,t,d], g(d) = dG/D rounded down: G groups of neighbouring dimensions, α [B,T,G],
/// h [B,T,D] -> [B,D]. G divides D. A weight of exactly 0 selects its values away, even a NaN.
struct grouped_sum_op : operation<grouped_sum_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<3>& weights, const shape_of_rank<3>& values)
    {
        const std::size_t G = weights[2], D = values[2];
        require_shape("grouped_sum", "the weights", weights, {values[0], values[1], G},
                      "one row for each position of the values ", values);
        if (G == 0 || D % G != 0) {
            throw shape_error("grouped_sum: " + std::to_string(G) + " groups for values of width " + std::to_string(D) +
                              ", but the groups are equal: their number must divide the width");
        }
        return {values[0], D};
    }

    template <class T>
    static void compute(const shape_of_rank<3>& shape, std::size_t G, const T* weights, const T* values, T* context)
    {
        const auto [B, positions, D] = shape;
        if (G == 1) return weighted_sum_op::compute(shape, weights, values, context);
        if (G == D) return elementwise_sum_op::compute(shape, weights, values, context);
        const std::size_t n = D / G;
        std::fill_n(context, B * D, T(0));
        for (std::size_t r = 0; r < B * positions; ++r) {
            for (std::size_t g = 0; g < G; ++g) {
                const T weight = weights[r * G + g];
                if (weight == T(0)) continue;
                kernels::add_scaled(n, context + r / positions * D + g * n, weight, values + r * D + g * n);
            }
        }
    }

    template <plain_tensor W, plain_tensor H>
    auto plain(const W& weights, const H& values) const
    {
        using T = element_of<H>;
        auto context = storage_for<T, 2>(result_shape(shape_of(weights), shape_of(values)));
        compute<T>(shape_of(values), shape_of(weights)[2], view_of(weights).data, view_of(values).data, context.data());
        return context;
    }
};
inline constexpr grouped_sum_op grouped_sum{};

}  // namespace heed::ops
