// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <heed/heed.hpp>
#include <support/contracts.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>

/// The tests of a score: its equation as a plain loop, its gradient and the contracts, under softmax and under temporal
/// modulation.
namespace support {

template <class Score>
using sum_of = std::conditional_t<Score::traits.weights == heed::weight_kind::per_position, heed::combine::weighted_sum,
                                  heed::combine::elementwise_sum>;

template <class Score>
auto soft(Score score)
{
    return heed::attention<Score, heed::normalize::softmax, sum_of<Score>>{std::move(score), {}, {}};
}
template <class Score>
auto temporal(Score score)
{
    return heed::attention<Score, heed::normalize::temporal, sum_of<Score>>{std::move(score), {}, {}};
}

/// `make(Q, D)` is the score, `equation(Q, D)` its loop and `describe(Q, D)` its query, for small and for odd sizes.
void check_equation(const auto& make, const auto& equation, const auto& describe)
{
    const auto check = [&](std::size_t Q, std::size_t D) {
        check_values(soft(make(Q, D)), equation(Q, D), false, describe(Q, D), D);
        check_values(temporal(make(Q, D)), equation(Q, D), true, describe(Q, D), D);
    };
    check(3, 5);
    check(7, 19);
}

/// Checks the gradient through the history, and the contracts, of a score of annotations of width 5.
void check_promises(const auto& score, const auto& describe)
{
    check_gradients(temporal(score), describe, 5);
    check_contracts("softmax", soft(score), describe);
    check_contracts("temporal", temporal(score), describe);
}

/// The same for a score of annotations wider than a register.
void check_wide(const auto& score, const auto& describe, std::size_t width)
{
    const heed::verification_sizes few{.width = width, .batch = 2, .positions = 3, .steps = 2};
    check_gradients(temporal(score), describe, width);
    check_report("wide", heed::verify(soft(score), few, describe));
}

/// Checks all of this for a score of any size: `make`, `equation` and `describe` as in check_equation.
void check_score(const auto& make, const auto& equation, const auto& describe)
{
    check_equation(make, equation, describe);
    check_promises(make(3, 5), describe(3, 5));
    check_wide(make(2, 9), describe(2, 9), 9);
}

/// The number of hidden units for annotations of width D: 4, 17 for 9, 37 for 19.
inline std::size_t hidden_units(std::size_t D) { return D < 9 ? 4 : 2 * D - 1; }

inline void says(auto&& f, const std::string& part)
{
    const std::string message = message_of<heed::shape_error>(f);
    CHECK_MESSAGE(contains(message, part), message);
}

namespace scalar {

inline numbers plus(numbers a, const numbers& b)
{
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}

}  // namespace scalar

}  // namespace support
