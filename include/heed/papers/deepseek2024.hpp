// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/heads/latent_heads.hpp>

/// DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model".
namespace heed::papers::deepseek2024 {

/// Multi-head latent attention with decoupled rotary positions, section 2.1, eq. 9-19.
///
///     softmax_j((q_i^C · W_UK c_j + q_i^R · k_j^R) / √(K + R)),  c_j = x_j W_DKV,  k_j^R = RoPE(x_j W_KR)
///
/// The arguments are those of heed::latent_heads. Queries are the compressed ones, c^Q, where they are compressed.
template <class Matrix>
auto latent(std::size_t heads, Matrix W_Q, Matrix W_QR, Matrix W_DKV, Matrix W_KR, Matrix W_UK, Matrix W_UV, Matrix W_O)
{
    return latent_heads{heads,           std::move(W_Q),  std::move(W_QR), std::move(W_DKV),
                        std::move(W_KR), std::move(W_UK), std::move(W_UV), std::move(W_O)};
}

}  // namespace heed::papers::deepseek2024
