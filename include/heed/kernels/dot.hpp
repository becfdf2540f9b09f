// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <heed/core/compiled.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/simd/simd.hpp>

/// One step of attention by inner products.
///
///     e_j = q · k_j,   α = softmax(e),   c = Σ_j α_j h_j
///
/// over the real positions of each sentence. The padding is not read.
namespace heed::inline HEED_TARGET::kernels {

template <class T>
struct dot_step {
    std::size_t batch, positions, alignment, width;  // B, T, A, D
    const std::size_t* lengths;                      // [B]
    const T* query;                                  // [B,A]
    const T* keys;                                   // [B,T,A]
    const T* values;                                 // [B,T,D]
};

/// The number of positions summed before they are added to the context: threads share a long sentence, and the sum is
/// reproducible.
inline constexpr std::size_t positions_of_part = 1024;

namespace detail {

/// e_j = q · k_j of the positions [begin, end). `ahead`: the keys are not cached.
template <class T>
inline void scores_of_wide_keys(std::size_t begin, std::size_t end, std::size_t alignment, const T* query,
                                const T* keys, T* scores, bool ahead)
{
    for (std::size_t j = begin; j < end; ++j) {
        if (ahead) simd::fetch_ahead(keys + j * alignment, alignment);
        scores[j] = dot(alignment, query, keys + j * alignment);
    }
}

/// scores_of_wide_keys for keys that are `registers` registers wide: the query stays in registers, and the products of
/// four keys are summed together, in the same order. More keys at a time would slow down memory reads.
template <std::size_t registers, class T>
[[gnu::noinline]] void scores_of_narrow_keys(std::size_t begin, std::size_t end, const T* query, const T* keys,
                                             T* scores, bool ahead)
{
    using namespace simd;
    constexpr std::size_t L = lanes<T>, width = registers * L, rows = 4, chains = registers < 4 ? 1 : 4;
    vec<T> q[registers];
    unrolled<registers>([&](auto r) { q[r] = load(query + r * L); });
    std::size_t j = begin;
    for (; j + rows <= end; j += rows) {
        vec<T> products[rows];
        unrolled<rows>([&](auto i) {
            const T* const k = keys + (j + i) * width;
            if (ahead) fetch_ahead(k, width);
            vec<T> s[4] = {};
            unrolled<registers>([&](auto r) { s[r % chains] = fma(q[r], load(k + r * L), s[r % chains]); });
            products[i] = (s[0] + s[1]) + (s[2] + s[3]);
        });
        sums<T>(products[0], products[1], products[2], products[3], scores + j);
    }
    scores_of_wide_keys(j, end, width, query, keys, scores, ahead);
}

template <class T>
inline void scores_of_keys(std::size_t begin, std::size_t end, std::size_t alignment, const T* query, const T* keys,
                           T* scores, bool ahead)
{
    if constexpr (!dual_element<T>) {
        constexpr std::size_t L = simd::lanes<T>;
        if (alignment == L) return scores_of_narrow_keys<1>(begin, end, query, keys, scores, ahead);
        if (alignment == 2 * L) return scores_of_narrow_keys<2>(begin, end, query, keys, scores, ahead);
        if (alignment == 4 * L) return scores_of_narrow_keys<4>(begin, end, query, keys, scores, ahead);
        if (alignment == 8 * L) return scores_of_narrow_keys<8>(begin, end, query, keys, scores, ahead);
    }
    scores_of_wide_keys(begin, end, alignment, query, keys, scores, ahead);
}

/// The softmax of a part of a sentence: its maximum score, and the sum of its exponentials.
template <class T>
struct softmax_of_part {
    T top, sum;
};

/// w_j = exp(e_j − top), one register from `begin` on, in place of e_j; 0 after the n-th.
template <class T>
HEED_SIMD_INLINE simd::vec<T> next_exponentials(std::size_t begin, std::size_t n, simd::vec<T> top, T* weights)
{
    using namespace simd;
    const std::size_t count = std::min(n - begin, lanes<T>);
    vec<T> e = exp(load_first(weights + begin, count) - top);
    if (count < lanes<T>) e = fill_behind<T>(e, count, T(0));
    store_first(weights + begin, e, count);
    return e;
}

/// w_j = exp(e_j − top), in place of e_j; returns Σ_j w_j. Also computes c = Σ_j w_j h_j of values that are `registers`
/// registers wide.
template <std::size_t registers, class T>
[[gnu::noinline]] T exponential_sum_narrow(std::size_t n, T* weights, T top, const T* values, T* context, bool ahead)
{
    using namespace simd;
    constexpr std::size_t L = lanes<T>, width = registers * L;
    const vec<T> shift = splat(top);
    vec<T> sums[registers] = {}, e{};
    long_sum<T> sum;
    if (n > 0) e = next_exponentials(0, n, shift, weights);
    for (std::size_t begin = 0; begin < n; begin += L) {
        const std::size_t end = std::min(n, begin + L);
        const bool all = !any(e == vec<T>{});  // in the last register there may be fewer
        sum.add(e);
        if (end < n) e = next_exponentials(end, n, shift, weights);
        for (std::size_t j = begin; j < end; ++j) {
            const T* const h = values + j * width;
            if (ahead) fetch_ahead(h, width);
            if (!all && weights[j] == T(0)) continue;
            const vec<T> a = splat(weights[j]);
            unrolled<registers>([&](auto r) { sums[r] = fma(a, load(h + r * L), sums[r]); });
        }
    }
    unrolled<registers>([&](auto r) { store(context + r * L, sums[r]); });
    return sum.get();
}

/// One part of a sentence, relative to its own maximum score: w_j = exp(e_j − max e) in place of e_j, c = Σ_j w_j h_j.
/// A part with no score above -inf gets weights 0, or NaN where the score is NaN.
template <class T>
inline softmax_of_part<T> weigh_part(std::size_t n, std::size_t width, const T* values, T* weights, T* context,
                                     bool ahead)
{
    constexpr std::size_t L = simd::lanes<T>;
    const T top = max_of(n, weights);
    const T shift = top == -std::numeric_limits<T>::infinity() ? T(0) : top;
    const auto narrow = [&]<std::size_t registers>(std::integral_constant<std::size_t, registers>) {
        return softmax_of_part<T>{top, exponential_sum_narrow<registers>(n, weights, shift, values, context, ahead)};
    };
    if (width == L) return narrow(std::integral_constant<std::size_t, 1>{});
    if (width == 2 * L) return narrow(std::integral_constant<std::size_t, 2>{});
    if (width == 4 * L) return narrow(std::integral_constant<std::size_t, 4>{});
    if (width == 8 * L) return narrow(std::integral_constant<std::size_t, 8>{});
    const T sum = exponentials(n, weights, shift, weights);
    selected_sum_row(n, width, weights, values, context, ahead);
    return {top, sum};
}

}  // namespace detail

/// One sentence: n positions of keys and values. weights [n], context [D]. With `shared`, by several threads.
///
/// Each part is computed relative to its own maximum score, so that a thread reads its keys and then its values
/// sequentially, before it synchronizes with the others for the factors of the parts:
///
///     α_j = f_p w_j,  c = Σ_p f_p c_p,  f_p = exp(top_p − top) / Σ_r exp(top_r − top) Σ_{k in r} w_k
template <class T>
[[gnu::noinline]] void dot_forward_row(std::size_t n, std::size_t alignment, std::size_t width, const T* query,
                                       const T* keys, const T* values, T* weights, T* context, bool shared = false)
{
    using std::exp, std::isfinite;
    constexpr std::size_t part = positions_of_part;
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const std::size_t parts = (n + part - 1) / part;
    const bool ahead = simd::worth_fetching<T>(n * (alignment + width));
    scratch here;
    auto* const found = here.take<detail::softmax_of_part<T>>(parts);
    T* const factors = here.take<T>(parts);
    T* const contexts = here.take<T>(parts * width);
    const auto each_part = [&](const auto& f) {
        shared ? parallel_for(parts, 1, [&](std::size_t begin, std::size_t end, std::size_t) { f(begin, end); })
               : f(0, parts);
    };
    const auto size_of = [&](std::size_t p) { return std::min(n - p * part, part); };
    each_part([&](std::size_t begin, std::size_t end) {
        const simd::without_subnormals quick;
        detail::scores_of_keys(begin * part, std::min(n, end * part), alignment, query, keys, weights, ahead);
        for (std::size_t p = begin; p < end; ++p)
            found[p] = detail::weigh_part(size_of(p), width, values + p * part * width, weights + p * part,
                                          contexts + p * width, ahead);
    });
    T top = lowest;
    for (std::size_t p = 0; p < parts; ++p) top = found[p].top > top ? found[p].top : top;
    detail::zero(context, width);
    if (top == lowest) {
        detail::no_weights(n, weights, weights);
    } else {
        in_double<T> sum = 0;
        for (std::size_t p = 0; p < parts; ++p) {
            factors[p] = exp(found[p].top - top);
            sum += static_cast<in_double<T>>(factors[p]) * static_cast<in_double<T>>(found[p].sum);
        }
        for (std::size_t p = 0; p < parts; ++p)
            factors[p] = static_cast<T>(static_cast<in_double<T>>(factors[p]) / sum);
        add_in_blocks(parts, width, context, [&](std::size_t begin, std::size_t end, T* to) {
            for (std::size_t p = begin; p < end; ++p) add_scaled(width, to, factors[p], contexts + p * width);
        });
        each_part([&](std::size_t begin, std::size_t end) {
            for (std::size_t p = begin; p < end; ++p)
                simd::transform(
                    size_of(p), weights + p * part,
                    [scale = simd::splat(factors[p])](simd::vec<T> w) { return w * scale; }, weights + p * part);
        });
    }
    // The sums of the parts may have overflowed, or may include values of weight 0 relative to the other parts.
    if (top != lowest && std::all_of(context, context + width, [](const T& c) { return isfinite(c); })) return;
    detail::zero(context, width);
    add_in_blocks(parts, width, context, [&](std::size_t begin, std::size_t end, T* to) {
        for (std::size_t p = begin; p < end; ++p) {
            const std::size_t j = p * part;
            detail::selected_sum_row(std::min(n - j, part), width, weights + j, values + j * width, contexts, ahead);
            add(width, to, contexts);
        }
    });
}

/// Writes weights α [B,T], 0 beyond the length, and context c [B,D].
template <class T>
void dot_forward(const dot_step<T>& step, T* weights, T* context)
{
    const std::size_t P = step.positions, A = step.alignment, D = step.width;
    const bool shared = step.batch < threads() && P > 2 * positions_of_part;
    const auto rows = [&](std::size_t begin, std::size_t end, std::size_t) {
        const simd::without_subnormals quick;
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = detail::length_of(step.lengths, b, P);
            T* const w = weights + b * P;
            detail::zero(w + n, P - n);
            dot_forward_row(n, A, D, step.query + b * A, step.keys + b * P * A, step.values + b * P * D, w,
                            context + b * D, shared);
        }
    };
    if (shared) return rows(0, step.batch, 0);
    parallel_for(step.batch, detail::rows_a_shard(P * (A + D)), rows);
}

