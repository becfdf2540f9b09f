// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/linear_attention.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/weights_by_sum.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// The sums of one sentence's rows, over the keys visible to each query and over the queries that see each key, where
/// keys decay with age.
template <class T>
struct sums_with_age {
    bool causal;
    std::size_t S, n;  // queries, keys
    double decay;

    /// For each query the sum over its visible keys.
    void over_keys(std::size_t width, std::size_t depth, const auto& x, const auto& k, const auto& v,
                   const auto& put) const
    {
        scratch here;
        if (causal)
            return kernels::sums_of_seen<kernels::sees::past, T>(
                {S, n, shift()}, width, depth, kernels::fading_with_age<T>(decay, here), x, k, v, put);
        over_all(S, n, width, depth, x, aged(k, width), v, put);
    }
    /// For each key the sum over the queries that see it.
    void over_queries(std::size_t width, std::size_t depth, const auto& x, const auto& k, const auto& v,
                      const auto& put) const
    {
        scratch here;
        if (causal)
            return kernels::sums_of_seen<kernels::sees::future, T>(
                {n, S, 0, shift()}, width, depth, kernels::fading_with_age<T>(decay, here), x, k, v, put);
        over_all(n, S, width, depth, aged(x, width), k, v, put);
    }

private:
    /// The position of the first query.
    std::ptrdiff_t shift() const { return static_cast<std::ptrdiff_t>(n) - static_cast<std::ptrdiff_t>(S); }
    /// Without causality, all queries see all keys, which have the same age for each query: a causal sum over all rows,
    /// without decay.
    static void over_all(std::size_t to, std::size_t from, std::size_t width, std::size_t depth, const auto& x,
                         const auto& k, const auto& v, const auto& put)
    {
        scratch here;
        kernels::sums_of_seen<kernels::sees::past, T>({to, from, static_cast<std::ptrdiff_t>(from)}, width, depth,
                                                      kernels::fading_with_age<T>(1, here), x, k, v, put);
    }
    /// The keys' rows, times γ^(n − 1 − row).
    auto aged(const auto& get, std::size_t width) const
    {
        return [&get, width, this](std::size_t first, std::size_t count, T* to) -> const T* {
            const T* const rows = get(first, count, to);
            if (decay == 1) return rows;
            for (std::size_t r = 0; r < count; ++r) {
                const auto by = static_cast<T>(std::pow(decay, static_cast<double>(n - 1 - first - r)));
                for (std::size_t i = 0; i < width; ++i) to[r * width + i] = rows[r * width + i] * by;
            }
            return to;
        };
    }
};

/// Sums where a key decays by the gates of later positions, for causal queries.
template <class T>
struct sums_with_gates {
    std::size_t S, n;
    const T* c;  // −F, nondecreasing

    void over_keys(std::size_t width, std::size_t depth, const auto& x, const auto& k, const auto& v,
                   const auto& put) const
    {
        kernels::sums_of_seen<kernels::sees::past, T>({S, n, shift()}, width, depth, kernels::fading_by_gates<T>{c}, x,
                                                      k, v, put);
    }
    void over_queries(std::size_t width, std::size_t depth, const auto& x, const auto& k, const auto& v,
                      const auto& put) const
    {
        kernels::sums_of_seen<kernels::sees::future, T>({n, S, 0, shift()}, width, depth,
                                                        kernels::fading_by_gates<T>{c}, x, k, v, put);
    }

private:
    std::ptrdiff_t shift() const { return static_cast<std::ptrdiff_t>(n) - static_cast<std::ptrdiff_t>(S); }
};

/// The sums −F of a sentence in contiguous memory. The caller opens a scratch.
template <class T>
sums_with_gates<T> sums_of_gates(in<T, 3> keys, std::size_t b, std::size_t S, std::size_t n)
{
    T* const c = workspace_family::take<T>(n);
    for (std::size_t j = 0; j < n; ++j) c[j] = keys.data[(b * keys.shape[1] + j) * keys.shape[2] + 1];
    return {S, n, c};
}

