// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>
#include <support/scalar_weights.hpp>
#include <support/tensors.hpp>

/// Normalizers with a history under scores per position and per dimension, and as plain loops.
namespace support::temporal_family {

using namespace heed;
using support::message_of, support::random;
using support::plain_query, support::query_with_word;
namespace scalar = support::scalar;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t all_steps = 1000;

using steps = std::vector<array<double, 2>>;

inline steps random_scores(const std::size_t (&shape)[2], std::size_t count, double scale)
{
    steps e;
    for (std::size_t s = 0; s < count; ++s) e.push_back(random(shape, 100 + s, scale));
    return e;
}

inline auto additive() { return score::additive{random({3, 4}, 11), random({5, 4}, 12), random({4}, 15)}; }
inline auto per_dimension()
{
    return score::additive_per_dimension{random({3, 4}, 21), random({5, 4}, 22), random({4, 5}, 24)};
}

inline scalar::score additive_equation()
{
    const auto s = additive();
    return scalar::additive(scalar::matrix_of(s.W), scalar::matrix_of(s.U), scalar::vector_of(s.v));
}
inline scalar::score per_dimension_equation()
{
    const auto s = per_dimension();
    return scalar::additive_per_dimension(scalar::matrix_of(s.W), scalar::matrix_of(s.U), scalar::matrix_of(s.V));
}

inline auto dot_with(const auto& normalize) { return attention{score::dot{}, normalize, combine::weighted_sum{}}; }

/// Compares values with weights per position, per dimension, or both.
inline void check_values_per_position(const auto& normalize, const scalar::weigher& weigh)
{
    scalar::check_values(dot_with(normalize), scalar::dot(), weigh, plain_query{5}, 5);
}
inline void check_values_per_dimension(const auto& normalize, const scalar::weigher& weigh)
{
    scalar::check_values(attention{per_dimension(), normalize, combine::elementwise_sum{}}, per_dimension_equation(),
                         weigh, plain_query{3}, 5);
}
inline void check_values(const auto& normalize, const scalar::weigher& weigh)
{
    check_values_per_position(normalize, weigh);
    check_values_per_dimension(normalize, weigh);
}

inline void check_verified(const auto& attend, const auto& describe)
{
    const auto report = verify(attend, {.query = 3, .width = 5, .steps = 5}, describe);
    CHECK_MESSAGE(bool(report), report.text());
}

/// Checks the contracts: with weights per position, and per dimension.
inline void check_mechanism(const auto& normalize)
{
    check_verified(dot_with(normalize), plain_query{5});
    check_verified(attention{per_dimension(), normalize, combine::elementwise_sum{}}, plain_query{3});
}

template <class A, class B>
double distance(const A& a, const B& b)
{
    double worst = 0;
    for (std::size_t t = 0; t < a.size(); ++t) worst = std::max(worst, support::distance(a[t], b[t]));
    return worst;
}

template <class A, class B>
bool same_bits(const A& a, const B& b)
{
    for (std::size_t t = 0; t < a.size(); ++t) {
        if (!support::same_bits(a[t], b[t])) return false;
    }
    return a.size() == b.size();
}

}  // namespace support::temporal_family
