// SPDX-License-Identifier: BSD-3-Clause

// The kernels for one target. Compiled with the flags of the target, with HEED_COMPILES, and with HEED_TABLE, the name
// of the function that fills its table.

#include "lists.hpp"

namespace heed::inline HEED_TARGET {

namespace kernels {
static void put(heed_kernel* table) { HEED_IN_KERNELS(HEED_PUT) }
}  // namespace kernels

namespace blas {
static void put(heed_kernel* table) { HEED_IN_BLAS(HEED_PUT) }
namespace detail {
static void put(heed_kernel* table) { HEED_IN_BLAS_DETAIL(HEED_PUT) }
}  // namespace detail
}  // namespace blas

namespace ops::detail {
static void put(heed_kernel* table) { HEED_IN_OPERATIONS(HEED_PUT) }
}  // namespace ops::detail

}  // namespace heed::inline HEED_TARGET

extern "C" void HEED_TABLE(heed_kernel* table)
{
    heed::kernels::put(table);
    heed::blas::put(table);
    heed::blas::detail::put(table);
    heed::ops::detail::put(table);
}
