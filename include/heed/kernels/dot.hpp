// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/simd.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/weighted_sum.hpp>

/// One step of attention by inner products.
///
///     e_j = q · k_j,   α = softmax(e),   c = Σ_j α_j h_j
///
/// over the real positions of each sentence. The padding is not read.
namespace heed::kernels {

template <class T>
struct dot_step {
    std::size_t batch, positions, alignment, width;  // B, T, A, D
    const std::size_t* lengths;                      // [B]
    const T* query;                                  // [B,A]
    const T* keys;                                   // [B,T,A]
    const T* values;                                 // [B,T,D]
};

/// One sentence: n positions of keys and values. weights [n], context [D].
template <class T>
[[gnu::noinline]] void dot_forward_row(std::size_t n, std::size_t alignment, std::size_t width, const T* query,
                                       const T* keys, const T* values, T* weights, T* context)
{
    for (std::size_t j = 0; j < n; ++j) weights[j] = dot(alignment, query, keys + j * alignment);
    detail::softmax_row(n, static_cast<const T*>(weights), weights);
    detail::selected_sum_row(n, width, static_cast<const T*>(weights), values, context);
}

/// Writes weights α [B,T], 0 beyond the length, and context c [B,D].
template <class T>
void dot_forward(const dot_step<T>& step, T* weights, T* context)
{
    const std::size_t P = step.positions, A = step.alignment, D = step.width;
    parallel_for(step.batch, detail::rows_a_shard(P * (A + D)), [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = detail::length_of(step.lengths, b, P);
            T* const w = weights + b * P;
            detail::zero(w + n, P - n);
            dot_forward_row(n, A, D, step.query + b * A, step.keys + b * P * A, step.values + b * P * D, w,
                            context + b * D);
        }
    });
}

/// Backward of the step in the head of this file, from its weights:
///
///     dα_j += dcᵀ h_j,  dh_j += α_j dc                     of c = Σ_j α_j h_j
///     de_j  = α_j (dα_j − Σ_k α_k dα_k)                    of α = softmax(e)
///     dq   += Σ_j de_j k_j,  dk_j += de_j q                of e_j = q · k_j
///
/// d_context [B,D], d_weights [B,T] come in (each may be nullptr); d_query [B,A], d_keys [B,T,A], d_values [B,T,D] are
/// added to (each may be nullptr). A position of weight 0 adds nothing to the gradients of its key and of the query.
template <class T>
void dot_backward(const dot_step<T>& step, const T* weights, const T* d_context, const T* d_weights, T* d_query,
                  T* d_keys, T* d_values)
{
    const std::size_t P = step.positions, A = step.alignment, D = step.width;
    parallel_for(step.batch, detail::rows_a_shard(2 * P * (A + D)),
                 [&](std::size_t begin, std::size_t end, std::size_t) {
                     scratch here;
                     T* const d_alpha = here.take<T>(2 * P);
                     T* const d_e = d_alpha + P;
                     for (std::size_t b = begin; b < end; ++b) {
                         const std::size_t n = detail::length_of(step.lengths, b, P), at = b * P;
                         for (std::size_t j = 0; j < n; ++j) {
                             d_alpha[j] = d_weights == nullptr ? T(0) : d_weights[at + j];
                             if (d_context == nullptr) continue;
                             d_alpha[j] += dot(D, d_context + b * D, step.values + (at + j) * D);
                             if (d_values != nullptr && weights[at + j] != T(0)) {
                                 add_scaled(D, d_values + (at + j) * D, weights[at + j], d_context + b * D);
                             }
                         }
                         detail::zero(d_e, n);
                         detail::softmax_row_backward(n, weights + at, static_cast<const T*>(d_alpha), d_e);
                         for (std::size_t j = 0; j < n; ++j) {
                             if (d_e[j] == T(0)) continue;
                             if (d_query != nullptr) add_scaled(A, d_query + b * A, d_e[j], step.keys + (at + j) * A);
                             if (d_keys != nullptr) add_scaled(A, d_keys + (at + j) * A, d_e[j], step.query + b * A);
                         }
                     }
                 });
}

}  // namespace heed::kernels
