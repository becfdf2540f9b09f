// SPDX-License-Identifier: BSD-3-Clause
// Built from pkg-config's flags alone: finds heed, xtensor and xtensor-blas, links a BLAS with the C interface.
#include <heed/core/tensor.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/version.hpp>

int main()
{
    using heed::blas::op;
    const float x[] = {1, 2};
    float y = 0;
    heed::blas::gemm(op::plain, op::transposed, 1, 1, 2, x, x, 0.0F, &y);
    return y == 5.0F && HEED_VERSION > 0 ? 0 : 1;
}
