// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/match.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <support/scores.hpp>

using namespace heed;
using support::check_equation;
using support::check_promises;
using support::random;
namespace scalar = support::scalar;
using scalar::numbers;

namespace {

numbers closeness(const numbers& q, numbers h)
{
    for (double& x : h) x = -x;
    const numbers apart = scalar::plus(q, h);
    return {1 / (1 + std::sqrt(scalar::inner(apart, apart)))};
}

}  // namespace

TEST_CASE("match: its equation, gradient and contracts, and with a word")
{
    check_equation(
        [](std::size_t, std::size_t) { return score::match{}; },
        [](std::size_t, std::size_t) { return [](const auto& q, const numbers& h) { return closeness(q[0], h); }; },
        [](std::size_t, std::size_t D) { return support::plain_query{D}; });
    check_promises(score::match{}, support::plain_query{5});
    // Contracts of words over scores that do not project the query: score::with_word over dot.
    const auto Y = random({2, 5}, 53);
    const auto with_word = [Y = scalar::matrix_of(Y)](const auto& q, const numbers& h) {
        return closeness(scalar::plus(q[0], scalar::times(q[1], Y)), h);
    };
    support::check_values(support::soft(score::with_word{score::match{}, Y}), with_word, false,
                          support::query_with_word{5, 2}, 5);
}

TEST_CASE("match: 1 at the annotation itself, and its matrix is ops::match_matrix")
{
    const auto x = random({2, 3, 5}, 1), y = random({2, 4, 5}, 2);
    const auto A = ops::match_matrix(x, y);
    for (std::size_t s = 0; s < 3; ++s) {
        const auto e = score::match{}(ops::step_of(x, s), y);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 4; ++t) CHECK(e(b, t) == A(b, s, t));
        }
    }
    CHECK(score::match{}(ops::step_of(x, 1u), x)(1, 1) == 1);
}
