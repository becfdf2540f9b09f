// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>
#include <heed/attention/inner_product.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/products.hpp>

namespace heed::score {

/// How well query h matches annotation h_j, by a bilinear form.
///
///     e_j = hᵀ W h_j                          Luong et al. 2015, section 3.1
///
/// hᵀ W is computed once per step, on the query's side: T times cheaper than W h_j for every position.
/// With W the identity this is `dot`. No deviation.
template <class Matrix>
struct general {
    Matrix W;  // [Q,D]

    using in_kernels = kernels::inner_product_score;
    static constexpr weight_kind weights = weight_kind::per_position;

    auto project(const tensor auto& query) const  // [B,Q] -> [B,D]
    {
        return ops::linear(query, W);
    }

    auto match(const tensor auto& projected, const tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        return ops::dot_each(projected, keys);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys) const  // [B,Q], [B,T,D] -> [B,T]
    {
        return match(project(query), keys);
    }

    auto match_all(const tensor auto& projected, const tensor auto& keys) const  // [B,S,D], [B,T,D] -> [B·S,T]
    {
        return ops::dot_all(projected, keys);
    }

    auto asking(const tensor auto& query) const { return query; }  // what tiles compare with keys

    static auto parameters(auto& self, auto&& visit) { return score::general{visit("W", self.W)}; }
};

template <class Matrix>
general(Matrix) -> general<Matrix>;

}  // namespace heed::score
