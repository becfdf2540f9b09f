// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/linear_attention.hpp>
#include <heed/kernels/rows.hpp>

/// Values corrected by the delta rule, in linear time, a chunk of rows at a time.
///
///     e_i = v_i − Σ_{j<i} f(j, i) (k_i · k_j) u_j,  u_i = β_i e_i           Schlag et al. 2021, eq. 24-25
///
/// e_i is the error of predicting v_i from the past at k_i; f is the decay of kernels/linear_attention.hpp. The rows
/// before a chunk are summed in one matrix; within a chunk, u solves a triangular system (Yang et al. 2024b, eq. 10-11)
/// in blocks of rows. The derivative is the same recurrence, with rows counted from the last.
namespace heed::inline HEED_TARGET::kernels {

namespace detail {

/// Rows of a triangular system that are solved one by one; the others with a product of matrices.
inline constexpr std::size_t rows_solved_singly = 8;

/// e_r += Σ_{i<r} P_ri u_i, u_r = β_r e_r for n rows of length `depth`; P [n,n] is read below its diagonal.
template <class T>
void solve_rows(std::size_t n, std::size_t depth, const T* P, const auto& rate, T* e, T* u)
{
    using blas::op;
    for (std::size_t begin = 0; begin < n; begin += rows_solved_singly) {
        const std::size_t end = std::min(n, begin + rows_solved_singly);
        if (begin > 0)
            blas::gemm(op::plain, op::plain, end - begin, depth, begin, P + begin * n, n, u, depth, T(1),
                       e + begin * depth, depth);
        for (std::size_t r = begin; r < end; ++r) {
            T* const row = e + r * depth;
            for (std::size_t i = begin; i < r; ++i) add_scaled(depth, row, P[r * n + i], u + i * depth);
            simd::transform(
                depth, u + r * depth, [by = rate(r)](auto x) { return by * x; }, static_cast<const T*>(row));
        }
    }
}

}  // namespace detail

/// Corrects n rows. k and v are functions (first, count, to) that write rows of width `width` and `depth`; rate(i) is
/// β_i; put(first, count, e, u) receives rows of e and u.
template <class T>
void correct_values(std::size_t n, std::size_t width, std::size_t depth, const auto& fading, const auto& k,
                    const auto& v, const auto& rate, const auto& put)
{
    using blas::op;
    constexpr std::size_t C = rows_of_chunk;
    scratch here;
    T *const ks = here.take<T>(C * width), *const negative = here.take<T>(C * width),
             *const pairs = here.take<T>(C * C);
    T *const e = here.take<T>(C * depth), *const u = here.take<T>(C * depth);
    sum_over_rows<T, std::remove_cvref_t<decltype(fading)>> behind(width, depth, fading, here);
    for (std::size_t i = 0; i < n; i += C) {
        const std::size_t count = std::min(C, n - i);
        k(i, count, ks);
        v(i, count, e);
        simd::transform(
            count * width, negative, [](auto x) { return -x; }, static_cast<const T*>(ks));
        blas::gemm(op::plain, op::transposed, count, count, width, negative, width, ks, width, T(0), pairs, count);
        for (std::size_t r = 1; r < count && !fading.none(); ++r) fading(r, pairs + r * count, i, i + r);
        behind.read(
            count, negative, [i](std::size_t r) { return i + r; }, e);
        detail::solve_rows(
            count, depth, pairs, [&](std::size_t r) { return rate(i + r); }, e, u);
        put(i, count, static_cast<const T*>(e), static_cast<const T*>(u));
        behind.add(count, ks, u);
    }
}

}  // namespace heed::inline HEED_TARGET::kernels
