// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/ops/sparse.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// The point of the simplex nearest to the scores: weights that sum to 1, most of which are exactly 0.
///
///     α = argmin_{p in simplex} ‖p − e‖²,  α_j = max(e_j − τ, 0)      Martins & Astudillo 2016, eq. 2 and 3
///     ∂α/∂e = diag(s) − s sᵀ / Σ s,  s_j = 1 where α_j > 0, else 0    section 2.5
///
/// τ(e) is exact. Scores less than 1 / T apart all get a weight; a score that leads by 1 gets all of it. For scores per
/// dimension, each dimension has its τ. Positions beyond a row's length, and scores of -inf, get weight and gradient 0.
struct sparsemax {
    static constexpr normalizer_traits traits{.rowwise = true, .shift_invariant = true};

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::sparsemax(at.visible(scores), at.real);
    }

    kernels::tiles::sparse_weights<1> tile_rule() const { return {}; }

    static auto parameters(auto&, auto&&) { return normalize::sparsemax{}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
