// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/all_pairs.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/step_kernel.hpp>

namespace heed::inline HEED_TARGET::score {

/// Base class of scores that are inner products of projected queries with keys.
template <class Self>
struct inner_product {
    using kernel_tag = kernels::inner_product_score;
    static constexpr score_traits traits{.weights = weight_kind::per_position};

    auto match(const tensor auto& projected, const tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        return ops::dot_per_position(projected, keys);
    }

    auto score_matrix(const tensor auto& projected, const tensor auto& keys) const  // [B,S,D], [B,T,D] -> [B·S,T]
    {
        return ops::bmm_nt(projected, keys);
    }

    auto operator()(const auto& query, const tensor auto& keys) const  // [B,Q], [B,T,D] -> [B,T]
    {
        return match(over::projected(static_cast<const Self&>(*this), query), keys);
    }

    auto asking(const tensor auto& query) const { return query; }  // the query that tiles compare with keys
};

/// Scores query h against annotation h_j by their inner product.
///
///     e_j = hᵀ h_j                            Luong et al. 2015, section 3.1
///
/// Query and annotations have the same size, Q = D. Not scaled, as in the paper. No parameters.
struct dot : inner_product<dot> {
    static double factor(std::size_t) { return 1; }  // multiplies the inner product of query and key

    static auto parameters(auto&, auto&&) { return score::dot{}; }
};

}  // namespace heed::inline HEED_TARGET::score
