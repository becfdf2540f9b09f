// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/kernels/linear_attention.hpp>
#include <heed/simd/simd.hpp>

/// Values corrected by the delta rule, in linear time, a chunk of rows at a time.
///
///     e_i = v_i − Σ_{j<i} f(j, i) (k_i · k_j) u_j,  u_i = β_i e_i           Schlag et al. 2021, section 4.2
///
/// e_i is the error of predicting v_i from the past at k_i; f is the decay of kernels/linear_attention.hpp. The rows
/// before a chunk are summed in one matrix; within a chunk, u solves a triangular system, a few rows at a time (the
/// chunks are those of Yang, Wang, Zhang, Shen and Kim 2024, "Parallelizing Linear Transformers with the Delta Rule
/// over Sequence Length"). The derivative is the same recurrence, from the last row to the first.
namespace heed::inline HEED_TARGET::kernels {

namespace detail {

/// e_r += Σ_i P_ri u_i, u_r = β_r e_r for `count` consecutive rows from `begin` on: first the rows i that are solved,
/// [solved, solved + of_solved), then those among them, all in registers.
template <sees which, std::size_t count, class T>
HEED_SIMD_INLINE void solve_few(std::size_t begin, std::size_t solved, std::size_t of_solved, std::size_t n,
                                std::size_t depth, const T* P, const auto& rate, T* e, T* u)
{
    using namespace simd;
    // In the order in which rows are solved.
    const auto row = [begin](std::size_t nth) { return which == sees::past ? begin + nth : begin + count - 1 - nth; };
    T by[count];
    unrolled<count>([&](auto nth) { by[nth] = rate(row(nth)); });
    each_register<T>(depth, [&](std::size_t at, std::size_t lanes_used) {
        vec<T> sum[count];
        unrolled<count>([&](auto nth) { sum[nth] = load_first(e + row(nth) * depth + at, lanes_used); });
        for (std::size_t i = solved; i < solved + of_solved; ++i) {
            const vec<T> known = load_first(u + i * depth + at, lanes_used);
            unrolled<count>([&](auto nth) { sum[nth] = fma(splat(P[row(nth) * n + i]), known, sum[nth]); });
        }
        unrolled<count>([&](auto nth) {
            const vec<T> known = splat(by[nth]) * sum[nth];
            store_first(e + row(nth) * depth + at, sum[nth], lanes_used);
            store_first(u + row(nth) * depth + at, known, lanes_used);
            unrolled<count>([&](auto later) {
                if constexpr (later > nth) sum[later] = fma(splat(P[row(later) * n + row(nth)]), known, sum[later]);
            });
        });
    });
}

/// e_r += Σ_i P_ri u_i over the rows i that r sees, u_r = β_r e_r, for n rows of length `depth`; P is [n,n].
template <sees which, class T>
void solve_rows(std::size_t n, std::size_t depth, const T* P, const auto& rate, T* e, T* u)
{
    std::size_t done = 0;
    const auto take = [&](auto count) {
        for (; done + count <= n; done += count) {
            const std::size_t begin = which == sees::past ? done : n - done - count;
            solve_few<which, count>(begin, which == sees::past ? 0 : begin + count, done, n, depth, P, rate, e, u);
        }
    };
    take(std::integral_constant<std::size_t, 8>{});
    take(std::integral_constant<std::size_t, 1>{});
}

}  // namespace detail

/// Corrects n rows from the first on (past), or from the last (future). k and v are functions (first, count, to) that
/// return a pointer to rows of width `width` and `depth`, written to `to` or elsewhere; rate(i) is β_i; put(first,
/// count, e, u) receives rows of e and u.
template <sees which, class T>
void correct_values(std::size_t n, std::size_t width, std::size_t depth, const auto& fading, const auto& k,
                    const auto& v, const auto& rate, const auto& put)
{
    using blas::op;
    constexpr std::size_t C = rows_of_chunk;
    constexpr bool past = which == sees::past;
    scratch here;
    T *const ks = here.take<T>(C * width), *const negative = here.take<T>(C * width),
             *const pairs = here.take<T>(C * C);
    T *const e = here.take<T>(C * depth), *const u = here.take<T>(C * depth);
    sum_over_rows<which, T, std::remove_cvref_t<decltype(fading)>> sum(width, depth, fading, here);
    for (std::size_t done = 0; done < n; done += C) {
        const std::size_t count = std::min(C, n - done), i = past ? done : n - done - count;
        const T *const of_k = k(i, count, ks), *const of_v = v(i, count, e);
        if (of_v != e) std::copy_n(of_v, count * depth, e);
        simd::transform(
            count * width, negative, [](auto x) { return -x; }, of_k);
        blas::small_gemm(op::plain, op::transposed, count, count, width, static_cast<const T*>(negative), width, of_k,
                         width, T(0), pairs, count);
        for (std::size_t r = 0; r < count && !fading.none(); ++r) {
            T* const row = pairs + r * count;
            if constexpr (past) {
                fading.from_each(r, row, i, i + r);
            } else {
                fading.to_each(count - 1 - r, row + r + 1, i + r, i + r + 1);
            }
        }
        sum.read(
            count, negative, [i](std::size_t r) { return i + r; }, e);
        detail::solve_rows<which>(
            count, depth, static_cast<const T*>(pairs), [&](std::size_t r) { return rate(i + r); }, e, u);
        put(i, count, static_cast<const T*>(e), static_cast<const T*>(u));
        sum.add(count, i, of_k, u);
    }
}

}  // namespace heed::inline HEED_TARGET::kernels