/// The shape of contexts, where keys are wider than queries by `wider`.
inline shape_of_rank<3> shape_by_sums(const char* where, const shape_of_rank<3>& q, const shape_of_rank<3>& k,
                                      const shape_of_rank<3>& v, const lengths_view& real, std::size_t wider)
{
    require_shape(where, "the keys", k, {q[0], k[1], q[2] + wider},
                  wider == 0 ? "one row for each row of queries, of the same width"
                             : "one row for each row of queries, two columns wider than they are");
    require_shape(where, "the values", v, {q[0], k[1], v[2]}, "one for each key");
    real.require(where, q[0], k[1]);
    return {q[0], q[1], v[2]};
}

/// f(b) for each sentence, in parallel.
void each_sentence(std::size_t B, const auto& f)
{
    parallel_for(B, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
        const simd::without_subnormals quick;
        for (std::size_t b = begin; b < end; ++b) f(b);
    });
}

/// A function (first, count, to) that returns the rows of sentence b, without the first `skip` elements of each.
template <class T>
auto rows_of(in<T, 3> x, std::size_t b, std::size_t skip = 0)
{
    return [from = x.data + b * x.shape[1] * x.shape[2], N = x.shape[2], skip](std::size_t first, std::size_t n,
                                                                               T* to) -> const T* {
        if (skip == 0) return from + first * N;
        for (std::size_t r = 0; r < n; ++r) std::copy_n(from + (first + r) * N + skip, N - skip, to + r * (N - skip));
        return to;
    };
}
/// rows_of with a 1 appended to each row if `divides`. The weighted sum of these ones is the divisor.
template <class T>
auto values_to_sum(in<T, 3> x, std::size_t b, bool divides)
{
    return [from = x.data + b * x.shape[1] * x.shape[2], N = x.shape[2], divides](std::size_t first, std::size_t n,
                                                                                  T* to) -> const T* {
        if (!divides) return from + first * N;
        for (std::size_t r = 0; r < n; ++r) {
            std::copy_n(from + (first + r) * N, N, to + r * (N + 1));
            to[r * (N + 1) + N] = 1;
        }
        return to;
    };
}
/// A function that adds the first N elements of rows of size `width`.
template <class T>
auto adding_rows(adjoint<T, 3> d, std::size_t b, std::size_t N, std::size_t width)
{
    return [to = d.data + b * d.shape[1] * N, N, width](std::size_t first, std::size_t n, const T* from) {
        for (std::size_t r = 0; r < n; ++r) kernels::add(N, to + (first + r) * N, from + r * width);
    };
}

/// to_i = from_i / by, and 0 if `by` is 0. The inverse of a subnormal number may be infinite, so these divide.
template <class T>
void divide(std::size_t n, const T* from, T by, T* to)
{
    using std::abs;
    if (by == 0 || abs(by) >= std::numeric_limits<T>::min()) {
        const T factor = by == 0 ? T(0) : 1 / by;
        for (std::size_t i = 0; i < n; ++i) to[i] = from[i] * factor;
    } else {
        for (std::size_t i = 0; i < n; ++i) to[i] = from[i] / by;
    }
}

/// The contexts of one sentence from rows q, k and v, and the divisor of each. `from` counts queries of the batch.
template <class T>
void contexts_by_sums(const auto& sums, std::size_t F, bool divides, std::size_t from, const auto& q, const auto& k,
                      const auto& v, out<T, 3> contexts, T* divisors)
{
    const std::size_t D = contexts.shape[2], N = D + (divides ? 1 : 0);
    sums.over_keys(F, N, q, k, v, [&](std::size_t first, std::size_t n, const T* rows) {
        T* const to = contexts.data + (from + first) * D;
        if (!divides) {
            std::copy_n(rows, n * D, to);
            return;
        }
        for (std::size_t r = 0; r < n; ++r) {
            const T* const of = rows + r * N;
            divisors[from + first + r] = of[D];
            divide(D, of, of[D], to + r * D);
        }
    });
}

