// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/sampling.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// All weight on the position with the maximum score; on the first such position in case of a tie.
///
///     α_j = 1 if j = min argmax_k e_k, else 0
///
/// No published source. Also suits a trained `hard`. Also works per dimension. The scores get no gradient; a row with
/// no score above -inf gets weights 0.
struct argmax {
    static constexpr normalizer_traits traits{.shift_invariant = true, .differentiable = false};

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::argmax(at.visible(scores), at.real);
    }

    static auto parameters(auto&, auto&&) { return normalize::argmax{}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
