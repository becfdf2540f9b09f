// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/ops/sparse.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Halfway between softmax and sparsemax: weights that sum to 1, are exactly 0 for low scores, and are smooth.
///
///     α = argmax_{p in simplex} pᵀe + H(p),  H(p) = 4/3 Σ_j (p_j − p_j^{3/2})
///     α_j = max(e_j / 2 − τ, 0)²                      Peters, Niculae & Martins 2019, section 3, α = 1.5
///     ∂α/∂e = diag(s) − s sᵀ / Σ s,  s_j = √α_j
///
/// τ(e) is exact. A score that leads by 2 gets all of the weight. For scores per dimension, each dimension has its τ.
/// Positions beyond a row's length, and scores of -inf, get weight and gradient 0. No deviation.
struct entmax15 {
    static constexpr normalizer_traits traits{.rowwise = true, .shift_invariant = true};

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::entmax15(at.visible(scores), at.real);
    }

    kernels::tiles::sparse_weights<2> tile_rule() const { return {}; }

    static auto parameters(auto&, auto&&) { return normalize::entmax15{}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
