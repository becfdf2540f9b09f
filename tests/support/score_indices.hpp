// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <heed/simd/pack.hpp>
#include <heed/simd/score_index.hpp>

/// Score indices, and their functions compared with plain functions.
namespace heed::test {

/// A distant index: queries first, first + 1, ...
inline score_index place_at(std::int32_t query, std::int32_t key)
{
    score_index p;
    p.query = detail::counted_from(query);
    p.key = pack<std::int32_t>(key);
    return p;
}

/// Compares f(score, index) with plain(query, key), which computes the same with plain numbers, relative to `size`.
template <class T>
double worst(const auto& f, const auto& plain, double size = 1)
{
    double most = 0;
    for (const std::int32_t query : {0, 7, 1000, 65521, 16777213}) {
        for (const std::int32_t key : {0, 3, 999, 70001}) {
            const pack<T> y(f(pack<T>(0), place_at(query, key)));
            for (std::size_t i = 0; i < lane_count; ++i) {
                const double expected = plain(static_cast<double>(query) + static_cast<double>(i), key);
                const double off = std::abs(static_cast<double>(y[i]) - expected) / std::max(size, std::abs(expected));
                if (!(off <= most)) most = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
            }
        }
    }
    return most;
}

template <class T>
inline constexpr double last_place = static_cast<double>(std::numeric_limits<T>::epsilon());

}  // namespace heed::test
