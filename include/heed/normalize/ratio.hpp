// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/weights_by_sum.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Each score divided by the sum of the scores.
///
///     α_j = γ^{n−1−j} e_j / Σ_k γ^{n−1−k} e_k          Katharopoulos et al. 2020, eq. 4; there γ = 1
///
/// For nonnegative scores, such as score::kernel's. γ, the `decay`, discounts keys by their age n − 1 − j (Sun et al.
/// 2023), where n is the maximum number of visible positions: the row's length or, with causal{}, the positions up to
/// the query's own. If all scores of a row are 0, so are the weights. Also works per dimension. With score::kernel many
/// queries take linear time: attention/execute/linear.hpp.
struct ratio {
    static constexpr normalizer_traits traits{.rowwise = true, .requires_nonnegative = true, .reads_length = true};
    double decay = 1;

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::weights_by_sum(at.visible(scores), at.real, linear_rule());
    }

    ops::rule_of_sums linear_rule() const { return {decay, true}; }

    static auto parameters(auto& self, auto&&) { return normalize::ratio{self.decay}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
