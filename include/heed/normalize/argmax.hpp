// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ops/sampling.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// All weight on the position with the greatest score; on the first such position if several tie.
///
///     α_j = 1 if j = min argmax_k e_k, else 0
///
/// For a trained `hard`, too. Works per dimension. The scores get no gradient; a row without any score above -inf gets
/// weights 0.
struct argmax {
    static constexpr normalizer_traits traits{.shift_invariant = true, .differentiable = false};

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::argmax(at.visible(scores), at.real);
    }

    static auto parameters(auto&, auto&&) { return normalize::argmax{}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
