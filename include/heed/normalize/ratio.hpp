// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/weights_by_sum.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Each score's share of their sum.
///
///     α_j = γ^{n−1−j} e_j / Σ_k γ^{n−1−k} e_k          Katharopoulos et al. 2020, eq. 4; there γ = 1
///
/// For scores that are never negative, such as score::kernel's. γ, the `decay`, lets keys fade with their age n − 1 − j
/// (Sun et al. 2023), where n is how many positions the query may see at most: the row's length, or, with causal{}, up
/// to its own place. If all scores of a row are 0, so are the weights. Works per dimension, too. With score::kernel
/// many queries take linear time: attention/execute/linear.hpp.
struct ratio {
    static constexpr normalizer_traits traits{.rowwise = true, .requires_nonnegative = true, .reads_length = true};
    double decay = 1;

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::weights_by_sum(at.visible(scores), at.real, linear_rule());
    }

    ops::rule_of_sums linear_rule() const { return {decay, true}; }

    static auto parameters(auto& self, auto&&) { return normalize::ratio{self.decay}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
