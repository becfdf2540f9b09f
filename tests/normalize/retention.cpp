// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/retention.hpp>

#include <doctest/doctest.h>

#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>

using namespace heed;
using support::random;

TEST_CASE("retention: scores are weights, and decay with the age of the position")
{
    const auto scores = random({3, 7}, 1);
    const lengths real{7, 0, 4};
    for (const double decay : {1.0, 0.8}) {
        CAPTURE(decay);
        const auto weights = normalize::retention{decay}(scores, no_state{}, plain_step_context{real});
        for (std::size_t b = 0; b < 3; ++b) {
            for (std::size_t j = 0; j < 7; ++j) {
                const double must =
                    j < real[b] ? std::pow(decay, static_cast<double>(real[b] - 1 - j)) * scores(b, j) : 0;
                CHECK(std::abs(weights(b, j) - must) < 1e-14);
            }
        }
    }
}
