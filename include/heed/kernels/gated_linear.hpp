// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/compiled.hpp>
#include <heed/simd/simd.hpp>

/// Gated linear units, of one row.
///
///     y = a ⊙ σ(b)                            v = [a; b], N numbers each; Dauphin et al. 2017
namespace heed::inline HEED_TARGET::kernels {

/// y = a ⊙ σ(b).
template <class T>
void gated_linear(std::size_t N, const T* v, T* y)
{
    simd::transform(
        N, y, [](auto value, auto gate) { return value * simd::sigmoid(gate); }, v, v + N);
}

/// y = factor (x + a ⊙ σ(b)).
template <class T>
void gated_residual(std::size_t N, T factor, const T* x, const T* v, T* y)
{
    simd::transform(
        N, y,
        [f = simd::splat(factor)](auto before, auto value, auto gate) {
            return f * simd::fma(value, simd::sigmoid(gate), before);
        },
        x, v, v + N);
}

/// With d = factor ∂y:  ∂a += d ⊙ σ(b),  ∂b += d ⊙ a ⊙ σ(b) (1 - σ(b)), into d_v = [∂a; ∂b].
template <class T>
void gated_linear_backward(std::size_t N, T factor, const T* v, const T* d_y, T* d_v)
{
    using namespace simd;
    const vec<T> f = splat(factor), one = splat(T(1));
    each_register<T>(N, [=](std::size_t at, std::size_t n) {
        const vec<T> gate = sigmoid(load_first(v + N + at, n)), d = f * load_first(d_y + at, n) * gate;
        store_first(d_v + at, load_first(d_v + at, n) + d, n);
        T* const d_b = d_v + N + at;
        store_first(d_b, fma(d * load_first(v + at, n), one - gate, load_first(d_b, n)), n);
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_GATED_LINEAR(X, T) \
    X(T, gated_linear, void, gated_linear, (std::size_t N, const T* v, T* y), (N, v, y)) \
    X(T, gated_residual, void, gated_residual, (std::size_t N, T factor, const T* x, const T* v, T* y), (N, factor, x, v, y)) \
    X(T, gated_linear_backward, void, gated_linear_backward, (std::size_t N, T factor, const T* v, const T* d_y, T* d_v), (N, factor, v, d_y, d_v))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_GATED_LINEAR)

}  // namespace heed::inline HEED_TARGET::kernels
