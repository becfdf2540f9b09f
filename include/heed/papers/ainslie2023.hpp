// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/papers/vaswani2017.hpp>

/// Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints".
namespace heed::papers::ainslie2023 {

/// Grouped-query attention: the Transformer's heads, of which several in a row read the same keys and values.
///
///     head_i = softmax(Q W_Q^i (K W_K^g)ᵀ / √d) V W_V^g, g = ⌊i G / n⌋          section 2.2
///
/// W_K [D,G·K] and W_V [D,G·V] have columns for G groups, G a divisor of `heads`. One group is multi-query attention
/// (Shazeer 2019).
template <class Matrix>
auto grouped(std::size_t heads, Matrix W_Q, Matrix W_K, Matrix W_V, Matrix W_O)
{
    return vaswani2017::multi_head(heads, std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O));
}

}  // namespace heed::papers::ainslie2023
