// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/compiled.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// The gated recurrent unit of coverage embeddings, without its matrix products.
///
///     z  = σ(y_z + α w_z + u_z),  r = σ(y_r + α w_r + u_r)        u_z|u_r|u_c = c U
///     c̃  = tanh(y_c + α w_c + r ⊙ u_c)
///     c' = z ⊙ c + (1 - z) ⊙ c̃                Mi et al. 2016 as printed by Sankaran et al. 2016, §4.1 ·
///
/// Unlike in the unit of kernels/recurrent.hpp, z keeps the *old* state, and r acts on the product instead of before
/// it.
/// The backward recomputes z, r and c̃: saving them would cost [B,T,3N] per step.
namespace heed::inline HEED_TARGET::kernels {

template <class T>
struct coverage_step {
    std::size_t batch, positions, width;  // B, T, N
    const T* word;                        // [B,3N] y_z|y_r|y_c, the same for all positions of a row
    const T* weights;                     // [B,T] α
    const T* by_weight;                   // [3N] w_z|w_r|w_c
    const T* products;                    // [B,T,3N] u_z|u_r|u_c
    const T* coverage;                    // [B,T,N] c
};

/// Destinations of the gradients; nullptr if not required.
template <class T>
struct coverage_adjoints {
    T* word;
    T* weights;
    T* by_weight;
    T* products;
    T* coverage;
};

namespace detail {

/// z|r|c̃ of one position, the i-th of the batch.
template <class T>
void coverage_gates(const coverage_step<T>& step, std::size_t i, T* gates)
{
    using namespace simd;
    const std::size_t N = step.width;
    const T *const word = step.word + i / step.positions * 3 * N, *const product = step.products + i * 3 * N;
    const vec<T> a = splat<T>(step.weights[i]);
    transform(
        2 * N, gates, [a](auto y, auto w, auto u) { return sigmoid(fma(a, w, y + u)); }, word, step.by_weight, product);
    transform(
        N, gates + 2 * N, [a](auto y, auto w, auto u, auto r) { return tanh(fma(a, w, fma(r, u, y))); }, word + 2 * N,
        step.by_weight + 2 * N, product + 2 * N, gates + N);
}

}  // namespace detail

/// c' into next [B,T,N].
template <class T>
void coverage_update(const coverage_step<T>& step, T* next)
{
    using namespace simd;
    const std::size_t N = step.width;
    detail::each_row(step.batch, detail::rows_a_shard(step.positions * N, std::size_t{1} << 14), [&](std::size_t b) {
        scratch here;
        T* const z = here.take<T>(3 * N);
        for (std::size_t i = b * step.positions; i < (b + 1) * step.positions; ++i) {
            detail::coverage_gates(step, i, z);
            transform(
                N, next + i * N,
                [](auto keep, auto fresh, auto old) {
                    return fma(keep, old, (1 - keep) * fresh);  // exactly old and fresh at 1 and 0
                },
                z, z + 2 * N, step.coverage + i * N);
        }
    });
}

/// Backward of c' = z ⊙ c + (1 - z) ⊙ c̃, where a_z|a_r|a_c are the arguments of the gates' functions:
///
///     da_z = dc' ⊙ (c - c̃) ⊙ z (1 - z),   da_c = dc' ⊙ (1 - z) ⊙ (1 - c̃²),   da_r = da_c ⊙ u_c ⊙ r (1 - r)
///     dc += dc' ⊙ z,   du += da_z|da_r|da_c ⊙ r,   dy += Σ_j da,   dα_j += w · da,   dw += Σ_j α_j da
///
/// Each row of the batch sums its own dw; these are added in the order of the rows.
template <class T>
void coverage_update_backward(const coverage_step<T>& step, const T* d_next, const coverage_adjoints<T>& into)
{
    using namespace simd;
    const std::size_t N = step.width;
    const vec<T> one = splat<T>(1);
    scratch memory;
    T* const of_rows = detail::filled(memory, step.batch * 6 * N, T(0));  // [B,6N] Σ_j da|Σ_j α_j da
    detail::each_row(step.batch, detail::rows_a_shard(step.positions * N, std::size_t{1} << 13), [&](std::size_t b) {
        scratch here;
        T *const z = here.take<T>(6 * N), *const r = z + N, *const fresh = r + N, *const da = fresh + N;
        T* const of_row = of_rows + b * 6 * N;
        const auto each = [&](std::size_t i, T* to) {
            const T *u = step.products + i * 3 * N, *old = step.coverage + i * N, *dy = d_next + i * N;
            detail::coverage_gates(step, i, z);
            transform(
                N, da,
                [one](auto d, auto gate, auto c, auto candidate) {
                    return d * (c - candidate) * (gate * (one - gate));
                },
                dy, z, old, fresh);
            transform(
                N, da + 2 * N,
                [one](auto d, auto gate, auto candidate) { return d * (one - gate) * fma(-candidate, candidate, one); },
                dy, z, fresh);
            transform(
                N, da + N, [one](auto d, auto product, auto gate) { return d * product * (gate * (one - gate)); },
                da + 2 * N, u + 2 * N, r);
            if (into.coverage != nullptr) add_product(N, into.coverage + i * N, dy, z);
            if (into.products != nullptr) {
                T* const du = into.products + i * 3 * N;
                add(2 * N, du, da);
                add_product(N, du + 2 * N, da + 2 * N, r);
            }
            add(3 * N, to, da);
            if (into.weights != nullptr) into.weights[i] += dot(3 * N, step.by_weight, da);
            add_scaled(3 * N, to + 3 * N, step.weights[i], da);
        };
        add_in_blocks(step.positions, 6 * N, of_row, [&](std::size_t first, std::size_t last, T* to) {
            for (std::size_t j = first; j < last; ++j) each(b * step.positions + j, to);
        });
        if (into.word != nullptr) add(3 * N, into.word + b * 3 * N, of_row);
    });
    if (into.by_weight == nullptr) return;
    add_in_blocks(step.batch, 3 * N, into.by_weight, [&](std::size_t first, std::size_t last, T* to) {
        for (std::size_t b = first; b < last; ++b) add(3 * N, to, of_rows + b * 6 * N + 3 * N);
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_COVERAGE(X, T) \
    X(T, coverage_update, void, coverage_update, (const coverage_step<T>& step, T* next), (step, next)) \
    X(T, coverage_update_backward, void, coverage_update_backward, (const coverage_step<T>& step, const T* d_next, const coverage_adjoints<T>& into), (step, d_next, into))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_COVERAGE)

}  // namespace heed::inline HEED_TARGET::kernels
