// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include <heed/core/compiled.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/simd/simd.hpp>

/// One step of additive attention, with or without temporal modulation, for a batch of sentences.
///
///     e_j = vᵀ tanh(q + k_j)                     q = W s and k_j = U h_j, already projected
///     u_j = e_j - L_j, or e_j where L_j = -inf   temporal; else u = e
///     α   = softmax(u),  c = Σ_j α_j h_j
///     L'_j = log(exp L_j + exp e_j)              temporal: the next step's history
///
/// tanh(q + k) [B,T,A] is never stored: the backward recomputes it, which costs less than memory traffic.
/// A sentence's result depends only on its own positions, bit for bit, for any batch and any number of threads.
namespace heed::inline HEED_TARGET::kernels {

template <class T>
struct additive_step {
    std::size_t batch, positions, alignment, width;  // B, T, A, D
    const std::size_t* lengths;                      // [B], or nullptr: all T positions of every row
    const T* query;                                  // [B,A], already projected
    const T* keys;                                   // [B,T,A]
    const T* v;                                      // [A]
    const T* values;                                 // [B,T,D]
    const T* history = nullptr;                      // [B,T] L, log domain; nullptr: none, L = -inf
    bool temporal = false;
};

namespace detail {

/// vᵀ tanh(q + k)
template <class T>
HEED_SIMD_INLINE T additive_score(std::size_t width, const T* query, const T* k, const T* v)
{
    using namespace simd;
    const auto term = [&](std::size_t a, vec<T> sum) {
        return fma(load(v + a), tanh(load(query + a) + load(k + a)), sum);
    };
    vec<T> e{}, f{};  // two, as a processor looks only so far ahead in one long chain
    std::size_t a = 0;
    for (; a + 2 * lanes<T> <= width; a += 2 * lanes<T>) {
        e = term(a, e);
        f = term(a + lanes<T>, f);
    }
    if (a + lanes<T> <= width) {
        e = term(a, e);
        a += lanes<T>;
    }
    if (a < width) {
        const std::size_t count = width - a;  // v = 0 past the end, tanh(0 + 0) = 0: adds nothing
        f = fma(load(v + a, count), tanh(load(query + a, count) + load(k + a, count)), f);
    }
    return sum(e + f);
}

/// e_j for the positions [j0, j1) of sentence b. `far`: prefetches the values. Not inlined: a step calls it in two
/// places.
template <class T>
[[gnu::noinline]] void additive_scores(const additive_step<T>& step, std::size_t b, std::size_t j0, std::size_t j1,
                                       bool far, T* scores)
{
    constexpr std::size_t line = 64 / sizeof(T);
    const std::size_t A = step.alignment, D = step.width;
    for (std::size_t at = b * step.positions + j0; at < b * step.positions + j1; ++at) {
        for (std::size_t i = 0; far && i < D; i += line) __builtin_prefetch(step.values + at * D + i, 0, 2);
        scores[at] = additive_score(A, step.query + b * A, step.keys + at * A, step.v);
    }
}

/// Do the values of a batch come from main memory, while those of one sentence fit in a core's cache?
template <class T>
inline bool values_are_far(const additive_step<T>& step)
{
    constexpr std::size_t shared_cache = std::size_t{16} << 20, own_cache = std::size_t{1} << 19;
    const std::size_t sentence = step.positions * step.width * sizeof(T);
    return sentence <= own_cache &&
           step.batch * (sentence + step.positions * step.alignment * sizeof(T)) > shared_cache;
}

/// α = softmax(e) of one sentence; 0 beyond its length. Not inlined: a step calls it in two places.
template <class T>
[[gnu::noinline]] void softmax_of_scores(const additive_step<T>& step, std::size_t b, T* scores, T* weights)
{
    const std::size_t n = length_of(step.lengths, b, step.positions), at = b * step.positions;
    zero(scores + at + n, step.positions - n);
    zero(weights + at + n, step.positions - n);
    softmax_row(n, scores + at, weights + at);
}

/// α = softmax(u) of one sentence, and L' = log(exp L + exp e).
template <class T>
inline void additive_weights_row(const additive_step<T>& step, std::size_t b, T* scores, T* weights, T* next_history)
{
    using namespace simd;
    constexpr T none = -std::numeric_limits<T>::infinity();
    if (!step.temporal) return softmax_of_scores(step, b, scores, weights);
    const std::size_t n = length_of(step.lengths, b, step.positions), at = b * step.positions;
    const T* e = scores + at;
    T* w = weights + at;
    zero(scores + at + n, step.positions - n);
    zero(w + n, step.positions - n);
    const T* L = behind(step.history, at);
    if (next_history != nullptr) {
        T* const next = next_history + at;
        std::fill(std::copy_n(e, n, next), next + step.positions, none);
        if (L != nullptr)
            transform(
                n, next,
                [=](auto l, auto x) {
                    const vec<T> low = min(x, l), high = max(l, x);  // in this order, NaN in either argument shows up
                    return select(l == splat(none), x, high + log1p(exp(low - high)));  // no exponent is above 0
                },
                L, e);
    }
    if (L == nullptr) return softmax_row(n, e, w);
    transform(
        n, w, [=](auto l, auto x) { return select(l == splat(none), x, x - l); }, L, e);
    softmax_row(n, w, w);
}

/// The forward step; `weigh(b)` computes the weights of sentence b from its scores.
template <class T>
void additive_context(const additive_step<T>& step, T* scores, const T* weights, T* context, const auto& weigh)
{
    const std::size_t T_ = step.positions, A = step.alignment, D = step.width;
    const bool far = values_are_far(step);
    if (step.batch >= 4 * threads()) {
        return each_row(step.batch, rows_a_shard(T_ * (A + D)), [&](std::size_t b) {
            const std::size_t n = length_of(step.lengths, b, T_);
            additive_scores(step, b, 0, n, far, scores);
            weigh(b);
            weighted_sum_row(n, D, weights + b * T_, step.values + b * T_ * D, context + b * D, 0, D);
        });
    }
    // Few sentences: threads share their positions, then the columns of their values.
    each_position(step.batch, T_, step.lengths, A, [&](std::size_t b, std::size_t j0, std::size_t j1) {
        additive_scores(step, b, j0, j1, false, scores);
    });
    for (std::size_t b = 0; b < step.batch; ++b) weigh(b);
    weighted_sum(step.batch, T_, D, step.lengths, weights, step.values, context);
}

}  // namespace detail

/// Backward of e_j = vᵀ tanh(q + k_j), with t_j = tanh(q + k_j) recomputed:
/// dk_j += de_j v ⊙ (1 - t_j²),  dq += Σ_j de_j v ⊙ (1 - t_j²),  dv += Σ_bj de_j t_j.
template <class T>
void additive_scores_backward(const additive_step<T>& step, const T* d_scores, T* d_query, T* d_keys, T* d_v)
{
    using namespace simd;
    if (d_query == nullptr && d_keys == nullptr && d_v == nullptr) return;
    const std::size_t batch = step.batch, positions = step.positions, A = step.alignment;
    // A gradient that is not required is written to an unused row.
    scratch memory;
    T *const no_query = detail::filled(memory, 3 * A, T(0)), *const no_v = no_query + A, *const no_keys = no_v + A;
    // Threads share columns, not sentences: no two threads add to the same dv, and the sum has a fixed order.
    parallel_for(
        A, detail::rows_a_shard(batch * positions),
        [=](std::size_t a0, std::size_t a1, std::size_t) {
            const simd::without_subnormals quick;
            const std::size_t columns = a1 - a0;
            scratch here;
            T *const part_of_v = here.take<T>(columns), *const lost_of_v = detail::filled(here, columns, T(0));
            const bool blocks = batch * positions > numbers_of_block;  // of the sum over all sentences
            T* const into_v = d_v == nullptr ? no_v : d_v;
            for (std::size_t b = 0; b < batch; ++b) {
                const std::size_t n = detail::length_of(step.lengths, b, positions), at = b * positions;
                // The positions [first, last); dq and dv start at column a0.
                const auto block = [&](std::size_t first, std::size_t last, T* dq) {
                    T* const dv = blocks ? part_of_v : into_v + a0;
                    if (blocks) detail::zero(part_of_v, columns);
                    in_groups<4>(first, last, [&](auto rows, std::size_t j) {
                        const T *const query = step.query + b * A, *const keys = step.keys + (at + j) * A;
                        T* const dk = d_keys == nullptr ? no_keys : d_keys + (at + j) * A;
                        const std::size_t stride = d_keys == nullptr ? 0 : A;
                        vec<T> de[rows];
                        for (std::size_t r = 0; r < rows; ++r) de[r] = splat(d_scores[at + j + r]);
                        detail::each_column<T>(a0, a1, [&](std::size_t a, auto get, auto put) {
                            const vec<T> q = get(query + a), w = get(step.v + a);
                            vec<T> to_q = get(dq + (a - a0)), to_v = get(dv + (a - a0));
                            unrolled<rows>([&](auto r) {
                                const vec<T> t = tanh(q + get(keys + r * A + a)), g = de[r] * w;
                                const vec<T> d = fma(-(g * t), t, g);
                                to_v = fma(de[r], t, to_v);
                                to_q = to_q + d;
                                put(dk + r * stride + a, get(dk + r * stride + a) + d);
                            });
                            put(dq + (a - a0), to_q);
                            put(dv + (a - a0), to_v);
                        });
                    });
                    if (blocks) detail::add_and_keep(columns, into_v + a0, lost_of_v, part_of_v);
                };
                add_in_blocks(n, columns, (d_query == nullptr ? no_query : d_query + b * A) + a0, block);
            }
            if (blocks) detail::add_lost(columns, into_v + a0, lost_of_v);
        },
        simd::lanes<T>);
}

/// The forward step: see the top of this file. Writes scores e [B,T] and weights α [B,T] (0 beyond the length), context
/// c [B,D], and next_history L' [B,T] (-inf beyond the length; temporal only, may be nullptr).
template <class T>
void additive_forward(const additive_step<T>& step, T* scores, T* weights, T* context, T* next_history)
{
    detail::additive_context(step, scores, weights, context, [&](std::size_t b) {
        detail::additive_weights_row(step, b, scores, weights, next_history);
    });
}

/// The forward step without temporal modulation: `additive_forward` without the code for it.
template <class T>
void additive_softmax_forward(const additive_step<T>& step, T* scores, T* weights, T* context)
{
    detail::additive_context(step, scores, weights, context,
                             [&](std::size_t b) { detail::softmax_of_scores(step, b, scores, weights); });
}

/// Backward of the step at the top of this file, from its scores e and weights α:
///
///     dα_j += dcᵀ h_j,  dh_j += α_j dc                     of c = Σ_j α_j h_j
///     du_j  = α_j (dα_j - Σ_k α_k dα_k)                    of α = softmax(u)
///     de_j  = du_j + exp(e_j - L'_j) dL'_j                 of u = e - L and L' = log(exp L + exp e);
///     dL_j += exp(L_j - L'_j) dL'_j - du_j                 where L_j = -inf: 0, u does not contain it
///     dq, dk, dv                                           of e: see additive_scores_backward
///
/// d_context [B,D], d_weights [B,T], d_next_history [B,T] are inputs (each may be nullptr); d_query [B,A], d_keys
/// [B,T,A], d_v [A], d_values [B,T,D], d_history [B,T] are added to (each may be nullptr).
template <class T>
void additive_backward(const additive_step<T>& step, const T* scores, const T* weights, const T* d_context,
                       const T* d_weights, const T* d_next_history, T* d_query, T* d_keys, T* d_v, T* d_values,
                       T* d_history)
{
    using namespace simd;
    constexpr T none = -std::numeric_limits<T>::infinity();
    const std::size_t T_ = step.positions, D = step.width;
    scratch here;
    T* const d_scores = here.take<T>(step.batch * T_);
    detail::each_position(step.batch, T_, step.lengths, 2 * D, [&](std::size_t b, std::size_t j0, std::size_t j1) {
        const std::size_t at = b * T_;
        detail::weighted_sum_row_backward(j0, j1, D, weights + at, step.values + at * D,
                                          detail::behind(d_context, b * D), detail::behind(d_weights, at),
                                          d_scores + at, detail::behind(d_values, at * D));
    });
    for (std::size_t b = 0; b < step.batch; ++b) {
        const std::size_t n = detail::length_of(step.lengths, b, T_), at = b * T_;
        const T *e = scores + at, *w = weights + at;
        T* du = d_scores + at;
        // In place: dα is no longer needed.
        detail::long_sum<T> products;
        detail::each_column<T>(0, n, [&](std::size_t j, auto get, auto) { products.add(get(w + j) * get(du + j)); });
        const vec<T> mean = splat(products.get());
        transform(
            n, du, [mean](auto a, auto g) { return a * (g - mean); }, w, du);
        if (!step.temporal) continue;
        const T* L = detail::behind(step.history, at);
        const T* dn = detail::behind(d_next_history, at);
        if (L == nullptr) {  // L' = e
            if (dn != nullptr)
                transform(
                    n, du, [](auto g, auto d) { return g + d; }, du, dn);
            continue;
        }
        detail::each_column<T>(0, n, [&](std::size_t j, auto get, auto put) {
            const vec<T> l = get(L + j), x = get(e + j), g = get(du + j);
            const vec<T> d = dn == nullptr ? vec<T>{} : get(dn + j);
            const vec<T> low = min(x, l), high = max(l, x);
            // exp(L - L') and exp(e - L') as shares of the two: no difference of large numbers is computed twice.
            const vec<T> small = exp(low - high), share = splat(T(1)) / (small + T(1));
            const auto first = l == splat(none);
            const auto history_is_greater = l > x;
            const vec<T> of_history = select(first, vec<T>{}, select(history_is_greater, share, small * share));
            const vec<T> of_score = select(first, splat(T(1)), select(history_is_greater, small * share, share));
            put(du + j, fma(of_score, d, g));
            if (d_history != nullptr) {
                T* dl = d_history + at + j;
                put(dl, get(dl) + select(first, vec<T>{}, fma(of_history, d, -g)));
            }
        });
    }
    additive_scores_backward<T>(step, d_scores, d_query, d_keys, d_v);
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_ADDITIVE(X, T) \
    X(T, additive_scores_backward, void, additive_scores_backward, (const additive_step<T>& step, const T* d_scores, T* d_query, T* d_keys, T* d_v), (step, d_scores, d_query, d_keys, d_v)) \
    X(T, additive_forward, void, additive_forward, (const additive_step<T>& step, T* scores, T* weights, T* context, T* next_history), (step, scores, weights, context, next_history)) \
    X(T, additive_softmax_forward, void, additive_softmax_forward, (const additive_step<T>& step, T* scores, T* weights, T* context), (step, scores, weights, context)) \
    X(T, additive_backward, void, additive_backward, (const additive_step<T>& step, const T* scores, const T* weights, const T* d_context, const T* d_weights, const T* d_next_history, T* d_query, T* d_keys, T* d_v, T* d_values, T* d_history), (step, scores, weights, d_context, d_weights, d_next_history, d_query, d_keys, d_v, d_values, d_history))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_ADDITIVE)

}  // namespace heed::inline HEED_TARGET::kernels
