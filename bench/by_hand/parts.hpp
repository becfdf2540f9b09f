// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include <heed/core/arena.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/kernels/softmax.hpp>

/// Hand-written mechanisms: each is one function over plain memory, with heed's kernels and BLAS but without policies
/// and tensors. Temporaries come from heed::scratch; results are written to the caller's memory.
namespace bench::by_hand {

/// The sizes of one step and the inputs that all mechanisms share.
struct source {
    std::size_t B, T, Q, A, D;
    const std::size_t* lengths;  // [B]
    const float* keys;           // [B,T,A]
    const float* values;         // [B,T,D]
};

/// y = x W: x [rows,K], W [K,N].
inline void product(std::size_t rows, std::size_t K, std::size_t N, const float* x, const float* W, float* y)
{
    using heed::blas::op;
    heed::blas::gemm(op::plain, op::plain, rows, N, K, x, W, 0.0F, y);
}

/// y += x W.
inline void add_product(std::size_t rows, std::size_t K, std::size_t N, const float* x, const float* W, float* y)
{
    using heed::blas::op;
    heed::blas::gemm(op::plain, op::plain, rows, N, K, x, W, 1.0F, y);
}

/// α = softmax(q · k_j), c = Σ_j α_j h_j for `count` positions of one sentence, from position `first` on.
inline void dot_row(const source& z, std::size_t b, std::size_t first, std::size_t count, const float* query,
                    float* weights, float* context)
{
    const float* keys = z.keys + (b * z.T + first) * z.A;
    heed::kernels::dot_forward_row(count, z.A, z.D, query, keys, z.values + (b * z.T + first) * z.D, weights, context);
}

/// [B,S,N] -> [S,B,N].
inline void swap_axes(std::size_t B, std::size_t S, std::size_t N, const float* x, float* y)
{
    for (std::size_t s = 0; s < S; ++s) {
        for (std::size_t b = 0; b < B; ++b, y += N) std::copy_n(x + (b * S + s) * N, N, y);
    }
}

}  // namespace bench::by_hand
