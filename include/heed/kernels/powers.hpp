// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/workspace.hpp>

namespace heed::kernels {

/// The powers 1, γ, … γ^n.
template <class T>
const T* powers(double base, std::size_t n, scratch& here)
{
    T* const result = here.take<T>(n + 1);
    double power = 1;
    for (std::size_t i = 0; i <= n; ++i, power *= base) result[i] = static_cast<T>(power);
    return result;
}

}  // namespace heed::kernels
