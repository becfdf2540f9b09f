// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>

#include <heed/gemm/blas.hpp>
#include <heed/simd/simd.hpp>

#include "parts.hpp"

namespace bench::by_hand {

/// One step of additive attention as one function for one thread, written for this mechanism alone: without policies,
/// tensors and calls of heed's kernels. Only the register type and its tanh and exp are heed's, so that the comparison
/// measures structure and not polynomials.
inline void additive_without_kernels(const source& from, const float* query, const float* W, const float* v,
                                     float* projected, float* weights, float* context)
{
    const auto [B, T, Q, A, D, lengths, keys, values] = from;
    using namespace heed::simd;
    constexpr std::size_t L = lanes<float>;
    using heed::blas::op;
    heed::blas::gemm(op::plain, op::plain, B, A, Q, query, W, 0.0F, projected);
    for (std::size_t b = 0; b < B; ++b) {
        const std::size_t n = lengths[b];
        const float* q = projected + b * A;
        float* w = weights + b * T;
        float greatest = -INFINITY;
        for (std::size_t j = 0; j < n; ++j) {
            const float* k = keys + (b * T + j) * A;
            vec<float> e{};
            std::size_t a = 0;
            for (; a + L <= A; a += L) e = fma(load(v + a), tanh(load(q + a) + load(k + a)), e);
            if (a < A) e = fma(load(v + a, A - a), tanh(load(q + a, A - a) + load(k + a, A - a)), e);
            w[j] = sum(e);
            if (w[j] > greatest) greatest = w[j];
        }
        vec<float> sums{};
        std::size_t j = 0;
        for (; j + L <= n; j += L) {
            const vec<float> x = exp(load(w + j) - splat(greatest));
            store(w + j, x);
            sums = sums + x;
        }
        float total = sum(sums);
        for (; j < n; ++j) total += w[j] = std::exp(w[j] - greatest);
        for (j = 0; j < n; ++j) w[j] /= total;
        for (; j < T; ++j) w[j] = 0;

        float* c = context + b * D;
        const float* h = values + b * T * D;
        for (std::size_t d = 0; d < D; ++d) c[d] = 0;
        for (j = 0; j + 4 <= n; j += 4, h += 4 * D) {
            const vec<float> w0 = splat(w[j]), w1 = splat(w[j + 1]), w2 = splat(w[j + 2]), w3 = splat(w[j + 3]);
            std::size_t d = 0;
            for (; d + L <= D; d += L) {
                store(c + d,
                      fma(w3, load(h + 3 * D + d),
                          fma(w2, load(h + 2 * D + d), fma(w1, load(h + D + d), fma(w0, load(h + d), load(c + d))))));
            }
            for (; d < D; ++d)
                c[d] += w[j] * h[d] + w[j + 1] * h[D + d] + w[j + 2] * h[2 * D + d] + w[j + 3] * h[3 * D + d];
        }
        for (; j < n; ++j, h += D) {
            for (std::size_t d = 0; d < D; ++d) c[d] += w[j] * h[d];
        }
    }
}

}  // namespace bench::by_hand
