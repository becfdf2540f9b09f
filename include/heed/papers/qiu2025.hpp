// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/gated.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/scaled_dot.hpp>

/// Qiu et al. 2025, "Gated Attention for Large Language Models: Non-linearity, Sparsity, and Attention-Sink-Free".
namespace heed::papers::qiu2025 {

/// Multi-head attention whose heads are gated by the query.
///
///     Y' = Y ⊙ σ(X W),  O = Y' W_O            section 2.2, position G1; Y the joined heads
///
/// W [Q,nV] is elementwise, the paper's best; [Q,n] headwise. No bias, as in the paper. The authors' program has W as
/// further columns of W_Q. Its models also normalise each head's queries and keys and turn them with their positions,
/// which is a matter of the score.
template <class Matrix>
auto gated(std::size_t heads, Matrix W_Q, Matrix W_K, Matrix W_V, Matrix W_O, Matrix W)
{
    return multi_head{std::vector(heads, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}),
                      std::move(W_Q),
                      std::move(W_K),
                      std::move(W_V),
                      std::move(W_O),
                      heed::per_head::gated{std::move(W)}};
}

}  // namespace heed::papers::qiu2025
