// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <heed/train/learning_rate.hpp>
#include <support/approx.hpp>

using namespace heed;

TEST_CASE("learning rates equal their formulas")
{
    const train::inverse_square_root rate{5e-3, 2000, 1e-7};
    CHECK(rate(1) == doctest::Approx(1e-7 + (5e-3 - 1e-7) / 2000).epsilon(1e-12));
    CHECK(rate(2000) == doctest::Approx(5e-3).epsilon(1e-12));
    CHECK(rate(8000) == doctest::Approx(2.5e-3).epsilon(1e-12));
    // The form of Vaswani et al.: d^-1/2 · min(t^-1/2, t · warm_up^-3/2).
    const train::inverse_square_root theirs{1 / std::sqrt(512.0 * 4000), 4000};
    for (const std::size_t t : {std::size_t{1}, std::size_t{100}, std::size_t{4000}, std::size_t{9000}}) {
        const auto step = static_cast<double>(t);
        const double must = std::min(1 / std::sqrt(step), step * std::pow(4000.0, -1.5)) / std::sqrt(512.0);
        CHECK(theirs(t) == doctest::Approx(must).epsilon(1e-12));
    }
    CHECK(train::inverse_square_root{1, 0}(4) == support::approx(0.5));
    const train::halving half{1, 5};
    CHECK(half(1) == 1);
    CHECK(half(5) == 1);
    CHECK(half(6) == 0.5);
    CHECK(half(8) == 0.125);
}
