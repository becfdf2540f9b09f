// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/top_k.hpp>

#include <doctest/doctest.h>

#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>
#include <limits>

using namespace heed;
using support::random;

TEST_CASE("top_k: softmax over the k largest scores, and over ties with the k-th")
{
    const lengths real{5};
    const array<double, 2> scores{{1.0, 3.0, 2.0, 2.0, -std::numeric_limits<double>::infinity()}};
    for (const std::size_t k : {1U, 2U, 3U, 4U, 9U}) {
        CAPTURE(k);
        const double border = k == 1 ? 3 : k <= 3 ? 2 : 1;
        double sum = 0;
        for (std::size_t j = 0; j < 5; ++j) sum += scores(0, j) >= border ? std::exp(scores(0, j)) : 0;
        const auto weights = normalize::top_k{k}(scores, no_state{}, plain_step_context{real});
        for (std::size_t j = 0; j < 5; ++j) {
            const double must = scores(0, j) >= border ? std::exp(scores(0, j)) / sum : 0;
            CHECK(std::abs(weights(0, j) - must) < 1e-15);
        }
    }
}

TEST_CASE("top_k: k = 0 is rejected")
{
    const lengths real{3};
    const auto scores = random({1, 3}, 1);
    CHECK(support::contains(
        support::message_of<error>([&] { normalize::top_k{0}(scores, no_state{}, plain_step_context{real}); }),
        "top_k: k is 0"));
}
