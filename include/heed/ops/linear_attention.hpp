// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/linear_attention.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/weights_by_sum.hpp>

namespace heed::ops {

/// Contexts of many queries in linear time:
///
///     c_s = Σ_j γ^age (q_s · k_j) v_j / Σ_j γ^age (q_s · k_j)         Katharopoulos et al. 2020, eq. 9
///
/// queries [B,S,F], keys [B,T,F], values [B,T,D] -> [B,S,D]; without the division if the rule does not divide. With
/// `causal` the last query stands at the last of the `real` keys, and each query sees the keys up to its own; the age
/// of a key is how many of the keys that the query sees come after it. A sum of 0 gives a context of 0. Beside its
/// arguments and results it needs memory for one chunk of rows and a matrix [F,D] for each thread.
///
///     with u_s = ∂c_s / Σ_j γ^age (q_s · k_j) and b_sj = γ^age (v_j − c_s) · u_s; without the division γ^age v_j ·
///     ∂c_s: ∂q_s += Σ_j b_sj k_j,  ∂k_j += Σ_s b_sj q_s,  ∂v_j += Σ_s γ^age (q_s · k_j) u_s
struct linear_attention_op : operation<linear_attention_op> {
    static shape_of_rank<3> shape(const auto& queries, const auto& keys, const auto& values, const lengths_view& real,
                                  bool, const rule_of_sums&)
    {
        const auto q = queries.shape, k = keys.shape, v = values.shape;
        require_shape("linear_attention", "the keys", k, {q[0], k[1], q[2]},
                      "one row for each row of queries, as wide as they are");
        require_shape("linear_attention", "the values", v, {q[0], k[1], v[2]}, "one for each key");
        real.require("linear_attention", q[0], k[1]);
        return {q[0], q[1], v[2]};
    }

    /// What each query is divided by.
    static std::size_t saved(const auto& queries, const auto&, const auto&, const lengths_view&, bool,
                             const rule_of_sums&)
    {
        return queries.shape[0] * queries.shape[1];
    }

    template <class T>
    static void forward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, bool causal,
                        const rule_of_sums& rule, out<T, 3> contexts, T* divisors)
    {
        const std::size_t S = queries.shape[1], D = values.shape[2];
        parallel_for(queries.shape[0], 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t b = begin; b < end; ++b) {
                const auto put = [&](std::size_t first, std::size_t n, const T* sums) {
                    for (std::size_t r = 0; r < n; ++r) {
                        const T* const of = sums + r * (D + 1);
                        const T by = of[D];
                        divisors[b * S + first + r] = by;
                        const T factor = !rule.divides ? T(1) : by == 0 ? T(0) : 1 / by;
                        T* const to = contexts.data + (b * S + first + r) * D;
                        for (std::size_t i = 0; i < D; ++i) to[i] = of[i] * factor;
                    }
                };
                sums<T>(causal, S, real[b], queries.shape[2], D + 1, rule.decay, rows_of(queries, b), rows_of(keys, b),
                        with_one(values, b), put);
            }
        });
    }

    template <class T>
    static void backward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, bool causal,
                         const rule_of_sums& rule, in<T, 3> contexts, in<T, 3> d_contexts, const T* divisors,
                         adjoint<T, 3> d_queries, adjoint<T, 3> d_keys, adjoint<T, 3> d_values)
    {
        const std::size_t S = queries.shape[1], F = queries.shape[2], D = values.shape[2];
        parallel_for(queries.shape[0], 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t b = begin; b < end; ++b) {
                const std::size_t n = real[b];
                // What comes back to the sums and to what they are divided by.
                const auto d_sums = [&](std::size_t first, std::size_t count, T* to) {
                    for (std::size_t r = 0; r < count; ++r, to += D + 1) {
                        const std::size_t at = b * S + first + r;
                        const T by = divisors[at], factor = !rule.divides ? T(1) : by == 0 ? T(0) : 1 / by;
                        const T *const d = d_contexts.data + at * D, *const c = contexts.data + at * D;
                        for (std::size_t i = 0; i < D; ++i) to[i] = d[i] * factor;
                        to[D] = rule.divides ? -kernels::dot(D, d, c) * factor : T(0);
                    }
                };
                const auto q = rows_of(queries, b), k = rows_of(keys, b);
                const auto v = with_one(values, b);
                if (d_queries) sums<T>(causal, S, n, D + 1, F, rule.decay, d_sums, v, k, adding(d_queries, b, F, F));
                if (d_keys)
                    sums_from_last<T>(causal, n, S, D + 1, F, rule.decay, v, d_sums, q, adding(d_keys, b, F, F));
                if (d_values)
                    sums_from_last<T>(causal, n, S, F, D + 1, rule.decay, k, q, d_sums, adding(d_values, b, D, D + 1));
            }
        });
    }