/// Backward of the step at the top of this file, from its weights:
///
///     dα_j += dcᵀ h_j,  dh_j += α_j dc                     of c = Σ_j α_j h_j
///     de_j  = α_j (dα_j − Σ_k α_k dα_k)                    of α = softmax(e)
///     dq   += Σ_j de_j k_j,  dk_j += de_j q                of e_j = q · k_j
///
/// d_context [B,D], d_weights [B,T] are inputs (each may be nullptr); d_query [B,A], d_keys [B,T,A], d_values [B,T,D]
/// are added to (each may be nullptr). A position of weight 0 adds nothing to the gradients of its key and of the
/// query.
template <class T>
void dot_backward(const dot_step<T>& step, const T* weights, const T* d_context, const T* d_weights, T* d_query,
                  T* d_keys, T* d_values)
{
    using namespace simd;
    const std::size_t P = step.positions, A = step.alignment, D = step.width;
    const auto sentences = [=](std::size_t begin, std::size_t end, std::size_t) {
        const simd::without_subnormals quick;
        scratch here;
        T* const d_alpha = here.take<T>(P);
        T* const all = detail::filled(here, (end - begin) * P, T(0));
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = detail::length_of(step.lengths, b, P), at = b * P;
            // Row by row: interleaving several rows would slow down memory reads.
            for (std::size_t j = at; j < at + n; ++j)
                detail::weighted_sum_row_backward(
                    0, 1, D, weights + j, step.values + j * D, detail::behind(d_context, b * D),
                    detail::behind(d_weights, j), d_alpha + (j - at),
                    d_context == nullptr || weights[j] == T(0) ? nullptr : detail::behind(d_values, j * D));
            detail::softmax_row_backward(n, weights + at, d_alpha, all + (b - begin) * P);
        }
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t n = detail::length_of(step.lengths, b, P);
            const T *const query = step.query + b * A, *const d_scores = all + (b - begin) * P;
            const auto rows = [=](std::size_t first, std::size_t last, T* dq) {
                for (std::size_t j = first; j < last; ++j) {
                    if (d_scores[j] == T(0)) continue;
                    const T* const k = step.keys + (b * P + j) * A;
                    T* const dk = detail::behind(d_keys, (b * P + j) * A);
                    const vec<T> de = splat(d_scores[j]);
                    detail::each_column<T>(0, A, [&](std::size_t a, auto get, auto put) {
                        if (dq != nullptr) put(dq + a, fma(de, get(k + a), get(dq + a)));
                        if (dk != nullptr) put(dk + a, fma(de, get(query + a), get(dk + a)));
                    });
                }
            };
            d_query == nullptr ? rows(0, n, nullptr) : add_in_blocks(n, A, d_query + b * A, rows);
        }
    };
    parallel_for(step.batch, detail::rows_a_shard(2 * P * (A + D)), sentences);
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_DOT(X, T) \
    X(T, dot_forward, void, dot_forward, (const dot_step<T>& step, T* weights, T* context), (step, weights, context)) \
    X(T, dot_backward, void, dot_backward, (const dot_step<T>& step, const T* weights, const T* d_context, const T* d_weights, T* d_query, T* d_keys, T* d_values), (step, weights, d_context, d_weights, d_query, d_keys, d_values))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_DOT)

}  // namespace heed::inline HEED_TARGET::kernels
