// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/weights_by_sum.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Takes scores as weights, discounted by the age of their keys.
///
///     α_j = γ^{n−1−j} e_j                     Sun et al. 2023, eq. 5, for the last query; there each head has its γ
///
/// n is the maximum number of visible positions: the row's length or, with causal{}, the positions up to the query's
/// own. Weights may be negative and need not sum to 1: the paper's layer norm after the context controls its size. Also
/// works per dimension. With inner products many queries take linear time: attention/execute/linear.hpp.
struct retention {
    static constexpr normalizer_traits traits{.rowwise = true, .reads_length = true};
    double decay = 1;

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::weights_by_sum(at.visible(scores), at.real, linear_rule());
    }

    ops::rule_of_sums linear_rule() const { return {decay, false}; }

    static auto parameters(auto& self, auto&&) { return normalize::retention{self.decay}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