/// A function that returns rows of the gradient of the sums of one sentence and, if it divides, of their divisors.
template <class T>
auto rows_of_d_sums(bool divides, std::size_t from, in<T, 3> contexts, in<T, 3> d_contexts, const T* divisors)
{
    return [=](std::size_t first, std::size_t count, T* to) -> const T* {
        const std::size_t D = contexts.shape[2];
        if (!divides) return d_contexts.data + (from + first) * D;
        for (std::size_t r = 0; r < count; ++r) {
            const std::size_t at = from + first + r;
            const T *const d = d_contexts.data + at * D, *const c = contexts.data + at * D;
            T* const row = to + r * (D + 1);
            divide(D, d, divisors[at], row);
            row[D] = -kernels::dot(D, d, c);
            divide(1, row + D, divisors[at], row + D);
        }
        return to;
    };
}

}  // namespace detail

/// Contexts of many queries in linear time:
///
///     c_s = Σ_j γ^age (q_s · k_j) v_j / Σ_j γ^age (q_s · k_j)         Katharopoulos et al. 2020, eq. 9
///
/// queries [B,S,F], keys [B,T,F], values [B,T,D] -> [B,S,D]; without the division if the rule does not divide. With
/// `causal`, the last query is at the position of the last of the `real` keys, and a query sees the keys up to its
/// position. The age of a key is the number of visible keys after it. A sum of 0 gives a context of 0. In addition to
/// its arguments and results it needs memory for one chunk of rows and a matrix [F,D] for each thread.
///
///     with u_s = ∂c_s / Σ_j γ^age (q_s · k_j) and b_sj = γ^age (v_j − c_s) · u_s;
///     without the division u_s = ∂c_s and b_sj = γ^age v_j · ∂c_s:
///     ∂q_s += Σ_j b_sj k_j,  ∂k_j += Σ_s b_sj q_s,  ∂v_j += Σ_s γ^age (q_s · k_j) u_s
struct linear_attention_op : operation<linear_attention_op> {
    static shape_of_rank<3> shape(const auto& queries, const auto& keys, const auto& values, const lengths_view& real,
                                  bool, const rule_of_sums&)
    {
        return detail::shape_by_sums("linear_attention", queries.shape, keys.shape, values.shape, real, 0);
    }

    /// The divisor of each query.
    static std::size_t saved(const auto& queries, const auto&...) { return queries.shape[0] * queries.shape[1]; }

    template <class T>
    static void forward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, bool causal,
                        const rule_of_sums& rule, out<T, 3> contexts, T* divisors)
    {
        const std::size_t S = queries.shape[1];
        detail::each_sentence(queries.shape[0], [&](std::size_t b) {
            detail::contexts_by_sums<T>(detail::sums_with_age<T>{causal, S, real[b], rule.decay}, queries.shape[2],
                                        rule.divides, b * S, detail::rows_of(queries, b), detail::rows_of(keys, b),
                                        detail::values_to_sum(values, b, rule.divides), contexts, divisors);
        });
    }

    template <class T>
    static void backward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, bool causal,
                         const rule_of_sums& rule, in<T, 3> contexts, in<T, 3> d_contexts, const T* divisors,
                         adjoint<T, 3> d_queries, adjoint<T, 3> d_keys, adjoint<T, 3> d_values)
    {
        const std::size_t S = queries.shape[1], F = queries.shape[2], D = values.shape[2];
        const std::size_t N = D + (rule.divides ? 1 : 0);
        detail::each_sentence(queries.shape[0], [&](std::size_t b) {
            const detail::sums_with_age<T> sums{causal, S, real[b], rule.decay};
            const auto d_sums = detail::rows_of_d_sums<T>(rule.divides, b * S, contexts, d_contexts, divisors);
            const auto q = detail::rows_of(queries, b), k = detail::rows_of(keys, b);
            const auto v = detail::values_to_sum(values, b, rule.divides);
            if (d_queries) sums.over_keys(N, F, d_sums, v, k, detail::adding_rows(d_queries, b, F, F));
            if (d_keys) sums.over_queries(N, F, v, d_sums, q, detail::adding_rows(d_keys, b, F, F));
            if (d_values) sums.over_queries(F, N, k, q, d_sums, detail::adding_rows(d_values, b, D, N));
        });
    }
};
inline constexpr linear_attention_op linear_attention{};

