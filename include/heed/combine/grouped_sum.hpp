// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>
#include <heed/ops/groups.hpp>

namespace heed::combine {

/// The dimensions of a group share their weights; each group's part of the context is the expectation under them.
///
///     c^d = Σ_j α_j^{g(d)} h_j^d,  g(d) = dG/D rounded down       ours, see score::additive_grouped
///
/// A group is D/G neighbouring dimensions; G must divide D. G = 1 is `weighted_sum`, G = D is `elementwise_sum`, and
/// G = 2 gives the two directions of a bidirectional encoder weights of their own.
struct grouped_sum {
    static constexpr weight_kind weights = weight_kind::per_group;

    auto operator()(const tensor auto& weights_of_groups,
                    const tensor auto& values) const  // [B,T,G], [B,T,D] -> [B,D]
    {
        return ops::grouped_sum(weights_of_groups, values);
    }

    static auto parameters(auto&, auto&&) { return combine::grouped_sum{}; }
};

}  // namespace heed::combine
