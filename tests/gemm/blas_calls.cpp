// SPDX-License-Identifier: BSD-3-Clause
//
// Products run in the BLAS that the program links, not in the loops of xtensor-blas. The linker option
// --wrap=cblas_sgemm and so on redirects these calls here first.

#include <doctest/doctest.h>

#include <heed/gemm/blas.hpp>

#include <vector>

namespace {

int calls = 0;

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): these names are the linker's.
#define HEED_COUNTED(T, gemm, gemv)                                                                                    \
    void __real_##gemm(int, int, int, int, int, int, T, const T*, int, const T*, int, T, T*, int);                     \
    void __wrap_##gemm(int order, int ta, int tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b,       \
                       int ldb, T beta, T* c, int ldc)                                                                 \
    {                                                                                                                  \
        ++calls;                                                                                                       \
        __real_##gemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                    \
    }                                                                                                                  \
    void __real_##gemv(int, int, int, int, T, const T*, int, const T*, int, T, T*, int);                               \
    void __wrap_##gemv(int order, int ta, int m, int n, T alpha, const T* a, int lda, const T* x, int incx, T beta,    \
                       T* y, int incy)                                                                                 \
    {                                                                                                                  \
        ++calls;                                                                                                       \
        __real_##gemv(order, ta, m, n, alpha, a, lda, x, incx, beta, y, incy);                                         \
    }
extern "C" {
HEED_COUNTED(float, cblas_sgemm, cblas_sgemv)
HEED_COUNTED(double, cblas_dgemm, cblas_dgemv)
}
// NOLINTEND(bugprone-reserved-identifier)

TEST_CASE_TEMPLATE("each product is one BLAS call", T, float, double)
{
    using heed::blas::op;
    for (const std::size_t rows : {1u, 3u}) {  // gemv and gemm
        const std::vector<T> a(rows * 2, T(2)), b(2 * 4, T(3));
        std::vector<T> c(rows * 4, T(1));
        calls = 0;
        heed::blas::gemm(op::plain, op::plain, rows, 4, 2, a.data(), b.data(), T(1), c.data());
        CHECK(calls == 1);
        CHECK(c == std::vector<T>(rows * 4, T(13)));
    }
}
