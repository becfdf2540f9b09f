// SPDX-License-Identifier: BSD-3-Clause
// All of the single header, and a product computed by the configured BLAS.
#include <heed/heed.hpp>

float product(const float* x)
{
    using heed::blas::op;
    float y = 0;
    heed::blas::gemm(op::plain, op::transposed, 1, 1, 2, x, x, 0.0F, &y);
    return y;
}
