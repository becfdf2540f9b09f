// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>
#include <heed/kernels/tiles/rules.hpp>
#include <heed/ops/stick_breaking.hpp>

namespace heed::normalize {

/// Each position takes its part of what later ones have left: the last one that fits has the weight.
///
///     α_j = σ(e_j) Π_{k>j} (1 − σ(e_k))               Tan et al. 2025 ("Scaling Stick-Breaking Attention")
///
/// The product runs over the later positions that the query sees. Order is part of it: with causal{} no positions are
/// needed in the words. Weights sum to at most 1; what is left goes nowhere. Works per dimension, too. Deviation: the
/// query's own position takes part, if it is seen; in the paper only those before it.
struct stick_breaking {
    static constexpr bool row_by_row = true;  // see attention/at_once.hpp

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::break_stick(at.visible(scores), at.real);
    }

    kernels::tiles::stick_breaking by_tiles() const { return {}; }

    static auto parameters(auto&, auto&&) { return normalize::stick_breaking{}; }
};

}  // namespace heed::normalize
