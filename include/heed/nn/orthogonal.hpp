// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>
#include <cstdint>

#include <heed/core/errors.hpp>
#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/nn/init.hpp>

// Compilers continue after an #error, but stop at an #include of a file that does not exist.
#if defined(HEED_BLAS_NONE)
#error "heed/nn/orthogonal.hpp calls xt::linalg and so a BLAS and a LAPACK: compile without HEED_BLAS_NONE"
#include <heed/needs/xtensor-blas>
#elif defined(HEED_BLAS_CBLAS)
#error "heed/nn/orthogonal.hpp calls xt::linalg, which clashes with <cblas.h>: compile without HEED_BLAS_CBLAS"
#include <heed/needs/xtensor-blas>
#endif
#include <xtensor-blas/xlinalg.hpp>

/// Random orthogonal matrices. <heed/heed.hpp> does not include this header: it is the only one that needs
/// xtensor-blas's linear algebra, which is slow to compile and calls LAPACK. In CMake, link heed::linalg.
namespace heed::inline HEED_TARGET::nn {

/// [rows,columns], random and orthogonal: Uᵀ U = 1 if rows ≥ columns, U Uᵀ = 1 if rows ≤ columns.
///
///     A = Q R,  A normal,  U = Q diag(sign R_ii)
///
/// Recurrent weights are initialized like this in Bahdanau et al. 2015 (appendix B.1) and Saxe et al. 2014:
/// multiplication preserves the length of a state. The signs make U uniform among all orthogonal matrices, unlike
/// LAPACK's Q (Mezzadri 2007, §5). Computed in double for every T. The last bits of a number depend on the LAPACK
/// implementation. Throws shape_error if there are no rows or no columns.
template <class T>
array<T, 2> orthogonal(random_source& random, std::size_t rows, std::size_t columns)
{
    if (rows == 0 || columns == 0) {
        throw shape_error("nn::orthogonal: a matrix " + shape_text(shape_of_rank<2>{rows, columns}) +
                          " has no entries; it needs at least one row and one column");
    }
    detail::allowed_rows(rows, columns);
    const std::uint64_t stream = random.next_stream();
    const bool flip = rows < columns;  // a wide matrix is computed as a tall one and transposed
    array<double, 2> A(flip ? shape_of_rank<2>{columns, rows} : shape_of_rank<2>{rows, columns});
    for (std::size_t i = 0; i < A.size(); ++i) A.data()[i] = normal(stream, i);

    const blas::detail::one_blas_thread guard;
    const auto [Q, R] = xt::linalg::qr(A);
    array<T, 2> U(shape_of_rank<2>{rows, columns});
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
            const std::size_t row = flip ? j : i, column = flip ? i : j;
            U(i, j) = static_cast<T>(R(column, column) < 0 ? -Q(row, column) : Q(row, column));
        }
    }
    return U;
}

}  // namespace heed::inline HEED_TARGET::nn
