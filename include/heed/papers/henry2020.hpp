// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/cosine.hpp>

/// Henry, Dachapally, Pawar and Chen 2020, "Query-Key Normalization for Transformers".
namespace heed::papers::henry2020 {

/// Attention of queries and keys of length 1, with a scale that learns.
///
///     softmax(g · Q̂ K̂ᵀ) V
///
/// g [1]; the paper begins with log2(L² − L), L a length that most sentences do not exceed.
template <class Vector>
auto normalised(Vector g)
{
    return attention{score::cosine{std::move(g)}, normalize::softmax{}, combine::weighted_sum{}};
}

}  // namespace heed::papers::henry2020
