// SPDX-License-Identifier: BSD-3-Clause

// The kernels of bfloat16 for one target, compiled as kernels.cpp.

#include "lists.hpp"

namespace heed::inline HEED_TARGET {

namespace blas::detail {
static void put_bfloat16(heed_kernel* table) { HEED_KERNELS_OF_BFLOAT16(HEED_PUT, float) }
}  // namespace blas::detail

namespace ops::detail {
static void put_bfloat16(heed_kernel* table) { HEED_OPERATIONS_OF_BFLOAT16_TILES(HEED_PUT, float) }
}  // namespace ops::detail

}  // namespace heed::inline HEED_TARGET

extern "C" void HEED_TABLE(heed_kernel* table)
{
    heed::blas::detail::put_bfloat16(table);
    heed::ops::detail::put_bfloat16(table);
}
