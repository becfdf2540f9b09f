// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/scaled_dot.hpp>

/// Vaswani et al. 2017, "Attention Is All You Need" (Transformer).
namespace heed::papers::vaswani2017 {

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
/// W_Q = [W_Q^1, …, W_Q^n] and so on. No bias, as in the paper. No deviation.
template <class Matrix>
auto multi_head(std::size_t heads, Matrix W_Q, Matrix W_K, Matrix W_V, Matrix W_O)  // [Q,nK], [D,nK], [D,nV], [nV,O]
{
    return heed::multi_head{std::vector(heads, vaswani2017::scaled_dot()), std::move(W_Q), std::move(W_K),
                            std::move(W_V), std::move(W_O)};
}

/// The base model's sizes: d_k = d_v = d_model / h.
struct sizes {
    std::size_t model = 512;  // d_model: of queries, annotations and results
    std::size_t heads = 8;    // h
};

/// The same with new parameters. Throws heed::error unless the number of heads divides the model's width.
template <class T>
auto make_multi_head(random_source& random, const sizes& n = {})
{
    if (n.heads == 0 || n.model % n.heads != 0) {
        throw error("vaswani2017::make_multi_head: " + std::to_string(n.heads) + " heads for a width of " +
                    std::to_string(n.model) + "; the number of heads must divide it");
    }
    auto W_Q = nn::glorot<T>(random, n.model, n.model);
    auto W_K = nn::glorot<T>(random, n.model, n.model);
    auto W_V = nn::glorot<T>(random, n.model, n.model);
    return vaswani2017::multi_head(n.heads, std::move(W_Q), std::move(W_K), std::move(W_V),
                                   nn::glorot<T>(random, n.model, n.model));
}

}  // namespace heed::papers::vaswani2017
