// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <heed/heads/differential.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/papers/vaswani2017.hpp>

/// Ye et al. 2024, "Differential Transformer".
namespace heed::papers::ye2024 {

/// Differential attention of n heads.
///
///     head_h = (softmax(Q1 K1ᵀ / √d) − λ softmax(Q2 K2ᵀ / √d)) V           eq. 1-3
///     MultiHead = Concat(…, (1 − λ_init) norm(head_h), …) W_O
///
/// W_Q and W_K [D,2nd] = [Q1 of head 1, Q2 of head 1, …], W_V [D,nV], W_O [nV,O]; in the paper V = 2d. `of_heads` holds
/// the vectors of λ, the gain of the norm, and λ_init: per_head::differential::init_of_layer(l).
///
/// Deviation: no positions. In the paper's models queries and keys are turned with theirs, which is a multi_head of
/// su2021::rotary() heads with the same `of_heads`.
template <class Matrix, class Vector>
auto differential(std::size_t n, Matrix W_Q, Matrix W_K, Matrix W_V, Matrix W_O,
                  per_head::differential<Vector> of_heads)
{
    return multi_head{std::vector(2 * n, vaswani2017::scaled_dot()),
                      std::move(W_Q),
                      std::move(W_K),
                      std::move(W_V),
                      std::move(W_O),
                      std::move(of_heads)};
}

}  // namespace heed::papers::ye2024
