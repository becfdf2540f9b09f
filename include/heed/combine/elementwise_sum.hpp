// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/products.hpp>

namespace heed::combine {

/// Each dimension of the context is the expectation under its own weights.
///
///     c = Σ_j α_j ⊙ h_j                       Choi et al. 2018, eq. 9
struct elementwise_sum {
    using in_kernels = kernels::elementwise_sum_of_row;
    static constexpr weight_kind weights = weight_kind::per_dimension;

    auto operator()(const tensor auto& weights_of_dimensions,
                    const tensor auto& values) const  // [B,T,D] twice -> [B,D]
    {
        return ops::elementwise_sum(weights_of_dimensions, values);
    }

    static auto parameters(auto&, auto&&) { return combine::elementwise_sum{}; }
};

}  // namespace heed::combine
