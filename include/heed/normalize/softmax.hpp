// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/softmax.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Converts scores to positive weights that sum to 1.
///
///     α_j = exp(e_j) / Σ_k exp(e_k)           Bahdanau et al. 2015, eq. 6
///     α_j^d = exp(e_j^d) / Σ_k exp(e_k^d)     Choi et al. 2018, eq. 8, for scores per dimension
///
/// Beyond a row's length weights are exactly 0. A row without positions gets weights 0, and no gradient.
struct softmax {
    using kernel_tag = kernels::softmax_of_row;
    static constexpr normalizer_traits traits{.rowwise = true, .shift_invariant = true};

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::softmax(at.visible(scores), at.real);
    }

    kernels::tiles::softmax tile_rule() const { return {}; }

    static auto parameters(auto&, auto&&) { return normalize::softmax{}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
