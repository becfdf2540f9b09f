// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/simd/simd.hpp>

namespace heed::inline HEED_TARGET::ops {

/// c[b,d] = Σ_t α[b,t,d] h[b,t,d]: α, h [B,T,D] -> [B,D]. Values with a weight of exactly 0 are skipped, even if NaN.
///
///     ∂α[b,t,d] += ∂c[b,d] h[b,t,d],  ∂h[b,t,d] += ∂c[b,d] α[b,t,d]
struct elementwise_sum_op : operation<elementwise_sum_op> {
    static shape_of_rank<2> shape(const auto& weights, const auto& values)
    {
        require_shape("elementwise_sum", "the weights", weights.shape, values.shape,
                      "one for each dimension of each value");
        return {values.shape[0], values.shape[2]};
    }

    template <class T>
    static void forward(in<T, 3> weights, in<T, 3> values, out<T, 2> context)
    {
        const std::size_t positions = values.shape[1], D = values.shape[2];
        detail::each_row(values.shape[0], positions * D, [=](std::size_t b) {
            T* const c = context.data + b * D;
            std::fill_n(c, D, T(0));
            kernels::add_in_blocks(positions, D, c, [=](std::size_t first, std::size_t last, T* to) {
                for (std::size_t t = b * positions + first; t < b * positions + last; ++t) {
                    simd::transform(
                        D, to, [](auto sum, auto w, auto h) { return simd::select(w == T(0), sum, sum + w * h); },
                        static_cast<const T*>(to), weights.data + t * D, values.data + t * D);
                }
            });
        });
    }

    template <class T>
    static void backward(in<T, 3> weights, in<T, 3> values, in<T, 2>, in<T, 2> d_c, adjoint<T, 3> d_weights,
                         adjoint<T, 3> d_values)
    {
        const std::size_t D = values.shape[2];
        detail::each_position(values.shape[0], values.shape[1], 2 * D, [=](std::size_t b, std::size_t i) {
            const auto add_product = [=](T* to, const T* x) {
                simd::transform(
                    D, to, [](auto sum, auto u, auto v) { return sum + u * v; }, static_cast<const T*>(to),
                    d_c.data + b * D, x);
            };
            if (d_weights) add_product(d_weights.data + i * D, values.data + i * D);
            if (d_values) add_product(d_values.data + i * D, weights.data + i * D);
        });
    }
};
inline constexpr elementwise_sum_op elementwise_sum{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::combine {

/// Each dimension of the context is the expectation under its own weights.
///
///     c = Σ_j α_j ⊙ h_j                       Choi et al. 2018, eq. 9
struct elementwise_sum {
    using kernel_tag = kernels::elementwise_sum_of_row;
    static constexpr combiner_traits traits{.weights = weight_kind::per_dimension};

    auto operator()(const tensor auto& weights_of_dimensions,
                    const tensor auto& values) const  // [B,T,D] twice -> [B,D]
    {
        return ops::elementwise_sum(weights_of_dimensions, values);
    }

    static auto parameters(auto&, auto&&) { return combine::elementwise_sum{}; }
};

}  // namespace heed::inline HEED_TARGET::combine
