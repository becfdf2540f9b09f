// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/attention/concepts.hpp>
#include <heed/kernels/tile_rules.hpp>
#include <heed/ops/sparse.hpp>

namespace heed::normalize {

/// Each position decides for itself: weights between 0 and 1 that need not sum to anything.
///
///     α_j = σ(e_j + bias)                     Ramapuram et al. 2025; there bias = −log T
///
/// With the default, bias 0, a score of 0 has weight 1/2 and the context grows with the sentence. Works per dimension,
/// too. Positions beyond a row's length, and scores of -inf, get weight and gradient 0.
/// Deviation: the bias is one number for the whole model, even where the sentences of a batch differ in length.
struct sigmoid {
    static constexpr bool row_by_row = true;  // see attention/at_once.hpp
    double bias = 0;

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::sigmoid_weights(at.visible(scores), at.real, bias);
    }

    kernels::tiles::sigmoid by_tiles() const { return {bias}; }

    static auto parameters(auto& self, auto&&) { return normalize::sigmoid{self.bias}; }
};

}  // namespace heed::normalize
