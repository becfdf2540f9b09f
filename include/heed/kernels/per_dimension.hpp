// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>

#include <heed/core/compiled.hpp>
#include <heed/core/parallel.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/gemm/weights.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/simd/simd.hpp>

/// One step of attention with one weight per dimension of each annotation.
///
///     e_t = tanh(q + k_t) V,   α^d = softmax over t of e^d,   c = Σ_t α_t ⊙ h_t         Choi et al. 2018, eq. 7-9
///
/// q = W s and k_t = U h_t are already projected. The product with V is nearly all of the work: the real positions of
/// whole sentences are packed into blocks of about a thousand rows; softmax and sum read their scores from the cache.
/// The backward recomputes tanh and scores block by block: nothing of size [B,T,D] is stored.
///
/// Padding is neither read nor multiplied. BLAS may choose its kernel by the number of rows: a sentence computed alone
/// and in a batch agrees up to rounding.
namespace heed::inline HEED_TARGET::kernels {

template <class T>
struct per_dimension_step {
    std::size_t batch, positions, alignment, width;  // B, T, A, D
    const std::size_t* lengths;                      // [B], or nullptr: all T positions of every row
    const T* query;                                  // [B,A], already projected
    const T* keys;                                   // [B,T,A]
    const T* V;                                      // [A,D]
    const T* values;                                 // [B,T,D]
};

namespace detail {

/// With far fewer rows BLAS packs V too often; with more, they do not fit in the cache. (600 to 2000 perform equally on
/// Zen 5.)
inline constexpr std::size_t block_rows = 1000;

/// The first packed row of sentence b in a block that starts with sentence b0.
template <class T>
inline std::size_t packed_row(const per_dimension_step<T>& step, std::size_t b0, std::size_t b)
{
    std::size_t row = 0;
    for (; b0 < b; ++b0) row += length_of(step.lengths, b0, step.positions);
    return row;
}

/// f(b0, b1, rows) over blocks of whole sentences, of nearly equal numbers of real positions.
template <class T, class F>
inline void each_block(const per_dimension_step<T>& step, F&& f)
{
    const std::size_t total = packed_row(step, 0, step.batch);
    const std::size_t blocks = total < 2 * block_rows ? 1 : total / block_rows;
    const std::size_t enough = (total + blocks - 1) / blocks;
    std::size_t begin = 0, rows = 0;
    for (std::size_t b = 0; b < step.batch; ++b) {
        rows += length_of(step.lengths, b, step.positions);
        if (rows < enough && b + 1 < step.batch) continue;
        f(begin, b + 1, rows);
        begin = b + 1;
        rows = 0;
    }
}

/// t = tanh(q + k) [rows,A], the real positions of sentences [b0, b1) one after the other.
template <class T>
inline void pack_tanh(const per_dimension_step<T>& step, std::size_t b0, std::size_t b1, std::size_t rows, T* t)
{
    using namespace simd;
    const std::size_t A = step.alignment;
    parallel_for(rows, rows_a_shard(A), [&](std::size_t begin, std::size_t end, std::size_t) {
        std::size_t first = 0;
        for (std::size_t b = b0; b < b1 && first < end; ++b) {
            const std::size_t n = length_of(step.lengths, b, step.positions);
            for (std::size_t j = begin > first ? begin - first : 0; j < n && first + j < end; ++j) {
                transform(
                    A, t + (first + j) * A, [](auto q, auto k) { return tanh(q + k); }, step.query + b * A,
                    step.keys + (b * step.positions + j) * A);
            }
            first += n;
        }
    });
}

/// f(b, first packed row, length, d0, d1) over the sentences of a block and chunks of their columns. A chunk is small
/// enough that `streams` arrays of its columns stay in the second-level cache from one pass to the next.
template <class T, class F>
inline void each_piece(const per_dimension_step<T>& step, std::size_t b0, std::size_t b1, std::size_t streams, F&& f)
{
    constexpr std::size_t cache = 512 * 1024, least = 64;
    const std::size_t D = step.width;
    std::size_t columns = cache / (sizeof(T) * streams * (step.positions + 1));
    const std::size_t share = D * (b1 - b0) / (4 * threads());  // small batches: at least a few chunks for each thread
    if (threads() > 1 && columns > share) columns = share;
    columns = columns < least ? least : columns - columns % least;
    const std::size_t pieces = (D + columns - 1) / columns;
    const std::size_t cost = step.positions * (columns < D ? columns : D) * streams;
    parallel_for((b1 - b0) * pieces, rows_a_shard(cost), [&](std::size_t begin, std::size_t end, std::size_t) {
        const simd::without_subnormals quick;
        std::size_t b = b0 + begin / pieces, row = packed_row(step, b0, b);
        for (std::size_t i = begin; i < end; ++i) {
            if (b != b0 + i / pieces) row += length_of(step.lengths, b++, step.positions);
            const std::size_t d0 = i % pieces * columns, d1 = d0 + columns < D ? d0 + columns : D;
            f(b, row, length_of(step.lengths, b, step.positions), d0, d1);
        }
    });
}

/// Columns [d0, d1) of one sentence: max, 1 / Σ exp and context, and the weights if requested.
template <class T>
inline void per_dimension_piece(std::size_t n, std::size_t width, const T* scores, const T* values, std::size_t d0,
                                std::size_t d1, T* top, T* scale, T* context, T* weights)
{
    using namespace simd;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const std::size_t columns = d1 - d0;
    scratch here;
    T* const sums = filled(here, 2 * columns, T(0));  // Σ exp, followed by Σ exp ⊙ h, from d0 on
    each_column<T>(d0, d1, [&](std::size_t d, auto, auto put) { put(top + d, splat(lowest)); });
    const auto highest = [&](auto rows, std::size_t t) {
        each_column<T>(d0, d1, [&](std::size_t d, auto get, auto put) {
            vec<T> m = get(top + d);
            unrolled<rows>([&](auto r) { m = max(m, get(scores + (t + r) * width + d)); });
            put(top + d, m);
        });
    };
    const auto summed = [&](auto rows, std::size_t t, T* to) {
        const bool more = t + 2 * rows <= n;  // these values come from main memory: prefetch the next ones
        each_column<T>(d0, d1, [&](std::size_t d, auto get, auto put) {
            const vec<T> m = get(top + d);
            T *const into_sum = to + (d - d0), *const into_context = into_sum + columns;
            vec<T> c = get(into_context), part[rows()];
            unrolled<rows>([&](auto r) {
                if (more) __builtin_prefetch(values + (t + rows + r) * width + d);
                part[r] = exp(get(scores + (t + r) * width + d) - m);
                c = fma(part[r], get(values + (t + r) * width + d), c);
            });
            if constexpr (rows() == 4) part[0] = (part[0] + part[1]) + (part[2] + part[3]);
            put(into_sum, get(into_sum) + part[0]);
            put(into_context, c);
        });
    };
    in_groups<4>(0, n, highest);
    // A column with only -inf: exp(-inf - 0), not exp(-inf - -inf).
    each_column<T>(d0, d1, [&](std::size_t d, auto get, auto put) {
        const vec<T> m = get(top + d);
        put(top + d, select(m == splat(lowest), vec<T>{}, m));
    });
    add_in_blocks(n, 2 * columns, sums, [&](std::size_t first, std::size_t last, T* to) {
        in_groups<4>(first, last, [&](auto rows, std::size_t t) { summed(rows, t, to); });
    });
    each_column<T>(d0, d1, [&](std::size_t d, auto get, auto put) {
        const vec<T> sum = get(sums + (d - d0));
        const vec<T> factor = select(sum == splat(T(0)), vec<T>{}, splat(T(1)) / sum);
        put(scale + d, factor);
        put(context + d, get(sums + columns + (d - d0)) * factor);
    });
    if (weights == nullptr) return;
    for (std::size_t t = 0; t < n; ++t) {
        each_column<T>(d0, d1, [&](std::size_t d, auto get, auto put) {
            const vec<T> e = get(scores + t * width + d);
            put(weights + t * width + d, select(e == splat(lowest), vec<T>{}, exp(e - get(top + d)) * get(scale + d)));
        });
    }
}

}  // namespace detail

/// The forward step: see the top of this file.
///
/// Writes context c [B,D]; weights α [B,T,D] (0 beyond the length), unless nullptr; and normalizer [B,2,D], which the
/// backward needs: max_t e_t and 1 / Σ_t exp(e_t - max). A single number, max + log Σ, is not enough: added to a score
/// of 1e4, the logarithm is lost in float. A sentence without positions gets context, weights and normalizer 0.
template <class T>
void per_dimension_forward(const per_dimension_step<T>& step, T* weights, T* context, T* normalizer)
{
    const std::size_t A = step.alignment, D = step.width, P = step.positions;
    detail::each_block(step, [&](std::size_t b0, std::size_t b1, std::size_t rows) {
        scratch here;
        T *const t = here.take<T>(rows * A), *const scores = here.take<T>(rows * D);
        detail::pack_tanh(step, b0, b1, rows, t);
        times_weights(rows, D, A, t, step.V, false, scores);
        detail::each_piece(
            step, b0, b1, 1, [&](std::size_t b, std::size_t row, std::size_t n, std::size_t d0, std::size_t d1) {
                T* const w = detail::behind(weights, b * P * D);
                detail::per_dimension_piece(n, D, scores + row * D, step.values + b * P * D, d0, d1,
                                            normalizer + 2 * b * D, normalizer + (2 * b + 1) * D, context + b * D, w);
                for (std::size_t j = n; w != nullptr && j < P; ++j) detail::zero(w + j * D + d0, d1 - d0);
            });
    });
}

/// Backward of the step at the top of this file, from its normalizer; with t = tanh(q + k) and e recomputed:
///
///     dα_t += dc ⊙ h_t,   dh_t += α_t ⊙ dc               of c = Σ_t α_t ⊙ h_t
///     de_t  = α_t ⊙ (dα_t - Σ_k α_k ⊙ dα_k)              of α^d = softmax over t of e^d
///     dV   += Σ_t tᵀ de_t,   dt = de_t Vᵀ                of e = t V
///     dk_t += dt ⊙ (1 - t²),   dq += Σ_t dk_t            of t = tanh(q + k_t)
///
/// d_context [B,D] and d_weights [B,T,D] are inputs (each may be nullptr); d_query [B,A], d_keys [B,T,A], d_V [A,D],
/// d_values [B,T,D] are added to (each may be nullptr).
template <class T>
void per_dimension_backward(const per_dimension_step<T>& step, const T* normalizer, const T* d_context,
                            const T* d_weights, T* d_query, T* d_keys, T* d_V, T* d_values)
{
    using namespace simd;
    if (d_context == nullptr && d_weights == nullptr) return;
    const std::size_t A = step.alignment, D = step.width, P = step.positions;
    scratch memory;
    T* const means = memory.take<T>(step.batch * D);
    detail::each_block(step, [&](std::size_t b0, std::size_t b1, std::size_t rows) {
        scratch here;
        T *const t = here.take<T>(rows * A), *const d_t = here.take<T>(rows * A),
                 *const scores = here.take<T>(rows * D);
        detail::pack_tanh(step, b0, b1, rows, t);
        blas::gemm(blas::op::plain, blas::op::plain, rows, D, A, t, step.V, T(0), scores);
        detail::each_piece(
            step, b0, b1, 2, [&](std::size_t b, std::size_t row, std::size_t n, std::size_t d0, std::size_t d1) {
                const std::size_t first = b * P * D;
                const T *const top = normalizer + 2 * b * D, *const scale = top + D, *const h = step.values + first,
                               *const dc = detail::behind(d_context, b * D),
                               *const g = detail::behind(d_weights, first);
                T *const e = scores + row * D, *const dh = detail::behind(d_values, first), *const mean = means + b * D;
                // dα = dc ⊙ h + the incoming gradient of the weights
                const auto of_weight = [=](std::size_t at, std::size_t d, auto get) {
                    const vec<T> of = g == nullptr ? vec<T>{} : get(g + at);
                    return dc == nullptr ? of : fma(get(dc + d), get(h + at), of);
                };
                detail::each_column<T>(d0, d1, [&](std::size_t d, auto, auto put) { put(mean + d, vec<T>{}); });
                add_in_blocks(n, d1 - d0, mean + d0, [&](std::size_t begin, std::size_t end, T* to) {
                    for (std::size_t j = begin; j < end; ++j) {
                        detail::each_column<T>(d0, d1, [&](std::size_t d, auto get, auto put) {
                            const std::size_t at = j * D + d;
                            const vec<T> weight = exp(get(e + at) - get(top + d)) * get(scale + d);
                            put(e + at, weight);
                            put(to + (d - d0), fma(weight, of_weight(at, d, get), get(to + (d - d0))));
                        });
                    }
                });
                for (std::size_t j = 0; j < n; ++j) {
                    detail::each_column<T>(d0, d1, [&](std::size_t d, auto get, auto put) {
                        const std::size_t at = j * D + d;
                        const vec<T> weight = get(e + at);
                        put(e + at, weight * (of_weight(at, d, get) - get(mean + d)));
                        if (dh != nullptr && dc != nullptr) put(dh + at, fma(weight, get(dc + d), get(dh + at)));
                    });
                }
            });
        if (d_V != nullptr) blas::gemm(blas::op::transposed, blas::op::plain, A, D, rows, t, scores, T(1), d_V);
        if (d_query == nullptr && d_keys == nullptr) return;
        blas::gemm(blas::op::plain, blas::op::transposed, rows, A, D, scores, step.V, T(0), d_t);
        detail::each_row_or_column<T>(b1 - b0, A, P, [&](std::size_t i, std::size_t a0, std::size_t a1) {
            const std::size_t b = b0 + i, n = detail::length_of(step.lengths, b, P);
            const std::size_t first = detail::packed_row(step, b0, b) * A;
            const auto positions = [&](std::size_t j0, std::size_t j1, T* d_q) {
                for (std::size_t j = j0; j < j1; ++j) {
                    detail::each_column<T>(a0, a1, [&](std::size_t a, auto get, auto put) {
                        const vec<T> y = get(t + first + j * A + a), g = get(d_t + first + j * A + a);
                        const vec<T> d = fma(-(g * y), y, g);
                        if (d_keys != nullptr) {
                            T* const dk = d_keys + (b * P + j) * A + a;
                            put(dk, get(dk) + d);
                        }
                        if (d_q != nullptr) put(d_q + (a - a0), get(d_q + (a - a0)) + d);
                    });
                }
            };
            if (d_query == nullptr) return positions(0, n, nullptr);
            add_in_blocks(n, a1 - a0, d_query + b * A + a0, positions);
        });
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_PER_DIMENSION(X, T) \
    X(T, per_dimension_forward, void, per_dimension_forward, (const per_dimension_step<T>& step, T* weights, T* context, T* normalizer), (step, weights, context, normalizer)) \
    X(T, per_dimension_backward, void, per_dimension_backward, (const per_dimension_step<T>& step, const T* normalizer, const T* d_context, const T* d_weights, T* d_query, T* d_keys, T* d_V, T* d_values), (step, normalizer, d_context, d_weights, d_query, d_keys, d_V, d_values))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_PER_DIMENSION)

}  // namespace heed::inline HEED_TARGET::kernels
