// SPDX-License-Identifier: BSD-3-Clause
//
// expect: <cblas\.h> clashes with xtensor-blas, which heed uses; define HEED_BLAS_CBLAS
#if __has_include(<cblas.h>)
#include <cblas.h>
#else
#define CBLAS_H
#endif

#include <heed/gemm/blas.hpp>
