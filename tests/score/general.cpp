// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/general.hpp>

#include <doctest/doctest.h>

#include <support/scores.hpp>

using namespace heed;
using support::random;
using support::soft;
namespace scalar = support::scalar;

TEST_CASE("general: its equation, gradient and contracts; a matrix that does not fit is rejected")
{
    const auto W = [](std::size_t Q, std::size_t D) { return random({Q, D}, 1); };
    support::check_score([&](std::size_t Q, std::size_t D) { return score::general{W(Q, D)}; },
                         [&](std::size_t Q, std::size_t D) { return scalar::general(scalar::matrix_of(W(Q, D))); },
                         [](std::size_t Q, std::size_t) { return support::plain_query{Q}; });
    const auto attend = soft(score::general{W(3, 5)});
    const auto memory = attend.on(random({2, 4, 5}, 1));
    support::says(
        [&] {
            attend.step(memory, random({2, 4}, 2), attend.start(memory));
        },
        "linear: x is [2,4] and the matrix is [3,5]");
}

TEST_CASE("a word over dot equals a word over general with the identity matrix")
{
    array<double, 2> eye = filled<double, 2>({5, 5}, 0.0);
    for (std::size_t i = 0; i < 5; ++i) eye(i, i) = 1;
    const auto Y = random({2, 5}, 1), s = random({3, 5}, 2), y = random({3, 2}, 3);
    const auto h = random({3, 4, 5}, 4);
    const auto a = soft(score::with_word{score::dot{}, Y});
    const auto b = soft(score::with_word{score::general{eye}, Y});
    const auto memory = a.on(h, lengths{4, 1, 0});
    const auto is = a.step(memory, state_and_word{s, y}, a.start(memory));
    const auto must = b.step(b.on(h, lengths{4, 1, 0}), state_and_word{s, y}, b.start(memory));
    CHECK(support::distance(is.weights, must.weights) < 1e-15);
    const auto projected = a.step(memory, state_and_projected_word{s, a.score.project_words(y)}, a.start(memory));
    CHECK(support::same_bits(projected.weights, is.weights));
}
