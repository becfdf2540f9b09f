// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::combine {

/// The context is the expected annotation.
///
///     c = Σ_j α_j h_j                         Bahdanau et al. 2015, eq. 5
struct weighted_sum {
    using kernel_tag = kernels::weighted_sum_of_row;
    static constexpr combiner_traits traits{
        .weights = weight_kind::per_position,
        .linear = true,  // (Σ_j α_j h_j) M = Σ_j α_j (h_j M)
    };

    auto operator()(const tensor auto& weights_of_positions,
                    const tensor auto& values) const  // [B,T], [B,T,D] -> [B,D]
    {
        return ops::weighted_sum(weights_of_positions, values);
    }

    auto combine_matrix(const tensor auto& weights_of_queries, const tensor auto& values) const
    {
        return ops::bmm(weights_of_queries, values);
    }

    static auto parameters(auto&, auto&&) { return combine::weighted_sum{}; }
};

}  // namespace heed::inline HEED_TARGET::combine
