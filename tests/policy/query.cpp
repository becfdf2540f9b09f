// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/query.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <support/mechanisms.hpp>

using namespace heed;
using support::random;

TEST_CASE("the previous word is passed directly, or projected for all steps at once")
{
    const score::with_word score{score::additive{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)},
                                 random({2, 4}, 4)};
    const attention attend{score, normalize::temporal{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 6, 5}, 4), lengths{6, 2});
    const auto states = random({2, 3, 3}, 5), words = random({2, 3, 2}, 6);
    const auto projected = attend.score.project_words(words);
    auto one = attend.start(memory), two = one;
    for (std::size_t s = 0; s < 3; ++s) {
        const auto a = attend.step(memory, state_and_word{ops::step_of(states, s), ops::step_of(words, s)}, one);
        const auto b =
            attend.step(memory, state_and_projected_word{ops::step_of(states, s), ops::step_of(projected, s)}, two);
        CHECK(support::distance(a.context, b.context) < 1e-14);
        CHECK(support::distance(a.weights, b.weights) < 1e-14);
        one = a.state;
        two = b.state;
    }
}
