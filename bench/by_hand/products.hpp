// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "parts.hpp"

/// Mechanisms that compare query and annotation by an inner product.
namespace bench::by_hand {

/// weights [B,T], context [B,D] of queries [B,A].
inline void dot(const source& z, const float* query, float* weights, float* context)
{
    for (std::size_t b = 0; b < z.B; ++b) {
        const std::size_t n = z.lengths[b];
        dot_row(z, b, 0, n, query + b * z.A, weights + b * z.T, context + b * z.D);
        std::fill_n(weights + b * z.T + n, z.T - n, 0.0F);
    }
}

inline void scaled_dot(const source& z, const float* query, float* weights, float* context)
{
    heed::scratch here;
    float* const scaled = here.take<float>(z.B * z.A);
    const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(z.A)));
    for (std::size_t i = 0; i < z.B * z.A; ++i) scaled[i] = query[i] * scale;
    dot(z, scaled, weights, context);
}

/// query [B,Q], W [Q,A].
inline void general(const source& z, const float* query, const float* W, float* weights, float* context)
{
    heed::scratch here;
    float* const projected = here.take<float>(z.B * z.A);
    product(z.B, z.Q, z.A, query, W, projected);
    dot(z, projected, weights, context);
}

/// The dot score within `reach` positions of position `step`.
inline void local_dot(const source& z, std::size_t reach, std::size_t step, const float* query, float* weights,
                      float* context)
{
    for (std::size_t b = 0; b < z.B; ++b) {
        const std::size_t n = z.lengths[b];
        const std::size_t center = n == 0 ? 0 : std::min(step, n - 1);
        const std::size_t first = center > reach ? center - reach : 0;
        const std::size_t last = std::min(n, center + reach + 1);
        float* const w = weights + b * z.T;
        std::fill_n(w, first, 0.0F);
        dot_row(z, b, first, last - first, query + b * z.A, w + first, context + b * z.D);
        std::fill_n(w + last, z.T - last, 0.0F);
    }
}

/// General for S queries at once: queries [B,S,Q] -> contexts [B,S,D].
inline void general_of_all(const source& z, std::size_t S, const float* queries, const float* W, float* contexts)
{
    using heed::blas::op;
    heed::scratch here;
    float* const projected = here.take<float>(z.B * S * z.A);
    float* const weights = here.take<float>(S * z.T);
    product(z.B * S, z.Q, z.A, queries, W, projected);
    for (std::size_t b = 0; b < z.B; ++b) {
        heed::blas::gemm(op::plain, op::transposed, S, z.T, z.A, projected + b * S * z.A, z.keys + b * z.T * z.A, 0.0F,
                         weights);
        for (std::size_t s = 0; s < S; ++s) {
            float* const w = weights + s * z.T;
            heed::kernels::detail::softmax_row(z.lengths[b], w, w);
            std::fill_n(w + z.lengths[b], z.T - z.lengths[b], 0.0F);
        }
        product(S, z.T, z.D, weights, z.values + b * z.T * z.D, contexts + b * S * z.D);
    }
}

}  // namespace bench::by_hand
