// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

#include <heed/ops/all_pairs.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/step_kernel.hpp>

namespace heed::inline HEED_TARGET::score {

/// Scores query q against key k_j by their inner product, scaled so that it does not grow with their width.
///
///     e_j = qᵀ k_j / √d                       Vaswani et al. 2017, eq. 1
///
/// d is the width of the query and the keys, Q = D; the query is scaled, not the scores. A `scale` other than 0
/// replaces 1/√d. No parameters.
struct scaled_dot {
    double scale = 0;  // 0: 1/√d

    using kernel_tag = kernels::inner_product_score;
    static constexpr score_traits traits{.weights = weight_kind::per_position};

    auto operator()(const tensor auto& query, const tensor auto& keys) const  // [B,D], [B,T,D] -> [B,T]
    {
        return ops::dot_per_position(asking(query), keys);
    }

    auto score_matrix(const tensor auto& queries, const tensor auto& keys) const  // [B,S,D], [B,T,D] -> [B·S,T]
    {
        return ops::bmm_nt(ops::scale(queries, factor(shape_of(queries)[2])), keys);
    }

    /// The query that tiles compare with keys: q / √d.
    auto asking(const tensor auto& query) const { return ops::scale(query, factor(shape_of(query).back())); }

    static auto parameters(auto& self, auto&&) { return score::scaled_dot{self.scale}; }

    /// The factor by which the query is multiplied.
    double factor(std::size_t d) const { return scale != 0 || d == 0 ? scale : 1 / std::sqrt(static_cast<double>(d)); }
};

}  // namespace heed::inline HEED_TARGET::score
