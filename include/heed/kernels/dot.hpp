// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
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

/// Positions whose values are summed before their sum is added to the context, so that threads may share a long
/// sentence and the sum is always the same.
inline constexpr std::size_t positions_of_part = 1024;

/// e_j = q · k_j of the positions [begin, end) of a sentence. `ahead`: the keys are in no cache.
template <class T>
[[gnu::noinline]] void scores_of_keys(std::size_t begin, std::size_t end, std::size_t alignment, const T* query,
                                      const T* keys, T* scores, bool ahead)
{
    for (std::size_t j = begin; j < end; ++j) {
        if (ahead) simd::fetch_ahead(keys + j * alignment, alignment);
        scores[j] = dot(alignment, query, keys + j * alignment);
    }
}

/// One sentence: n positions of keys and values. weights [n], context [D].
template <class T>
[[gnu::noinline]] void dot_forward_row(std::size_t n, std::size_t alignment, std::size_t width, const T* query,
                                       const T* keys, const T* values, T* weights, T* context)
{
    constexpr std::size_t part = positions_of_part;
    const bool ahead = simd::worth_fetching<T>(n * (alignment + width));
    scores_of_keys(0, n, alignment, query, keys, weights, ahead);
    detail::softmax_row(n, static_cast<const T*>(weights), weights);
    detail::selected_sum_row(std::min(n, part), width, static_cast<const T*>(weights), values, context, ahead);
    if (n <= part) return;
    scratch here;
    T* const more = here.take<T>(width);
    for (std::size_t j = part; j < n; j += part) {
        detail::selected_sum_row(std::min(n - j, part), width, static_cast<const T*>(weights + j), values + j * width,
                                 more, ahead);
        add(width, context, static_cast<const T*>(more));
    }
}

/// The same by several threads.
template <class T>
void dot_forward_shared_row(std::size_t n, std::size_t alignment, std::size_t width, const T* query, const T* keys,
                            const T* values, T* weights, T* context)
{
    constexpr std::size_t part = positions_of_part;
    const std::size_t parts = (n + part - 1) / part;
    const bool ahead = simd::worth_fetching<T>(n * (alignment + width));
    scratch here;
    T* const tops = here.take<T>(parts);
    T* const sums = here.take<T>(parts * width);
    parallel_for(parts, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        scores_of_keys(begin * part, std::min(n, end * part), alignment, query, keys, weights, ahead);
        for (std::size_t p = begin; p < end; ++p)
            tops[p] = detail::max_of(std::min(n - p * part, part), static_cast<const T*>(weights + p * part));
    });
    // What one thread does alone is what has to be summed in one order: what softmax_row does, but for its beginning
    // and its end.
    const T top = detail::max_of(parts, static_cast<const T*>(tops));
    const simd::vec<T> scale = simd::splat(detail::exponentials(n, static_cast<const T*>(weights), top, weights));
    parallel_for(parts, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t p = begin; p < end; ++p) {
            const std::size_t j = p * part, count = std::min(n - j, part);
            T* const w = weights + j;
            simd::transform(
                count, w, [scale](simd::vec<T> e) { return e * scale; }, static_cast<const T*>(w));
            detail::selected_sum_row(count, width, static_cast<const T*>(w), values + j * width, sums + p * width,
                                     ahead);
        }
    });
    detail::zero(context, width);
    for (std::size_t p = 0; p < parts; ++p) add(width, context, static_cast<const T*>(sums + p * width));
}

/// Writes weights α [B,T], 0 beyond the length, and context c [B,D].
template <class T>
void dot_forward(const dot_step<T>& step, T* weights, T* context)
{
    const std::size_t P = step.positions, A = step.alignment, D = step.width;
    if (step.batch < threads() && P > 2 * positions_of_part) {
        for (std::size_t b = 0; b < step.batch; ++b) {
            const std::size_t n = detail::length_of(step.lengths, b, P);
            detail::zero(weights + b * P + n, P - n);
            dot_forward_shared_row(n, A, D, step.query + b * A, step.keys + b * P * A, step.values + b * P * D,
                                   weights + b * P, context + b * D);
        }
        return;
    }
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

namespace detail {

/// dα_j = g_j + dcᵀ h_j (written) and dh_j += α_j dc for all n positions of a sentence; nothing is added where α_j is
/// 0. One row after the other: with several side by side, memory would be read more slowly.
template <class T>
inline void selected_sum_row_backward(std::size_t n, std::size_t width, const T* weights, const T* values,
                                      const T* d_context, const T* g, T* d_weights, T* d_values)
{
    if (d_context == nullptr) d_values = nullptr;
    for (std::size_t j = 0; j < n; ++j) {
        T* const into = d_values == nullptr || weights[j] == T(0) ? nullptr : d_values + j * width;
        weighted_sum_row_backward(0, 1, width, weights + j, values + j * width, d_context,
                                  g == nullptr ? nullptr : g + j, d_weights + j, into);
    }
}

/// dq += Σ_j de_j k_j and dk_j += de_j q for all n positions of a sentence, except those whose de_j is 0.
template <class T>
inline void inner_products_row_backward(std::size_t n, std::size_t width, const T* query, const T* keys,
                                        const T* d_scores, T* d_query, T* d_keys)
{
    using namespace simd;
    for (std::size_t j = 0; j < n; ++j) {
        if (d_scores[j] == T(0)) continue;
        const T* const k = keys + j * width;
        T* const dk = d_keys == nullptr ? nullptr : d_keys + j * width;
        const vec<T> de = splat(d_scores[j]);
        each_column<T>(0, width, [&](std::size_t a, auto get, auto put) {
            if (d_query != nullptr) put(d_query + a, fma(de, get(k + a), get(d_query + a)));
            if (dk != nullptr) put(dk + a, fma(de, get(query + a), get(dk + a)));
        });
    }
}

}  // namespace detail

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
    const auto rows = [&](std::size_t begin, std::size_t end, std::size_t) {
        scratch here;
        T* const d_alpha = here.take<T>(P);
        T* const d_scores = here.take<T>((end - begin) * P);
        detail::zero(d_scores, (end - begin) * P);
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = detail::length_of(step.lengths, b, P), at = b * P;
            detail::selected_sum_row_backward(n, D, weights + at, step.values + at * D,
                                              d_context == nullptr ? nullptr : d_context + b * D,
                                              d_weights == nullptr ? nullptr : d_weights + at, d_alpha,
                                              d_values == nullptr ? nullptr : d_values + at * D);
            detail::softmax_row_backward(n, weights + at, static_cast<const T*>(d_alpha), d_scores + (b - begin) * P);
        }
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = detail::length_of(step.lengths, b, P), at = b * P;
            detail::inner_products_row_backward(
                n, A, step.query + b * A, step.keys + at * A, static_cast<const T*>(d_scores + (b - begin) * P),
                d_query == nullptr ? nullptr : d_query + b * A, d_keys == nullptr ? nullptr : d_keys + at * A);
        }
    };
    parallel_for(step.batch, detail::rows_a_shard(2 * P * (A + D)), rows);
}

}  // namespace heed::kernels
