// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/ratio.hpp>

#include <doctest/doctest.h>

#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

using namespace heed;
using support::random;

TEST_CASE("ratio: shares of the decayed sum")
{
    auto scores = random({3, 7}, 1);
    for (std::size_t i = 0; i < scores.size(); ++i) scores.data()[i] = std::abs(scores.data()[i]) + 0.1;
    const lengths real{7, 0, 4};
    for (const double decay : {1.0, 0.8}) {
        CAPTURE(decay);
        const auto weights = normalize::ratio{decay}(scores, no_state{}, plain_step_context{real});
        for (std::size_t b = 0; b < 3; ++b) {
            double sum = 0;
            for (std::size_t j = 0; j < real[b]; ++j)
                sum += std::pow(decay, static_cast<double>(real[b] - 1 - j)) * scores(b, j);
            for (std::size_t j = 0; j < 7; ++j) {
                const double must =
                    j < real[b] ? std::pow(decay, static_cast<double>(real[b] - 1 - j)) * scores(b, j) / sum : 0;
                CHECK(std::abs(weights(b, j) - must) < 1e-14);
            }
        }
    }
}

TEST_CASE("ratio: scores with a sum that has no finite inverse")
{
    const float least = std::numeric_limits<float>::denorm_min();
    array<float, 2> scores(shape_of_rank<2>{1, 2});
    scores(0, 0) = least;
    scores(0, 1) = 3 * least;
    const auto weights = normalize::ratio{}(scores, no_state{}, plain_step_context{lengths{2}});
    CHECK(weights(0, 0) == 0.25f);
    CHECK(weights(0, 1) == 0.75f);
}

TEST_CASE("ratio: a row of zeros has weights of 0")
{
    const lengths real{3};
    const array<double, 2> zeros(shape_of_rank<2>{1, 3}, 0.0);
    const auto weights = normalize::ratio{}(zeros, no_state{}, plain_step_context{real});
    for (std::size_t j = 0; j < 3; ++j) CHECK(weights(0, j) == 0);
}
