// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Multi-head attention of the Transformer and its variants: vaswani2017, shazeer2020, henry2020, ainslie2023,
/// deepseek2024, ye2024, qiu2025.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/differential.hpp>
#include <heed/heads/gated.hpp>
#include <heed/heads/latent_heads.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/heads/talking_heads.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/cosine.hpp>
#include <heed/score/scaled_dot.hpp>

/// Vaswani et al. 2017, "Attention Is All You Need" (Transformer).
namespace heed::inline HEED_TARGET::papers::vaswani2017 {

/// Scaled dot-product attention.
///
///     Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V             eq. 1
///
/// For a decoder whose queries must not see later positions: `attend(memory, queries, causal{})`.
inline auto scaled_dot() { return attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}; }

/// Multi-head attention.
///
///     head_i = Attention(Q W_Q^i, K W_K^i, V W_V^i)           section 3.2.2
///     MultiHead(Q, K, V) = Concat(head_1, …, head_n) W_O
///
/// W_Q = [W_Q^1, …, W_Q^n] and so on. No bias. No deviation.
auto multi_head(std::size_t heads, auto W_Q, auto W_K, auto W_V, auto W_O)  // [Q,nK], [D,nK], [D,nV], [nV,O]
{
    return heed::multi_head{std::vector(heads, vaswani2017::scaled_dot()), std::move(W_Q), std::move(W_K),
                            std::move(W_V), std::move(W_O)};
}

/// The sizes of the base model: d_k = d_v = d_model / h.
struct sizes {
    std::size_t model = 512;  // d_model: of queries, annotations and results
    std::size_t heads = 8;    // h
};

/// As above, with new parameters. Throws heed::error unless the number of heads divides the model's width.
template <class T>
auto make_multi_head(random_source& random, const sizes& n = {})
{
    if (n.heads == 0 || n.model % n.heads != 0) {
        throw error("vaswani2017::make_multi_head: " + counted(n.heads, "head") + " for a width of " +
                    std::to_string(n.model) + "; the number of heads must divide it");
    }
    const auto square = [&] { return nn::glorot<T>(random, n.model, n.model); };
    return heed::multi_head{std::vector(n.heads, vaswani2017::scaled_dot()), square(), square(), square(), square()};
}

}  // namespace heed::inline HEED_TARGET::papers::vaswani2017

/// Shazeer, Lan, Cheng, Ding and Hou 2020, "Talking-Heads Attention".
namespace heed::inline HEED_TARGET::papers::shazeer2020 {

/// The Transformer's heads, with scores and weights mixed over heads; in the paper, the numbers of heads may differ.
///
///     L_g = Σ_h P_l[h,g] Q_h K_hᵀ / √d,  U_v = Σ_g P_w[g,v] softmax(L_g)           section 4
///
/// P_l and P_w are [n,n], the others as in vaswani2017::multi_head.
auto talking_heads(std::size_t heads, auto W_Q, auto W_K, auto W_V, auto W_O, auto P_l, auto P_w)
{
    return heed::talking_heads{
        vaswani2017::multi_head(heads, std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O)), std::move(P_l),
        std::move(P_w)};
}

}  // namespace heed::inline HEED_TARGET::papers::shazeer2020

/// Henry, Dachapally, Pawar and Chen 2020, "Query-Key Normalization for Transformers".
namespace heed::inline HEED_TARGET::papers::henry2020 {

/// Attention of queries and keys of length 1, with a learned scale g [1].
///
///     C = softmax(g · Q̂ K̂ᵀ) V
///
/// The paper initializes g = log2(L² − L), where L is a length that most sentences do not exceed.
auto normalized(auto g)
{
    return attention{score::cosine{std::move(g)}, normalize::softmax{}, combine::weighted_sum{}};
}

}  // namespace heed::inline HEED_TARGET::papers::henry2020

/// Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints".
namespace heed::inline HEED_TARGET::papers::ainslie2023 {

/// Grouped-query attention: groups of consecutive heads share keys and values.
///
///     head_i = softmax(Q W_Q^i (K W_K^g)ᵀ / √d) V W_V^g, g = ⌊i G / n⌋          section 2.2
///
/// W_K [D,G·K] and W_V [D,G·V] have columns for G groups, a divisor of `heads`; G = 1 is multi-query (Shazeer 2019).
auto grouped(std::size_t heads, auto W_Q, auto W_K, auto W_V, auto W_O)
{
    return vaswani2017::multi_head(heads, std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O));
}

}  // namespace heed::inline HEED_TARGET::papers::ainslie2023

/// DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model".
namespace heed::inline HEED_TARGET::papers::deepseek2024 {

/// Multi-head latent attention with decoupled rotary positions, section 2.1, eq. 9-19.
///
///     softmax_j((q_i^C · W_UK c_j + q_i^R · k_j^R) / √(K + R)),  c_j = x_j W_DKV,  k_j^R = RoPE(x_j W_KR)
///
/// The arguments are those of heed::latent_heads: W_Q [Q,n·K], W_QR [Q,n·R], W_DKV [D,C], W_KR [D,R], W_UK [n·K,C],
/// W_UV [n·C,V], W_O [n·V,O]. If queries are compressed, pass the compressed ones, c^Q.
auto latent(std::size_t heads, auto W_Q, auto W_QR, auto W_DKV, auto W_KR, auto W_UK, auto W_UV, auto W_O)
{
    return latent_heads{heads,           std::move(W_Q),  std::move(W_QR), std::move(W_DKV),
                        std::move(W_KR), std::move(W_UK), std::move(W_UV), std::move(W_O)};
}

}  // namespace heed::inline HEED_TARGET::papers::deepseek2024

/// Ye et al. 2024, "Differential Transformer".
namespace heed::inline HEED_TARGET::papers::ye2024 {

/// Differential attention of n heads.
///
///     head_h = (softmax(Q1 K1ᵀ / √d) − λ softmax(Q2 K2ᵀ / √d)) V           eq. 1-3
///     MultiHead = Concat(…, (1 − λ_init) norm(head_h), …) W_O
///
/// W_Q and W_K [D,2nd] = [Q1 of head 1, Q2 of head 1, …], W_V [D,nV], W_O [nV,O]; in the paper, V = 2d. `of_heads` has
/// the vectors of λ, the gain of the norm, and λ_init: per_head::differential::init_of_layer(l). Deviation: no position
/// encodings. The paper rotates queries and keys by position: use a multi_head of su2021::rotary().
template <class Vector>
auto differential(std::size_t n, auto W_Q, auto W_K, auto W_V, auto W_O, per_head::differential<Vector> of_heads)
{
    std::vector heads(2 * n, vaswani2017::scaled_dot());
    return multi_head{std::move(heads), std::move(W_Q), std::move(W_K),
                      std::move(W_V),   std::move(W_O), std::move(of_heads)};
}

}  // namespace heed::inline HEED_TARGET::papers::ye2024

/// Qiu et al. 2025, "Gated Attention for Large Language Models: Non-linearity, Sparsity, and Attention-Sink-Free".
namespace heed::inline HEED_TARGET::papers::qiu2025 {

/// Multi-head attention with heads that are gated by the query.
///
///     Y' = Y ⊙ σ(X W),  O = Y' W_O            section 2.2, position G1; Y: the concatenated heads
///
/// W [Q,nV] gates elementwise, the paper's best; [Q,n] gates headwise. No bias. In the authors' code, W is additional
/// columns of W_Q; the code also normalizes queries and keys and rotates them by position, which is part of the score
/// here.
auto gated(std::size_t heads, auto W_Q, auto W_K, auto W_V, auto W_O, auto W)
{
    std::vector all(heads, vaswani2017::scaled_dot());
    return multi_head{std::move(all), std::move(W_Q), std::move(W_K),
                      std::move(W_V), std::move(W_O), heed::per_head::gated{std::move(W)}};
}

}  // namespace heed::inline HEED_TARGET::papers::qiu2025
