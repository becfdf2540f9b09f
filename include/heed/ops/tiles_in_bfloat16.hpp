// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/kernels/tiles/bfloat16_products.hpp>
#include <heed/ops/tiles.hpp>

namespace heed::inline HEED_TARGET::ops::detail {

// Contents of heed::compiled.
#define HEED_OPERATIONS_OF_BFLOAT16_TILES(X, T)                                                                        \
    HEED_TILED(X, T, softmax_full_in_bfloat16, tiles::softmax, tiles::unmasked, tiles::inner_product_of_bfloat16)      \
    HEED_TILED(X, T, softmax_causal_in_bfloat16, tiles::softmax, heed::not_behind, tiles::inner_product_of_bfloat16)
HEED_COMPILED_KERNELS_OF_FLOATS(HEED_OPERATIONS_OF_BFLOAT16_TILES)

}  // namespace heed::inline HEED_TARGET::ops::detail

namespace heed::inline HEED_TARGET::ops {

/// attend_tiled whose products round their operands to bfloat16; everything else is in float. For tensors of floats:
///
///     attend_tiled_in_bfloat16(queries, keys, values, real, how)
///     attend_tiled_in_bfloat16_op<unmodified, not_behind>{{}, {}}(queries, keys, values, real, how)
///
/// About twice as fast as attend_tiled on processors with AMX (Intel, from Sapphire Rapids on). With AVX512-BF16
/// alone it is faster only if the processor multiplies bfloat16 faster than floats. On other processors it is slower,
/// and computes the same contexts except for the rounding of sums.
template <class Function = kernels::tiles::unmodified, class Mask = kernels::tiles::unmasked,
          class Rule = kernels::tiles::softmax>
using attend_tiled_in_bfloat16_op = attend_tiled_op<Function, Mask, Rule, kernels::tiles::inner_product_of_bfloat16>;
/// Without a mask and a function of the score, with softmax.
inline constexpr attend_tiled_in_bfloat16_op<> attend_tiled_in_bfloat16{};

}  // namespace heed::inline HEED_TARGET::ops
