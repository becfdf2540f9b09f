// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parallel.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/weighted_sum.hpp>

/// One step of attention by inner products, forward only.
///
///     e_j = q · k_j,   α = softmax(e),   c = Σ_j α_j h_j              SPEC SC3, N1, C1
///
/// over the real positions of each sentence, or over a stretch of them. Nothing outside of it is read.
namespace heed::kernels {

template <class T>
struct dot_step {
    std::size_t batch, positions, alignment, width;  // B, T, A, D
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

/// Writes weights α [B,T], 0 outside of a sentence's stretch, and context c [B,D]. stretch_of(b) is that of sentence b.
template <class T, class Stretch>
void dot_forward(const dot_step<T>& step, Stretch&& stretch_of, T* weights, T* context)
{
    const std::size_t P = step.positions, A = step.alignment, D = step.width;
    parallel_for(step.batch, detail::rows_a_shard(P * (A + D)), [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t b = begin; b < end; ++b) {
            const auto [first, count] = stretch_of(b);
            T* const w = weights + b * P;
            detail::zero(w, first);
            detail::zero(w + first + count, P - first - count);
            dot_forward_row(count, A, D, step.query + b * A, step.keys + (b * P + first) * A,
                            step.values + (b * P + first) * D, w + first, context + b * D);
        }
    });
}

}  // namespace heed::kernels
