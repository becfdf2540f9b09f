// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include <heed/heed.hpp>
#include <support/contracts.hpp>
#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>

/// The tests of a score: its equation as a plain loop, its gradient and the contracts, under softmax and under temporal
/// modulation.
namespace support {

template <class Score>
auto soft(Score score)
{
    return heed::attention<Score, heed::normalize::softmax, heed::combine::weighted_sum>{std::move(score), {}, {}};
}
template <class Score>
auto temporal(Score score)
{
    return heed::attention<Score, heed::normalize::temporal, heed::combine::weighted_sum>{std::move(score), {}, {}};
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

/// The gradient through history and the contracts of a score of annotations of width 5.
void check_promises(const auto& score, const auto& describe)
{
    check_gradients(temporal(score), describe, 5);
    check_report("softmax", heed::verify(soft(score), {.width = 5}, describe));
    check_report("temporal", heed::verify(temporal(score), {.width = 5}, describe));
}

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
