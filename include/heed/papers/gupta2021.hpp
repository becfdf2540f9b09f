// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/top_k.hpp>
#include <heed/score/scaled_dot.hpp>

/// Gupta, Dar, Goodman, Ciprut and Berant 2021, "Memory-efficient Transformers via Top-k Attention".
namespace heed::papers::gupta2021 {

/// Attention to the k keys of the greatest scores.
///
///     softmax(top_k(Q Kᵀ / √d)) V
///
/// The same weights as Zhao et al. 2019, "Explicit Sparse Transformer". Deviation: scores equal to the k-th greatest
/// all get a weight.
inline auto top_k(std::size_t k)
{
    return attention{score::scaled_dot{}, normalize::top_k{k}, combine::weighted_sum{}};
}

}  // namespace heed::papers::gupta2021
