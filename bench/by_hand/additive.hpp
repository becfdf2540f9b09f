// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/combine/grouped_sum.hpp>
#include <heed/kernels/additive.hpp>
#include <heed/kernels/coverage.hpp>
#include <heed/kernels/per_dimension.hpp>

#include "parts.hpp"

/// Mechanisms with a hidden layer tanh(W s + U h_j). query [B,Q], W [Q,A], v [A], V [A,D] or [A,G].
namespace bench::by_hand {

inline heed::kernels::additive_step<float> additive_step(const source& z, const float* projected, const float* v)
{
    return {z.B, z.T, z.A, z.D, z.lengths, projected, z.keys, v, z.values};
}

inline void additive(const source& z, const float* query, const float* W, const float* v, float* weights,
                     float* context)
{
    heed::scratch here;
    float* const projected = here.take<float>(z.B * z.A);
    float* const scores = here.take<float>(z.B * z.T);
    product(z.B, z.Q, z.A, query, W, projected);
    heed::kernels::additive_forward(additive_step(z, projected, v), scores, weights, context,
                                    static_cast<float*>(nullptr));
}

/// word [B,E], Y [E,A].
inline void additive_with_word(const source& z, std::size_t E, const float* query, const float* word, const float* W,
                               const float* Y, const float* v, float* weights, float* context)
{
    heed::scratch here;
    float* const projected = here.take<float>(z.B * z.A);
    float* const scores = here.take<float>(z.B * z.T);
    product(z.B, z.Q, z.A, query, W, projected);
    add_product(z.B, E, z.A, word, Y, projected);
    heed::kernels::additive_forward(additive_step(z, projected, v), scores, weights, context,
                                    static_cast<float*>(nullptr));
}

/// history, next [B,T].
inline void temporal(const source& z, const float* query, const float* W, const float* v, const float* history,
                     float* weights, float* context, float* next)
{
    heed::scratch here;
    float* const projected = here.take<float>(z.B * z.A);
    float* const scores = here.take<float>(z.B * z.T);
    product(z.B, z.Q, z.A, query, W, projected);
    auto step = additive_step(z, projected, v);
    step.history = history;
    step.temporal = true;
    heed::kernels::additive_forward(step, scores, weights, context, next);
}

/// weights [B,T,D].
inline void per_dimension(const source& z, const float* query, const float* W, const float* V, float* weights,
                          float* context)
{
    heed::scratch here;
    float* const projected = here.take<float>(z.B * z.A);
    product(z.B, z.Q, z.A, query, W, projected);
    const heed::kernels::per_dimension_step<float> step{z.B, z.T, z.A, z.D, z.lengths, projected, z.keys, V, z.values};
    float* const normalizer = here.take<float>(2 * z.B * z.D);
    heed::kernels::per_dimension_forward(step, weights, context, normalizer);
}

/// tanh(q + k) [B,T,A] in one pass.
inline void hidden_layer(const source& z, const float* projected, const float* keys, float* hidden)
{
    for (std::size_t b = 0; b < z.B; ++b) {
        for (std::size_t i = b * z.T; i < (b + 1) * z.T; ++i) {
            heed::simd::transform(
                z.A, hidden + i * z.A, [](auto k, auto q) { return heed::simd::tanh(k + q); }, keys + i * z.A,
                projected + b * z.A);
        }
    }
}

/// weights [B,T,G].
inline void grouped(const source& z, std::size_t G, const float* query, const float* W, const float* V, float* weights,
                    float* context)
{
    heed::scratch here;
    float* const projected = here.take<float>(z.B * z.A);
    float* const hidden = here.take<float>(z.B * z.T * z.A);
    product(z.B, z.Q, z.A, query, W, projected);
    hidden_layer(z, projected, z.keys, hidden);
    product(z.B * z.T, z.A, G, hidden, V, weights);
    heed::kernels::softmax_per_dimension(z.B, z.T, G, z.lengths, static_cast<const float*>(weights), weights);
    heed::ops::grouped_sum_op::forward<float>({weights, {z.B, z.T, G}}, {z.values, {z.B, z.T, z.D}},
                                              {context, {z.B, z.D}});
}

/// Additive attention with coverage embeddings of N numbers per position, in any step but the first.
struct coverage {
    std::size_t N, E;
    const float* C;          // [N,A]
    const float* by_word;    // [E,3N]
    const float* by_weight;  // [3N]
    const float* by_state;   // [N,3N]
};

/// The state before the step: `before` [B,T,N] and `weights_before` [B,T]; after it: `after`, `weights`.
inline void with_coverage(const source& z, const coverage& c, const float* query, const float* word, const float* W,
                          const float* v, const float* before, const float* weights_before, float* weights,
                          float* context, float* after)
{
    heed::scratch here;
    const std::size_t rows = z.B * z.T, N = c.N;
    float* const projected = here.take<float>(z.B * z.A);
    float* const word_gates = here.take<float>(z.B * 3 * N);
    float* const products = here.take<float>(rows * 3 * N);
    float* const keys = here.take<float>(rows * z.A);
    product(z.B, z.Q, z.A, query, W, projected);
    product(z.B, c.E, 3 * N, word, c.by_word, word_gates);
    product(rows, N, 3 * N, before, c.by_state, products);
    heed::kernels::coverage_update<float>({z.B, z.T, N, word_gates, weights_before, c.by_weight, products, before},
                                          after);
    std::copy_n(z.keys, rows * z.A, keys);
    add_product(rows, N, z.A, after, c.C, keys);
    float* const scores = here.take<float>(rows);
    auto step = additive_step(z, projected, v);
    step.keys = keys;
    heed::kernels::additive_forward(step, scores, weights, context, static_cast<float*>(nullptr));
}

/// For S queries at once: queries [B,S,Q] -> contexts [B,S,D].
inline void additive_of_all(const source& z, std::size_t S, const float* queries, const float* W, const float* v,
                            float* contexts)
{
    heed::scratch here;
    float* const projected = here.take<float>(z.B * S * z.A);
    float* const by_step = here.take<float>(z.B * S * z.A);
    float* const scores = here.take<float>(z.B * z.T);
    float* const weights = here.take<float>(z.B * z.T);
    float* const context = here.take<float>(z.B * z.D);
    product(z.B * S, z.Q, z.A, queries, W, projected);
    swap_axes(z.B, S, z.A, projected, by_step);
    for (std::size_t s = 0; s < S; ++s) {
        heed::kernels::additive_forward(additive_step(z, by_step + s * z.B * z.A, v), scores, weights, context,
                                        static_cast<float*>(nullptr));
        for (std::size_t b = 0; b < z.B; ++b) std::copy_n(context + b * z.D, z.D, contexts + (b * S + s) * z.D);
    }
}

}  // namespace bench::by_hand
