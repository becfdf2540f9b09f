// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/softmax.hpp>

#include <doctest/doctest.h>

#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>

using namespace heed;
using support::random;

TEST_CASE("softmax: shares of each score, 0 beyond the length, and a row without positions")
{
    const auto scores = random({3, 7}, 1, 3.0);
    const lengths real{7, 0, 4};
    const auto weights = normalize::softmax{}(scores, no_state{}, plain_step_context{real});
    for (std::size_t b = 0; b < 3; ++b) {
        double sum = 0;
        for (std::size_t j = 0; j < real[b]; ++j) sum += std::exp(scores(b, j));
        for (std::size_t j = 0; j < 7; ++j) {
            const double must = j < real[b] ? std::exp(scores(b, j)) / sum : 0;
            CHECK(std::abs(weights(b, j) - must) < 1e-15);
        }
    }
}
