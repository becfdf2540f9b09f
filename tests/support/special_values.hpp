// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

/// Numbers with special rules in arithmetic, and comparisons.
namespace heed::test {

template <class T>
const std::vector<T>& special_values()
{
    using limits = std::numeric_limits<T>;
    static const std::vector<T> all{limits::quiet_NaN(),
                                    limits::infinity(),
                                    -limits::infinity(),
                                    T(0),
                                    T(-0.0),
                                    limits::denorm_min(),
                                    -limits::denorm_min(),
                                    limits::min() / 2,
                                    limits::min(),
                                    limits::max(),
                                    limits::lowest(),
                                    T(1),
                                    T(-1)};
    return all;
}

/// Expects NaN for NaN, zero with its sign, the same infinity, and otherwise a number within `units` in the last place.
template <class T>
bool agree(T got, T want, double units = 0)
{
    if (std::isnan(want)) return std::isnan(got);
    if (got == want) return std::signbit(got) == std::signbit(want);
    if (!std::isfinite(got) || !std::isfinite(want)) return false;
    const T last = std::max(std::abs(want) * std::numeric_limits<T>::epsilon(), std::numeric_limits<T>::denorm_min());
    return static_cast<double>(std::abs(got - want) / last) <= units;
}

/// Less than a register of `lanes`, exactly one, and more: with and without a remainder.
inline std::vector<std::size_t> awkward_sizes(std::size_t lanes)
{
    return {1, lanes - 1, lanes, lanes + 1, 2 * lanes + 1};
}

}  // namespace heed::test
