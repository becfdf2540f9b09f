// SPDX-License-Identifier: BSD-3-Clause
//
// expect: xtensor-blas would use its own slow loops; define HAVE_CBLAS=1
#define XTENSOR_USE_FLENS_BLAS
#include <heed/gemm/blas.hpp>
