// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/tensor.hpp>
#include <heed/kernels/tiles/bfloat16_products.hpp>
#include <heed/score/scaled_dot.hpp>

namespace heed::inline HEED_TARGET::score {

/// score::scaled_dot whose tiles round the operands of their products to bfloat16 (ops::attend_tiled_in_bfloat16), for
/// attentions and heads of floats:
///
///     e_j = qᵀ k_j / √d                       Vaswani et al. 2017, eq. 1
///
///     attention{score::scaled_dot_in_bfloat16{}, normalize::softmax{}, combine::weighted_sum{}}
///
/// Calls without tiles, such as `step` and few queries (heed::explain reports the path), and tiles with a history or
/// with score::relative compute in float.
struct scaled_dot_in_bfloat16 : scaled_dot {
    using in_tiles = kernels::tiles::inner_product_of_bfloat16;

    static auto parameters(auto& self, auto&&) { return score::scaled_dot_in_bfloat16{{self.scale}}; }
};

}  // namespace heed::inline HEED_TARGET::score
