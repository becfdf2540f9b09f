// SPDX-License-Identifier: BSD-3-Clause
//
// The tests of gemm/blas.cpp without a BLAS, and sizes that heed's own gemm splits.

#ifndef HEED_BLAS_NONE
#define HEED_BLAS_NONE
#endif

#include "blas.cpp"

#if defined(CXXBLAS_DRIVERS_CBLAS_H) || defined(CBLAS_H)
#error "heed includes a BLAS in a build without BLAS"
#endif

TEST_CASE("products deeper and wider than the packed blocks are correct")
{
    check_errors<float>(7, 70, 600, 0, 8 * static_cast<double>(std::numeric_limits<float>::epsilon()));
    check_errors<float>(3, 1030, 260, 3, 8 * static_cast<double>(std::numeric_limits<float>::epsilon()));
    check_errors<double>(3, 530, 520, 1, 8 * std::numeric_limits<double>::epsilon());
}
