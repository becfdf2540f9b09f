// SPDX-License-Identifier: BSD-3-Clause
//
// A control: with HEED_BLAS_CBLAS, heed can be included before and after <cblas.h>.
// expect-ok
#define HEED_BLAS_CBLAS
#include <heed/gemm/blas.hpp>

#include <cblas.h>

#include <heed/attention.hpp>
