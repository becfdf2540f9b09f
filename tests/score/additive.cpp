// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/additive.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <support/scores.hpp>

using namespace heed;
using support::random;
using support::says;
namespace scalar = support::scalar;

TEST_CASE("additive: its equation, gradient and contracts, also with a bias")
{
    const auto make = [](std::size_t Q, std::size_t D) {
        const std::size_t A = support::hidden_units(D);
        return score::additive{random({Q, A}, 47), random({D, A}, 46), random({A}, 44)};
    };
    const auto equation = [&](std::size_t Q, std::size_t D) {
        const auto score = make(Q, D);
        return scalar::additive(scalar::matrix_of(score.W), scalar::matrix_of(score.U), scalar::vector_of(score.v));
    };
    support::check_score(make, equation, [](std::size_t Q, std::size_t) { return support::plain_query{Q}; });
    // The next test checks its values.
    const auto plain = make(3, 5);
    support::check_promises(score::additive{plain.W, plain.U, plain.v, random({4}, 48)}, support::plain_query{3});
}

TEST_CASE(
    "a bias equals an additional row of W with a constant query input of 1: values and gradients, in steps and tiles")
{
    constexpr std::size_t B = 2, T = 70, Q = 3, D = 6, A = 5;
    const auto W = random({Q, A}, 1), U = random({D, A}, 2), V = random({A, D}, 3),
               V_2 = random({A, std::size_t{2}}, 4);
    const auto v = random({A}, 5), b = random({A}, 6);
    const auto h = random({B, T, D}, 7);
    const lengths real{T, 33};
    const auto above = [](const array<double, 2>& one, const auto& two) {
        array<double, 2> both(shape_of_rank<2>{one.shape()[0] + two.size() / A, A});
        std::copy_n(two.data(), two.size(), std::copy_n(one.data(), one.size(), both.data()));
        return both;
    };
    const auto W_1 = above(W, b);

    const auto check = [&](const auto& one, const auto& other) {
        for (const std::size_t S : {std::size_t{2}, std::size_t{70}}) {
            const auto q = random({B, S, Q}, 8);
            const auto q_1 = ops::concat(q, filled<double, 3>({B, S, 1}, 1.0));
            ad::tape<double> on;
            const auto with = ad::lift(on, one);
            const auto without = ad::lift(on, other);
            const auto memory = with.on(h, real);
            const auto its_memory = without.on(h, real);
            const auto contexts = with(memory, q);
            const auto must = without(its_memory, q_1);
            CHECK(support::distance(contexts, must) < 1e-13);
            const auto step = with.step(memory, ops::step_of(q, 1), with.start(memory));
            CHECK(support::distance(step.context, ops::step_of(contexts, 1)) < 1e-13);
            const auto composed = with.compose(memory, ops::step_of(q, 1), with.start(memory));
            CHECK(support::distance(composed.context, ops::step_of(contexts, 1)) < 1e-13);

            on.backward(ops::add(ops::dot(contexts, support::uneven(contexts.shape())),
                                 ops::dot(must, support::uneven(must.shape()))));
            const auto of_bias = on.gradient(with.score.b);
            const auto of_other = on.gradient(without.score.W);
            double most = 0;
            for (std::size_t i = 0; i < A; ++i) {
                CHECK(std::abs(of_bias.data[i] - of_other.data[Q * A + i]) < 1e-12);
                most = std::max(most, std::abs(of_bias.data[i]));
            }
            CHECK(most > 1e-3);
        }
    };
    const normalize::softmax soft;
    const combine::weighted_sum sum;
    check(attention{score::additive{W, U, v, b}, soft, sum}, attention{score::additive{W_1, U, v}, soft, sum});
    check(attention{score::concat{above(W, U), v, Q, b}, soft, sum},
          attention{score::concat{above(W_1, U), v, Q + 1}, soft, sum});
    check(attention{score::additive_per_dimension{W, U, V, b}, soft, combine::elementwise_sum{}},
          attention{score::additive_per_dimension{W_1, U, V}, soft, combine::elementwise_sum{}});
    check(attention{score::additive_grouped{W, U, V_2, b}, soft, combine::grouped_sum{}},
          attention{score::additive_grouped{W_1, U, V_2}, soft, combine::grouped_sum{}});

    std::string names;
    const score::concat joined{above(W, U), v, Q, b};
    for_each_parameter(joined,
                       [&](const std::string& name, const auto& x) { names += name + " " + shape_text(shape_of(x)); });
    CHECK(names == "W [9,5]v [5]b [5]");
    const attention wrong{score::additive{W, U, v, random({4}, 1)}, soft, sum};
    const auto memory = wrong.on(h, real);
    says(
        [&] {
            (void)wrong.step(memory, random({B, Q}, 9), wrong.start(memory));
        },
        "score::additive: the query [2,3] does not fit W [3,5], U [6,5], v [5], b [4]");
}