private:
    /// Functions (first, count, to) that copy rows of sentence b.
    template <class T>
    static auto rows_of(in<T, 3> x, std::size_t b)
    {
        return [from = x.data + b * x.shape[1] * x.shape[2], N = x.shape[2]](std::size_t first, std::size_t n, T* to) {
            std::copy_n(from + first * N, n * N, to);
        };
    }
    /// The same with a 1 behind each: its sum is what is divided by.
    template <class T>
    static auto with_one(in<T, 3> x, std::size_t b)
    {
        return [from = x.data + b * x.shape[1] * x.shape[2], N = x.shape[2]](std::size_t first, std::size_t n, T* to) {
            for (std::size_t r = 0; r < n; ++r, to += N + 1) {
                std::copy_n(from + (first + r) * N, N, to);
                to[N] = 1;
            }
        };
    }
    /// Adds the first N numbers of rows that are `width` wide.
    template <class T>
    static auto adding(adjoint<T, 3> d, std::size_t b, std::size_t N, std::size_t width)
    {
        return [to = d.data + b * d.shape[1] * N, N, width](std::size_t first, std::size_t n, const T* from) {
            for (std::size_t r = 0; r < n; ++r) kernels::add(N, to + (first + r) * N, from + r * width);
        };
    }

    /// For each of S queries the sum over the keys that it sees, of n.
    template <class T>
    static void sums(bool causal, std::size_t S, std::size_t n, std::size_t width, std::size_t depth, double decay,
                     const auto& x, const auto& k, const auto& v, const auto& put)
    {
        const auto shift = static_cast<std::ptrdiff_t>(n) - static_cast<std::ptrdiff_t>(S);
        if (causal) return kernels::sums_over_past<T>(S, n, shift, width, depth, decay, x, k, v, put);
        // All of them see all keys, whose ages are the same for each: a sum over the past of rows without age.
        const auto aged = [&](std::size_t first, std::size_t count, T* to) {
            k(first, count, to);
            age(n, first, count, width, decay, to);
        };
        kernels::sums_over_past<T>(S, n, static_cast<std::ptrdiff_t>(n), width, depth, 1, x, aged, v, put);
    }
    /// For each of n keys the sum over the queries that see it, of S.
    template <class T>
    static void sums_from_last(bool causal, std::size_t n, std::size_t S, std::size_t width, std::size_t depth,
                               double decay, const auto& x, const auto& k, const auto& v, const auto& put)
    {
        if (!causal) {
            const auto aged = [&](std::size_t first, std::size_t count, T* to) {
                x(first, count, to);
                age(n, first, count, width, decay, to);
            };
            return kernels::sums_over_past<T>(n, S, static_cast<std::ptrdiff_t>(S), width, depth, 1, aged, k, v, put);
        }
        scratch here;
        T* const turned = here.take<T>(kernels::rows_of_chunk * depth);
        const auto last_first = [](std::size_t rows, std::size_t row, const auto& get) {
            return [rows, row, &get](std::size_t first, std::size_t count, T* to) {
                get(rows - first - count, count, to);
                turn(count, row, to);
            };
        };
        const auto put_back = [&](std::size_t first, std::size_t count, const T* from) {
            std::copy_n(from, count * depth, turned);
            turn(count, depth, turned);
            put(n - first - count, count, static_cast<const T*>(turned));
        };
        kernels::sums_over_past<T>(n, S, 0, width, depth, decay, last_first(n, width, x), last_first(S, width, k),
                                   last_first(S, depth, v), put_back);
    }

    /// Rows first … first + count − 1 of n, times γ^(n − 1 − row).
    template <class T>
    static void age(std::size_t n, std::size_t first, std::size_t count, std::size_t width, double decay, T* rows)
    {
        if (decay == 1) return;
        for (std::size_t r = 0; r < count; ++r) {
            const auto by = static_cast<T>(std::pow(decay, static_cast<double>(n - 1 - first - r)));
            for (std::size_t i = 0; i < width; ++i) rows[r * width + i] *= by;
        }
    }
    /// The last row becomes the first.
    template <class T>
    static void turn(std::size_t count, std::size_t width, T* rows)
    {
        for (std::size_t r = 0; r < count / 2; ++r)
            std::swap_ranges(rows + r * width, rows + (r + 1) * width, rows + (count - 1 - r) * width);
    }
};
inline constexpr linear_attention_op linear_attention{};

}  // namespace heed::ops