/// Contexts of causal queries in linear time, where keys decay by the gates of later positions:
///
///     c_s = Σ_j f_sj (q_s · k_j) v_j / Σ_j f_sj (q_s · k_j),  f_sj = exp(F_p − F_j),  F_j = Σ_{l≤j} log a_l
///                                                             Yang et al. 2024, §4.1; Dao and Gu 2024, §5.1
///
/// queries [B,S,F], keys [B,T,2+F] with the columns (1, −F_j) of `carried_sums`, values [B,T,D] -> [B,S,D]. The s-th
/// query is at p = min(first + s, real − 1), which must be no earlier than its last visible key: first + S >= real. No
/// exponent is above 0.
///
///     ∂q, ∂k and ∂v as in linear_attention, with f_sj instead of γ^age;  ∂F_p += q_s · ∂q_s,  ∂F_j −= k_j · ∂k_j
struct gated_linear_attention_op : operation<gated_linear_attention_op> {
    static shape_of_rank<3> shape(const auto& queries, const auto& keys, const auto& values, const lengths_view& real,
                                  std::size_t, bool)
    {
        carry_sums_op::require_columns(keys.shape);
        return detail::shape_by_sums("gated_linear_attention", queries.shape, keys.shape, values.shape, real, 2);
    }

    /// The divisor of each query.
    static std::size_t saved(const auto& queries, const auto&...) { return queries.shape[0] * queries.shape[1]; }

    template <class T>
    static void forward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, std::size_t first,
                        bool divides, out<T, 3> contexts, T* divisors)
    {
        const std::size_t S = queries.shape[1];
        detail::each_sentence(queries.shape[0], [&](std::size_t b) {
            const scratch here;
            const auto sums = detail::sums_of_gates(keys, b, S, real[b]);
            detail::contexts_by_sums<T>(sums, queries.shape[2], divides, b * S, faded_rows(queries, b, sums, first),
                                        detail::rows_of(keys, b, 2), detail::values_to_sum(values, b, divides),
                                        contexts, divisors);
        });
    }

    template <class T>
    static void backward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, std::size_t first,
                         bool divides, in<T, 3> contexts, in<T, 3> d_contexts, const T* divisors,
                         adjoint<T, 3> d_queries, adjoint<T, 3> d_keys, adjoint<T, 3> d_values)
    {
        const std::size_t S = queries.shape[1], F = queries.shape[2], D = values.shape[2], N = F + 2;
        const std::size_t depth = D + (divides ? 1 : 0);
        detail::each_sentence(queries.shape[0], [&](std::size_t b) {
            const scratch here;
            const auto sums = detail::sums_of_gates(keys, b, S, real[b]);
            const auto d_sums = detail::rows_of_d_sums<T>(divides, b * S, contexts, d_contexts, divisors);
            const auto q = faded_rows(queries, b, sums, first);
            const auto k = detail::rows_of(keys, b, 2);
            const auto v = detail::values_to_sum(values, b, divides);
            const auto d_c = [&](std::size_t j) -> T& { return d_keys.data[(b * keys.shape[1] + j) * N + 1]; };
            const auto add_q = [&](std::size_t begun, std::size_t count, const T* rows) {
                for (std::size_t r = 0; r < count; ++r) {
                    const std::size_t s = begun + r, at = (b * S + s) * F;
                    const T left = left_of(sums, s, first);
                    if (d_queries) kernels::add_scaled(F, d_queries.data + at, left, rows + r * F);
                    if (d_keys && sums.n > 0)
                        d_c(position_of(sums, s, first)) -= left * kernels::dot(F, queries.data + at, rows + r * F);
                }
            };
            const auto add_k = [&](std::size_t begun, std::size_t count, const T* rows) {
                for (std::size_t r = 0; r < count; ++r) {
                    const std::size_t j = begun + r, at = (b * keys.shape[1] + j) * N + 2;
                    kernels::add(F, d_keys.data + at, rows + r * F);
                    d_c(j) += kernels::dot(F, keys.data + at, rows + r * F);
                }
            };
            if (d_queries || d_keys) sums.over_keys(depth, F, d_sums, v, k, add_q);
            if (d_keys) sums.over_queries(depth, F, v, d_sums, q, add_k);
            if (d_values) sums.over_queries(F, depth, k, q, d_sums, detail::adding_rows(d_values, b, D, depth));
        });
    }

