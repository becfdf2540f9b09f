// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>
#include <heed/attention/inner_product.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/products.hpp>

namespace heed::score {

/// How well query h matches annotation h_j, by their inner product.
///
///     e_j = hᵀ h_j                            Luong et al. 2015, section 3.1
///
/// Query and annotations have the same size, Q = D. Not scaled, as in the paper. No parameters.
struct dot {
    using in_kernels = kernels::inner_product_score;
    static constexpr weight_kind weights = weight_kind::per_position;

    auto operator()(const tensor auto& query, const tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        return ops::dot_each(query, keys);
    }

    auto match_all(const tensor auto& queries, const tensor auto& keys) const  // [B,S,D], [B,T,D] -> [B·S,T]
    {
        return ops::dot_all(queries, keys);
    }

    auto asking(const tensor auto& query) const { return query; }  // what tiles compare with keys

    static auto parameters(auto&, auto&&) { return score::dot{}; }
};

}  // namespace heed::score
