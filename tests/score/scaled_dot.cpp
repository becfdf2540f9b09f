// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/scaled_dot.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <support/scores.hpp>

using namespace heed;
using support::check_equation;
using support::check_promises;
using support::random;
namespace scalar = support::scalar;
using scalar::numbers;

TEST_CASE("scaled dot: its equation, gradient and contracts, also with a word")
{
    const auto plain = [](std::size_t, std::size_t D) { return support::plain_query{D}; };
    const auto scaled = [](std::size_t, std::size_t D) {
        return [D](const auto& q, const auto& h) {
            return numbers{scalar::inner(q[0], h) / std::sqrt(static_cast<double>(D))};
        };
    };
    check_equation([](std::size_t, std::size_t) { return score::scaled_dot{}; }, scaled, plain);
    check_promises(score::scaled_dot{}, support::plain_query{5});

    // Contracts of words over scores that do not project the query: score::with_word over dot.
    const auto Y = random({2, 5}, 43);
    const auto with_word = [Y = scalar::matrix_of(Y)](const auto& q, const auto& h) {
        return numbers{0.5 * scalar::inner(scalar::plus(q[0], scalar::times(q[1], Y)), h)};
    };
    support::check_values(support::soft(score::with_word{score::scaled_dot{.scale = 0.5}, Y}), with_word, false,
                          support::query_with_word{5, 2}, 5);
}

TEST_CASE("scaled dot: the scale follows from the shapes, or is given")
{
    const auto q = random({2, 16}, 1);
    const auto k = random({2, 3, 16}, 2);
    CHECK(support::same_bits(score::scaled_dot{}(q, k), ops::dot_per_position(ops::scale(q, 0.25), k)));
    CHECK(support::same_bits(score::scaled_dot{2.0}(q, k), ops::dot_per_position(ops::scale(q, 2), k)));
    CHECK(support::distance(score::scaled_dot{1.0}(q, k), score::dot{}(q, k)) == 0);
    // The scale is not a parameter, but copies of the score keep it.
    CHECK(parameter_count(score::scaled_dot{2.0}) == 0);
    const auto copied = [](const auto& score) {
        return transform_parameters(score, [](const std::string&, const auto& x) { return x; });
    };
    CHECK(copied(score::with_word{score::scaled_dot{2.0}, random({2, 16}, 3)}).base.scale == 2.0);
    CHECK(copied(score::with_word{score::cosine{7.0}, random({2, 16}, 3)}).base.scale == 7.0);
    CHECK(copied(score::concat{random({8, 7}, 1), random({7}, 2), 3}).query == 3);
}