private:
    /// The position of query s; n must not be 0.
    static std::size_t position_of(const auto& sums, std::size_t s, std::size_t first)
    {
        return std::min(first + s, sums.n - 1);
    }
    /// The decay of the last visible key of query s between that key and the query's own position; 1 if they are equal.
    template <class T>
    static T left_of(const detail::sums_with_gates<T>& sums, std::size_t s, std::size_t first)
    {
        if (sums.n + s < sums.S) return T(1);  // no visible key
        return kernels::fading_by_gates<T>{sums.c}(sums.n + s - sums.S, position_of(sums, s, first));
    }
    template <class T>
    static auto faded_rows(in<T, 3> queries, std::size_t b, const detail::sums_with_gates<T>& sums, std::size_t first)
    {
        return [get = detail::rows_of(queries, b), F = queries.shape[2], sums, first](std::size_t begin, std::size_t n,
                                                                                      T* to) -> const T* {
            const T* const rows = get(begin, n, to);
            for (std::size_t r = 0; r < n; ++r) {
                const T left = left_of(sums, begin + r, first);
                for (std::size_t i = 0; i < F; ++i) to[r * F + i] = rows[r * F + i] * left;
            }
            return to;
        };
    }
};
inline constexpr gated_linear_attention_op gated_linear_attention{};

/// S'_b = γ^n S_b + Σ_j γ^{n−1−j} k_j [v_j, 1]ᵀ over the n real positions of row b: sums [B,F,D+1], keys [B,T,F],
/// values [B,T,D] -> [B,F,D+1].
///
///     ∂S_b += γ^n ∂S'_b,  ∂k_j += γ^{n−1−j} ∂S'_b [v_j, 1],  ∂v_j += γ^{n−1−j} (∂S'_bᵀ k_j without the last element)
struct add_to_sums_op : operation<add_to_sums_op> {
    static shape_of_rank<3> shape(const auto& sums, const auto& keys, const auto& values, const lengths_view& real,
                                  double)
    {
        const auto k = keys.shape, v = values.shape;
        require_shape("add_to_sums", "the values", v, {k[0], k[1], v[2]}, "one for each key of ", k);
        require_shape("add_to_sums", "the sums", sums.shape, {k[0], k[2], v[2] + 1},
                      "[rows, features, width of values + 1]");
        real.require("add_to_sums", k[0], k[1]);
        return sums.shape;
    }

    template <class T>
    static void forward(in<T, 3> sums, in<T, 3> keys, in<T, 3> values, const lengths_view& real, double decay,
                        out<T, 3> y)
    {
        const std::size_t P = keys.shape[1], F = keys.shape[2], D = values.shape[2], size = F * (D + 1);
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            const std::size_t n = real[b];
            T* const to = y.data + b * size;
            simd::transform(
                size, to, [before = aged<T>(decay, n)](auto s) { return before * s; }, sums.data + b * size);
            kernels::add_in_blocks(n, size, to, [&](std::size_t begin, std::size_t end, T* into) {
                for (std::size_t j = begin; j < end; ++j) {
                    const T by = aged<T>(decay, n - 1 - j), *const value = values.data + (b * P + j) * D;
                    for (std::size_t f = 0; f < F; ++f) {
                        T* const row = into + f * (D + 1);
                        const T factor = by * keys.data[(b * P + j) * F + f];
                        kernels::add_scaled(D, row, factor, value);
                        row[D] += factor;
                    }
                }
            });
        }
    }

    template <class T>
    static void backward(in<T, 3> sums, in<T, 3> keys, in<T, 3> values, const lengths_view& real, double decay,
                         in<T, 3>, in<T, 3> d_y, adjoint<T, 3> d_sums, adjoint<T, 3> d_keys, adjoint<T, 3> d_values)
    {
        const std::size_t P = keys.shape[1], F = keys.shape[2], D = values.shape[2], size = F * (D + 1);
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            const std::size_t n = real[b];
            const T* const d = d_y.data + b * size;
            if (d_sums) kernels::add_scaled(size, d_sums.data + b * size, aged<T>(decay, n), d);
            for (std::size_t j = 0; j < n; ++j) {
                const std::size_t at = b * P + j;
                const T by = aged<T>(decay, n - 1 - j);
                for (std::size_t f = 0; f < F; ++f) {
                    const T* const row = d + f * (D + 1);
                    if (d_keys) d_keys.data[at * F + f] += by * (kernels::dot(D, row, values.data + at * D) + row[D]);
                    if (d_values) kernels::add_scaled(D, d_values.data + at * D, by * keys.data[at * F + f], row);
                }
            }
        }
    }

