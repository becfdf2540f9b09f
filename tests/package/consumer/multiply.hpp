// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/tensor.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/version.hpp>

/// [1,2] times [1,2] transposed, by the BLAS: 5.
inline float multiply_once()
{
    using heed::blas::op;
    const float x[] = {1, 2};
    float y = 0;
    heed::blas::gemm(op::plain, op::transposed, 1, 1, 2, x, x, 0.0F, &y);
    return y;
}
