// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/concat.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <support/scalar_translation.hpp>
#include <support/scores.hpp>

using namespace heed;
using support::check_equation;
using support::check_promises;
using support::random;
using support::says;
using support::soft;
namespace scalar = support::scalar;
using scalar::numbers;

TEST_CASE("concat: its equation, gradient and contracts")
{
    // vᵀ tanh(W [s; h_j]), of the concatenated vector
    const auto W = [](std::size_t Q, std::size_t D) { return random({Q + D, 4}, 41); };
    const auto v = random({4}, 44);
    check_equation(
        [&](std::size_t Q, std::size_t D) {
            return score::concat{W(Q, D), v, Q};
        },
        [&](std::size_t Q, std::size_t D) {
            return [W = scalar::matrix_of(W(Q, D)), v = scalar::vector_of(v)](const auto& q, const auto& h) {
                return numbers{scalar::inner(v, scalar::hidden({scalar::times(scalar::joined(q[0], h), W)}))};
            };
        },
        [](std::size_t Q, std::size_t) { return support::plain_query{Q}; });
    check_promises(score::concat{W(3, 5), v, 3}, support::plain_query{3});
}

TEST_CASE("a word over concat equals a word over additive with W split in two")
{
    for (const auto& [Q, D] : {std::pair<std::size_t, std::size_t>{3, 5}, {4, 4}}) {
        const auto W = random({Q + D, 7}, 1);
        const auto v = random({7}, 4);
        array<double, 2> above(shape_of_rank<2>{Q, 7}), below(shape_of_rank<2>{D, 7});
        std::copy_n(W.data(), Q * 7, above.data());
        std::copy_n(W.data() + Q * 7, D * 7, below.data());
        // Two equal halves need no argument.
        const auto one = Q == D ? score::concat{W, v} : score::concat{W, v, Q};
        const auto Y = random({2, 7}, 5);
        const auto weights = [&, Q = Q, D = D](const auto& score) {
            const auto attend = soft(score::with_word{score, Y});
            const auto memory = attend.on(random({2, 6, D}, 2), lengths{6, 4});
            const state_and_word query{random({2, Q}, 3), random({2, 2}, 6)};
            return attend.step(memory, query, attend.start(memory)).weights;
        };
        CHECK(support::distance(weights(one), weights(score::additive{above, below, v})) < 1e-14);
    }
}

TEST_CASE("concat: the row where W is split")
{
    const auto v = random({7}, 1);
    says(
        [&] {
            soft(score::concat{random({9, 7}, 2), v}).on(random({2, 6, 5}, 3));
        },
        "score::concat: W is [9,7] and the query has half of its rows; W has Q + D rows, so "
        "give Q, as in concat{W, v, Q}");
    says([&] { soft(score::concat{random({9, 7}, 2), v, 10}).on(random({2, 6, 5}, 3)); }, "10 of its rows");
    says(
        [&] {
            soft(score::concat{random({8, 7}, 2), v}).on(random({2, 6, 5}, 3));
        },
        "linear: x is [2,6,5] and the matrix is [4,7]");
    const auto attend = soft(score::concat{random({8, 7}, 2), v, 3});
    const auto memory = attend.on(random({2, 6, 5}, 3));
    says(
        [&] {
            attend.step(memory, random({2, 4}, 4), attend.start(memory));
        },
        "linear: x is [2,4] and the matrix is [3,7]");
}

TEST_CASE("additive and concat have exactly the paper's parameters")
{
    // A peer's additive attention is Σ_i v_i tanh(q_i + k_i), without W and U; another has biases that no paper has.
    const auto W = random({3, 4}, 1), U = random({5, 4}, 2), joined = random({8, 4}, 3);
    const auto v = random({4}, 4);
    const auto names_of = [](const auto& score) {
        std::string names;
        for_each_parameter(score, [&](const std::string& name, const auto& x) {
            names += name + " " + shape_text(shape_of(x)) + " ";
        });
        return names;
    };
    CHECK(names_of(score::additive{W, U, v}) == "W [3,4] U [5,4] v [4] ");
    CHECK(names_of(score::concat{joined, v, 3}) == "W [8,4] v [4] ");
    const auto zeros = [](std::size_t rows, std::size_t n) { return filled<double, 2>({rows, n}, 0.0); };
    const array<double, 3> nothing = filled<double, 3>({1, 2, 5}, 0.0);
    const auto h = random({1, 2, 5}, 5);
    const auto check = [&](const auto& score) {
        // tanh(0) = 0: a bias before or after it would be visible.
        const auto none = score(zeros(1, 3), score.prepare(nothing));
        CHECK(none(0, 0) == 0);
        CHECK(none(0, 1) == 0);
        // Both sides pass through their matrices: another W or another U gives another score.
        const auto e = score(random({1, 3}, 6), score.prepare(h));
        auto other = score;
        other.W(0, 1) += 1;
        CHECK(other(random({1, 3}, 6), score.prepare(h))(0, 0) != e(0, 0));
    };
    check(score::additive{W, U, v});
    check(score::concat{joined, v, 3});
    auto other = U;
    other(1, 1) += 1;
    CHECK(score::additive{W, other, v}.prepare(h)(0, 0, 1) != score::additive{W, U, v}.prepare(h)(0, 0, 1));
}
