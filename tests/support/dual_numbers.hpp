// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/core/dual_number.hpp>

/// Dual numbers for tests of operations on many numbers.
namespace heed::test {

/// Values around 0.9, slopes around 0, without special values.
template <class T>
std::vector<dual_number<T>> dual_numbers(std::size_t n, double phase = 0)
{
    std::vector<dual_number<T>> x;
    for (std::size_t i = 0; i < n; ++i) {
        const double k = static_cast<double>(i) + phase;
        x.push_back({static_cast<T>(0.9 + 0.7 * std::sin(1.3 * k)), static_cast<T>(std::cos(2.1 * k))});
    }
    return x;
}

/// Equal up to rounding; `operations`: their number.
template <class T>
bool near(const dual_number<T>& a, const dual_number<T>& b, std::size_t operations = 16)
{
    const double most = static_cast<double>(operations) * static_cast<double>(std::numeric_limits<T>::epsilon());
    return std::abs(static_cast<double>(a.value - b.value)) <= most * (1 + std::abs(static_cast<double>(b.value))) &&
           std::abs(static_cast<double>(a.slope - b.slope)) <= most * (1 + std::abs(static_cast<double>(b.slope)));
}

}  // namespace heed::test
