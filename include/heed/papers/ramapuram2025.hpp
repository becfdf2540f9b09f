// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/sigmoid.hpp>
#include <heed/score/scaled_dot.hpp>

/// Ramapuram et al. 2025, "Theory, Analysis, and Best Practices for Sigmoid Self-Attention".
namespace heed::papers::ramapuram2025 {

/// Attention by sigmoids, for sequences of about `length` positions.
///
///     σ(Q Kᵀ / √d + b) V,  b = −log n           section 2
///
/// Deviation: the bias is one number for the whole model, even where the sentences of a batch differ in length.
inline auto sigmoid(std::size_t length)
{
    return attention{score::scaled_dot{}, normalize::sigmoid{-std::log(static_cast<double>(length))},
                     combine::weighted_sum{}};
}

}  // namespace heed::papers::ramapuram2025
