// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>

#include <heed/core/compiled.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/gemm/bfloat16_pairs.hpp>
#include <heed/gemm/blas.hpp>

namespace heed::inline HEED_TARGET::blas::detail {

/// C = op(A) op(B) + beta C, with op(A) and op(B) rounded to bfloat16 and sums in float. In blocks as in
/// gemm/gemm_kernel.hpp: a block of op(B) in the second-level cache is multiplied by blocks of rows of op(A).
template <std::same_as<float> T>
void gemm_in_bfloat16(op op_a, op op_b, std::size_t m, std::size_t n, std::size_t k, const T* a, std::size_t lda,
                      const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc)
{
    constexpr std::size_t few = 4;
    if (m < few) {  // as slow as reading B: not worth copying it
        const product<T> in_float = callable_from_several_threads() ? gemm_of_blas<T> : gemm_kernel<T>;
        return in_float(op_a, op_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
    }
    constexpr std::size_t rows = 256, columns = 512, depth = 512;
    const std::size_t a_across = op_a == op::plain ? lda : 1, a_along = op_a == op::plain ? 1 : lda,
                      b_down = op_b == op::plain ? ldb : 1, b_along = op_b == op::plain ? 1 : ldb;
    const bool amx = simd::amx_is_permitted();
    [[maybe_unused]] const simd::amx_scope matrices;
    if (beta != 0 && beta != 1)
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < n; ++j) c[i * ldc + j] *= beta;
    for (std::size_t j = 0; j < n; j += columns) {
        const std::size_t wide = std::min(columns, n - j);
        for (std::size_t p = 0; p < k; p += depth) {
            const std::size_t deep = std::min(depth, k - p);
            scratch of_b;
            const auto right = kernels::right_pairs_of(deep, wide, b + p * b_down + j * b_along, b_down, b_along, of_b);
            for (std::size_t i = 0; i < m; i += rows) {
                const std::size_t high = std::min(rows, m - i);
                scratch of_a;
                const auto left =
                    kernels::left_pairs_of(high, deep, a + i * a_across + p * a_along, a_across, a_along, amx, of_a);
                float* const to = c + i * ldc + j;
                if (p == 0 && beta == 0)
                    kernels::multiply_pairs<false>(high, wide, deep, left, right, to, ldc, amx);
                else
                    kernels::multiply_pairs<true>(high, wide, deep, left, right, to, ldc, amx);
            }
        }
    }
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_BFLOAT16(X, T) \
    X(T, gemm_in_bfloat16, void, gemm_in_bfloat16, (op op_a, op op_b, std::size_t m, std::size_t n, std::size_t k, const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c, std::size_t ldc), (op_a, op_b, m, n, k, a, lda, b, ldb, beta, c, ldc))
// clang-format on
HEED_COMPILED_KERNELS_OF_FLOATS(HEED_KERNELS_OF_BFLOAT16)

}  // namespace heed::inline HEED_TARGET::blas::detail

namespace heed::inline HEED_TARGET {

/// While an object of this class exists, the matrix products of floats of its thread, and of heed's threads working for
/// it, round their operands to bfloat16 (8 significant bits); sums, results, weights and gradients are floats. Can be
/// nested, also with batch_invariant; the innermost applies.
///
///     const heed::products_in_bfloat16 guard;
///     tape.backward(loss);
///
/// Mixed precision as in Kalamkar et al. 2019: training keeps weights in float, and needs no scaling of the loss, since
/// bfloat16 has the range of float. Products of doubles, products with fewer than 4 rows, and kernels that are not
/// matrix products, such as one step of attention, are unchanged.
///
/// Faster than float with AMX (Intel, from Sapphire Rapids on), if the program is compiled for it or links
/// heed::compiled. Elsewhere usually slower, with results equal up to the order of sums. No errors.
class products_in_bfloat16 {
public:
    template <std::same_as<bool> Bool = bool>  // a template, so that it is compiled only if it is called
    explicit products_in_bfloat16(Bool wanted = true) : before_(detail::own_products_here)
    {
        static constexpr detail::own_products all{blas::detail::gemm_in_bfloat16<float>, nullptr};
        if (wanted) detail::own_products_here = &all;
    }
    ~products_in_bfloat16() { detail::own_products_here = before_; }
    products_in_bfloat16& operator=(products_in_bfloat16&&) = delete;

private:
    const void* before_;
};

}  // namespace heed::inline HEED_TARGET
