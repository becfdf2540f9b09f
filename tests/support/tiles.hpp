// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/tiles.hpp>

/// One head of a sentence, for tests of tiles.
namespace heed::test {

/// The rounding tolerance of tiles.
template <class T>
inline constexpr double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());

/// The difference of a number from its expected value: absolute for small numbers, otherwise relative.
template <class T>
double far(T is, double must)
{
    return std::fabs(static_cast<double>(is) - must) / (1 + std::fabs(must));
}

/// `count` numbers between -size and size.
template <class T>
std::vector<T> waves(std::size_t count, double phase, double size = 1)
{
    std::vector<T> x(count);
    for (std::size_t i = 0; i < count; ++i)
        x[i] = static_cast<T>(size * std::sin(phase + 1.7 * static_cast<double>(i)));
    return x;
}

/// S queries, P keys and values.
template <class T>
struct head_of_numbers {
    std::size_t S, P, A, D;
    std::vector<T> queries, keys, values;
    std::vector<float> room;
    heed::detail::lane_memo memo;

    head_of_numbers(std::size_t queries_count, std::size_t positions, std::size_t width, std::size_t value_width)
        : S(queries_count),
          P(positions),
          A(width),
          D(value_width),
          queries(waves<T>(S * A, 1)),
          keys(waves<T>(P * A, 2)),
          values(waves<T>(P * D, 3)),
          room(heed::detail::lane_memo::room_for(S, P)),
          memo(room.data(), S, P)
    {}

    kernels::tiles::head<T> head()
    {
        kernels::tiles::head<T> of{
            {queries.data(), A}, {keys.data(), A}, {values.data(), D}, A, D, S, P, T(0.7), 0, 0, 0};
        of.memo = &memo;
        return of;
    }
    /// The scaled product of a query and a key.
    double score(std::size_t s, std::size_t j) const
    {
        double sum = 0;
        for (std::size_t i = 0; i < A; ++i)
            sum += static_cast<double>(queries[s * A + i]) * static_cast<double>(keys[j * A + i]);
        return 0.7 * sum;
    }
};

}  // namespace heed::test
