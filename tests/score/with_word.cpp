// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_word.hpp>

#include <doctest/doctest.h>

#include <support/scores.hpp>

using namespace heed;
using support::random;
using support::soft;
namespace scalar = support::scalar;

TEST_CASE("a word over a score that already adds a word: both words, each in its way")
{
    const auto W = random({3, 5}, 1), Y = random({2, 5}, 2), Z = random({4, 5}, 3);
    const auto b = random({5}, 4);
    const auto h = random({2, 4, 5}, 5), s = random({2, 6, 3}, 6), g = random({2, 6, 5}, 7), y = random({2, 6, 2}, 8),
               before = random({2, 6, 4}, 9);
    const lengths real{4, 2};
    const auto check = [&](const auto& both, const auto& asked, const auto& one, const auto& must) {
        const auto memory = both.on(h, real), other = one.on(h, real);
        CHECK(support::distance(both(memory, asked), one(other, must)) < 1e-13);
        CHECK(support::distance(both.step(memory, asked.step(2), both.start(memory)).weights,
                                one.step(other, must.step(2), one.start(other)).weights) < 1e-13);
    };
    // W h + b + g + Y y
    check(soft(score::with_word{score::conv_s2s{W, b}, Y}), state_and_word{state_and_word{s, g}, y},
          soft(score::conv_s2s{W, b}), state_and_word{s, ops::add(g, ops::linear(y, Y))});
    // W s + Y y_{t-1} + Z y_{t-2}
    const auto nearest = score::with_word{score::general{W}, Y};
    check(soft(score::with_word{nearest, Z}), state_and_word{state_and_word{s, y}, before}, soft(nearest),
          state_and_projected_word{s, ops::add(ops::linear(y, Y), ops::linear(before, Z))});
}

TEST_CASE("a word over additive scores, per position and per dimension: equations, gradients and contracts")
{
    const auto Y = [](std::size_t D) { return random({2, support::hidden_units(D)}, 13); };
    const auto describe = [](std::size_t Q, std::size_t) { return support::query_with_word{Q, 2}; };
    const auto base = [](std::size_t Q, std::size_t D) {
        const std::size_t A = support::hidden_units(D);
        return score::additive{random({Q, A}, 11), random({D, A}, 12), random({A}, 15)};
    };
    support::check_score(
        [&](std::size_t Q, std::size_t D) {
            return score::with_word{base(Q, D), Y(D)};
        },
        [&](std::size_t Q, std::size_t D) {
            const auto s = base(Q, D);
            return scalar::additive_with_word(scalar::matrix_of(s.W), scalar::matrix_of(s.U), scalar::vector_of(s.v),
                                              scalar::matrix_of(Y(D)));
        },
        describe);
    const auto fine = [](std::size_t Q, std::size_t D) {
        const std::size_t A = support::hidden_units(D);
        return score::additive_per_dimension{random({Q, A}, 21), random({D, A}, 22), random({A, D}, 24)};
    };
    support::check_score(
        [&](std::size_t Q, std::size_t D) {
            return score::with_word{fine(Q, D), Y(D)};
        },
        [&](std::size_t Q, std::size_t D) {
            const auto s = fine(Q, D);
            return scalar::additive_per_dimension_with_word(scalar::matrix_of(s.W), scalar::matrix_of(s.U),
                                                            scalar::matrix_of(s.V), scalar::matrix_of(Y(D)));
        },
        describe);
}

TEST_CASE("a word over dot: its gradient and contracts")
{
    support::check_promises(score::with_word{score::dot{}, random({2, 5}, 53)}, support::query_with_word{5, 2});
}
