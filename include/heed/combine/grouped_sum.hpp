// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include <heed/combine/elementwise_sum.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// c[b,d] = Σ_t α[b,t,g(d)] h[b,t,d], g(d) = dG/D rounded down: G groups of neighboring dimensions, α [B,T,G], h
/// [B,T,D] -> [B,D]. G divides D. Values with a weight of exactly 0 are skipped, even if NaN.
///
///     ∂α_t^g += Σ_{d in g} ∂c_d h_t^d,  ∂h_t^d += ∂c_d α_t^g(d)
struct grouped_sum_op : operation<grouped_sum_op> {
    static shape_of_rank<2> shape(const auto& weights, const auto& values)
    {
        const std::size_t G = weights.shape[2], D = values.shape[2];
        require_shape("grouped_sum", "the weights", weights.shape, {values.shape[0], values.shape[1], G},
                      "one row for each position of the values ", values.shape);
        if (G == 0 || D % G != 0) {
            throw shape_error("grouped_sum: " + counted(G, "group") + " for values of width " + std::to_string(D) +
                              ", but the number of groups must divide the width");
        }
        return {values.shape[0], D};
    }

    template <class T>
    static void forward(in<T, 3> weights, in<T, 3> values, out<T, 2> context)
    {
        const std::size_t positions = values.shape[1], D = values.shape[2], G = weights.shape[2];
        if (G == 1) return weighted_sum_op::forward({weights.data, {values.shape[0], positions}}, values, context);
        if (G == D) return elementwise_sum_op::forward(weights, values, context);
        const std::size_t n = D / G;
        detail::each_row(values.shape[0], positions * D, [=](std::size_t b) {
            T* const c = context.data + b * D;
            std::fill_n(c, D, T(0));
            kernels::add_in_blocks(positions, D, c, [=](std::size_t first, std::size_t last, T* to) {
                for (std::size_t r = b * positions + first; r < b * positions + last; ++r) {
                    for (std::size_t g = 0; g < G; ++g) {
                        const T weight = weights.data[r * G + g];
                        if (weight != T(0)) kernels::add_scaled(n, to + g * n, weight, values.data + r * D + g * n);
                    }
                }
            });
        });
    }

    template <class T>
    static void backward(in<T, 3> weights, in<T, 3> values, in<T, 2>, in<T, 2> d_c, adjoint<T, 3> d_weights,
                         adjoint<T, 3> d_values)
    {
        const std::size_t D = values.shape[2], G = weights.shape[2], n = D / G;
        detail::each_position(values.shape[0], values.shape[1], 2 * D, [=](std::size_t b, std::size_t i) {
            for (std::size_t g = 0; g < G; ++g) {
                const T* const d = d_c.data + b * D + g * n;
                const T weight = weights.data[i * G + g];
                if (d_weights) d_weights.data[i * G + g] += kernels::dot(n, d, values.data + i * D + g * n);
                if (d_values && weight != T(0)) kernels::add_scaled(n, d_values.data + i * D + g * n, weight, d);
            }
        });
    }
};
inline constexpr grouped_sum_op grouped_sum{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::combine {

/// The dimensions of a group share their weights; each group's slice of the context is the expectation under them.
///
///     c^d = Σ_j α_j^{g(d)} h_j^d,  g(d) = dG/D rounded down
///
/// G must divide D. G = 1 is `weighted_sum`, G = D is `elementwise_sum`, and G = 2 gives the two directions of a
/// bidirectional encoder separate weights. No published source; see score::additive_grouped.
struct grouped_sum {
    static constexpr combiner_traits traits{.weights = weight_kind::per_group};

    auto operator()(const tensor auto& weights_of_groups,
                    const tensor auto& values) const  // [B,T,G], [B,T,D] -> [B,D]
    {
        return ops::grouped_sum(weights_of_groups, values);
    }

    static auto parameters(auto&, auto&&) { return combine::grouped_sum{}; }
};

}  // namespace heed::inline HEED_TARGET::combine
