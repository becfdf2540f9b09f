// SPDX-License-Identifier: BSD-3-Clause
// Built from pkg-config's flags alone: finds heed and xtensor, links a BLAS with the C interface.
#include <heed/core/tensor.hpp>
#include <heed/version.hpp>

extern "C" float cblas_sdot(int, const float*, int, const float*, int);

int main()
{
    const float x[] = {1, 2};
    return cblas_sdot(2, x, 1, x, 1) == 5.0f && HEED_VERSION > 0 ? 0 : 1;
}
