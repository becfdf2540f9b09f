// SPDX-License-Identifier: BSD-3-Clause
#include <products/products.hpp>
#include <support/allocations.hpp>

namespace composition {

std::size_t allocations_so_far() { return support::allocations; }

}  // namespace composition