private:
    /// γ^age.
    template <class T>
    static T aged(double decay, std::size_t age)
    {
        return static_cast<T>(decay == 1 ? 1 : std::pow(decay, static_cast<double>(age)));
    }
};
inline constexpr add_to_sums_op add_to_sums{};

/// c_b = q_bᵀ S_b, without its last element z; divided by z if `divides`: queries [B,F], sums [B,F,D+1] -> [B,D]. 0
/// where z is 0.
///
///     u = ∂c_b / z, and −∂c_b · c_b / z as its last element:   ∂q_b += S_b u,  ∂S_b += q_b uᵀ
struct read_sums_op : operation<read_sums_op> {
    static shape_of_rank<2> shape(const auto& queries, const auto& sums, bool)
    {
        const auto s = sums.shape;
        require_shape("read_sums", "the query", queries.shape, {s[0], s[1]}, "one feature for each row of the sums ",
                      s);
        return {s[0], s[2] - 1};
    }
    static std::size_t saved(const auto&, const auto& sums, bool) { return sums.shape[0]; }

    template <class T>
    static void forward(in<T, 2> queries, in<T, 3> sums, bool divides, out<T, 2> contexts, T* divisors)
    {
        const std::size_t F = sums.shape[1], D = sums.shape[2] - 1;
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            T* const c = contexts.data + b * D;
            std::fill_n(c, D, T(0));
            T by = 0;
            for (std::size_t f = 0; f < F; ++f) {
                const T q = queries.data[b * F + f];
                const T* const row = sums.data + (b * F + f) * (D + 1);
                kernels::add_scaled(D, c, q, row);
                by += q * row[D];
            }
            divisors[b] = divides ? by : T(1);
            detail::divide(D, c, divisors[b], c);
        }
    }

    template <class T>
    static void backward(in<T, 2> queries, in<T, 3> sums, bool divides, in<T, 2> contexts, in<T, 2> d_contexts,
                         const T* divisors, adjoint<T, 2> d_queries, adjoint<T, 3> d_sums)
    {
        const std::size_t F = sums.shape[1], D = sums.shape[2] - 1;
        for (std::size_t b = 0; b < sums.shape[0]; ++b) {
            const T *const d = d_contexts.data + b * D, by = divisors[b];
            if (by == 0) continue;
            const T last = divides ? -kernels::dot(D, d, contexts.data + b * D) / by : T(0);
            for (std::size_t f = 0; f < F; ++f) {
                const std::size_t at = b * F + f;
                const T* const row = sums.data + at * (D + 1);
                if (d_queries) d_queries.data[at] += kernels::dot(D, d, row) / by + last * row[D];
                if (!d_sums) continue;
                T* const d_row = d_sums.data + at * (D + 1);
                kernels::add_scaled(D, d_row, queries.data[at] / by, d);
                d_row[D] += last * queries.data[at];
            }
        }
    }
};
inline constexpr read_sums_op read_sums{};

}  // namespace heed::inline HEED_TARGET::ops
