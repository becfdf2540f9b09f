// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

/// Random numbers from a counter: the i-th number of stream s is a function of (seed, s, i), independent of the thread
/// count, compiler and standard library. Two integers are enough to resume a run.
namespace heed::inline HEED_TARGET {

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection; every output bit depends on all input bits.
constexpr std::uint64_t mix(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// A source of streams. Each call to next_stream() returns a new one, for a dropout mask, an initial matrix or a
/// shuffle.
struct random_source {
    std::uint64_t seed = 1;
    std::uint64_t streams = 0;

    std::uint64_t next_stream() { return mix(seed ^ mix(++streams)); }
};

/// The i-th number of a stream, uniform in [0,1).
constexpr double uniform(std::uint64_t stream, std::uint64_t i)
{
    return static_cast<double>(mix(stream + i * 0xd1342543de82ef95u) >> 11) * 0x1p-53;
}

/// The i-th number of a stream, standard normal (Box and Muller).
inline double normal(std::uint64_t stream, std::uint64_t i)
{
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(stream, 2 * i)));
    return radius * std::cos(2.0 * std::numbers::pi * uniform(stream, 2 * i + 1));
}

/// A uniformly distributed integer from 0 to `bound` − 1.
constexpr std::size_t below(std::size_t bound, std::uint64_t stream, std::uint64_t i)
{
    return static_cast<std::size_t>(uniform(stream, i) * static_cast<double>(bound));
}

}  // namespace heed::inline HEED_TARGET
