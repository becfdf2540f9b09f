// SPDX-License-Identifier: BSD-3-Clause
//
// expect: HEED_BLAS_CBLAS uses <cblas\.h>, which clashes with xtensor-blas, already included
#define HEED_BLAS_CBLAS
#include <xtensor-blas/xblas.hpp>

#include <heed/gemm/blas.hpp>
