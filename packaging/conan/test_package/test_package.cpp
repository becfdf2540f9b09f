// SPDX-License-Identifier: BSD-3-Clause
// Multiplies two matrices with the BLAS of the package, and reads a number from a safetensors header.
#include <cstdio>

#include <heed/core/tensor.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/version.hpp>

int main()
{
    using heed::blas::op;
    const float x[] = {1, 2};
    float y = 0;
    heed::blas::gemm(op::plain, op::transposed, 1, 1, 2, x, x, 0.0F, &y);
    std::printf("heed %s: 1*1 + 2*2 = %g\n", HEED_VERSION_STRING, static_cast<double>(y));
    return y == 5.0F ? 0 : 1;
}
