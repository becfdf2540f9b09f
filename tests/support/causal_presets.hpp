// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>

#include <heed/attention.hpp>
#include <support/approx.hpp>
#include <support/tensors.hpp>

/// Compares presets that run all queries of a sentence at once with the equations of their papers in scalar loops.
namespace support::causal_presets {

using namespace heed;

constexpr std::size_t L = 5, D = 4;

inline const auto q = random({1, L, D}, 1), k = random({1, L, D}, 2);

/// Contexts with the keys as values. w(s, j) are the weights, divided by their sum if `divides`.
inline array<double, 3> by_hand(const auto& w, bool divides)
{
    array<double, 3> all(shape_of_rank<3>{1, L, D}, 0.0);
    for (std::size_t s = 0; s < L; ++s) {
        double sum = 0;
        for (std::size_t j = 0; j <= s; ++j) sum += w(s, j);
        for (std::size_t j = 0; j <= s; ++j)
            for (std::size_t i = 0; i < D; ++i) all(0, s, i) += w(s, j) / (divides ? sum : 1) * k(0, j, i);
    }
    return all;
}

inline void check(const auto& attend, const auto& w, bool divides = true)
{
    const auto is = attend(attend.on(k), q, causal{}), must = by_hand(w, divides);
    for (std::size_t i = 0; i < must.size(); ++i) CHECK(is.data()[i] == support::approx(must.data()[i]));
}

inline double dot(std::size_t s, std::size_t j)
{
    double sum = 0;
    for (std::size_t i = 0; i < D; ++i) sum += q(0, s, i) * k(0, j, i);
    return sum;
}

/// The same, divided by √D.
inline double scaled(std::size_t s, std::size_t j) { return dot(s, j) / std::sqrt(double{D}); }

/// The inner product of vectors that are rotated by their positions.
inline double turned(std::size_t s, std::size_t j)
{
    double sum = 0;
    for (std::size_t m = 0; m < D / 2; ++m) {
        const double angle = (static_cast<double>(s) - static_cast<double>(j)) *
                             std::pow(10000.0, -2.0 * static_cast<double>(m) / double{D});
        const double a = q(0, s, 2 * m), b = q(0, s, 2 * m + 1), c = k(0, j, 2 * m), d = k(0, j, 2 * m + 1);
        sum += std::cos(angle) * (a * c + b * d) + std::sin(angle) * (a * d - b * c);
    }
    return sum;
}

}  // namespace support::causal_presets
