// SPDX-License-Identifier: BSD-3-Clause
#include <support/contracts.hpp>
#include <support/mechanism_tests.hpp>

// Fine-grained attention by groups: between one weight per position and one per dimension. tests/products compares it
// with each in the limit (rewrites.cpp).

using namespace heed;
using support::random;
namespace scalar = support::scalar;
namespace running = heed::detail::verifying;

namespace {

using matrix = array<double, 2>;

score::additive_grouped<matrix> grouped(std::size_t Q, std::size_t D, std::size_t G)
{
    return {random({Q, 4}, 1), random({D, 4}, 2), random({4, G}, 3)};
}

template <class Score, class Normalize>
auto attention_of(Score score, Normalize normalize)
{
    return attention<Score, Normalize, combine::grouped_sum>{std::move(score), normalize, {}};
}

/// e^g = V_gᵀ tanh(W s + U h + Y y), with the word if any
scalar::score equation(const score::additive_grouped<matrix>& score)
{
    return scalar::additive_per_dimension(scalar::matrix_of(score.W), scalar::matrix_of(score.U),
                                          scalar::matrix_of(score.V));
}

/// The results of the loops for every step of every row: contexts c^d = Σ_t α_t^{g(d)} h_t^d and weights.
running::outcome<double> expected(const scalar::score& e, bool temporal, std::size_t G, const support::batch& of)
{
    const auto [B, T, D] = shape_of(of.annotations);
    running::outcome<double> all = of.nothing_yet();
    for (std::size_t b = 0; b < B; ++b) {
        // The loops sum one context per weight; here each group has one, so the contexts are summed again.
        const scalar::matrix sentence = of.sentence(b);
        const auto answers = scalar::attend(e, temporal, sentence, of.queries(b), 0);
        for (std::size_t s = 0; s < of.steps; ++s) {
            auto& weights = all[2 * s + 1].values;
            for (const auto& row : answers[s].weights) weights.insert(weights.end(), row.begin(), row.end());
            weights.insert(weights.end(), (T - of.real[b]) * G, 0.0);
            for (std::size_t d = 0; d < D; ++d) {
                double c = 0;
                for (std::size_t j = 0; j < of.real[b]; ++j) c += answers[s].weights[j][d / (D / G)] * sentence[j][d];
                all[2 * s].values.push_back(c);
            }
        }
    }
    return all;
}

void check_values(const auto& attend, const scalar::score& e, bool temporal, std::size_t G, std::size_t D,
                  const auto& describe)
{
    using running::form;
    const auto check = [&](const lengths& real, std::size_t positions, std::size_t steps) {
        const auto [p, at] = support::made_up(attend, describe, real, positions, steps, D);
        const auto must = expected(e, temporal, G, support::batch(p, at));
        support::check_close(running::results<form::step, double>(p, at), must, 1e-13);
        support::check_close(running::results<form::step_into, double>(p, at), must, 1e-13);
        support::check_close(running::results<form::many_queries, double>(p, at), support::contexts_of(must), 1e-13);
        ad::tape<double> on;
        support::check_close(running::results<form::step, double>(ad::lift(on, p), at), must, 1e-13);
    };
    check({5, 2, 0, 1}, 5, 4);
    check({1}, 1, 1);
    check({0}, 0, 2);
}

/// Calls f(name, attention, equation, temporal, describe)
template <class F>
void each_mechanism(std::size_t Q, std::size_t D, std::size_t G, F&& f)
{
    const auto base = grouped(Q, D, G);
    const matrix Y = random({2, 4}, 4);
    const auto with = scalar::additive_per_dimension_with_word(scalar::matrix_of(base.W), scalar::matrix_of(base.U),
                                                               scalar::matrix_of(base.V), scalar::matrix_of(Y));
    const support::plain_query plain{Q};
    const support::query_with_word word{Q, 2};
    f("softmax", attention_of(base, normalize::softmax{}), equation(base), false, plain);
    f("temporal", attention_of(base, normalize::temporal{}), equation(base), true, plain);
    f("with word, softmax", attention_of(score::with_word{base, Y}, normalize::softmax{}), with, false, word);
    f("with word, temporal", attention_of(score::with_word{base, Y}, normalize::temporal{}), with, true, word);
}

}  // namespace

TEST_CASE("values match the equations: some groups, groups of one, one group")
{
    const auto check = [](std::size_t Q, std::size_t D, std::size_t G) {
        CAPTURE(D);
        CAPTURE(G);
        each_mechanism(Q, D, G,
                       [&](const std::string& name, const auto& attend, const auto& e, bool temporal, auto describe) {
                           support::about(name, [&] { check_values(attend, e, temporal, G, D, describe); });
                       });
    };
    check(3, 6, 2);
    check(3, 6, 3);
    check(3, 6, 6);
    check(3, 6, 1);
    check(5, 38, 2);  // a group wider than a register
}

TEST_CASE("gradients match finite differences, through the history")
{
    const auto base = grouped(3, 6, 2);
    support::check_gradients(attention_of(base, normalize::temporal{}), support::plain_query{3}, 6);
    support::check_gradients(attention_of(score::with_word{base, matrix(random({2, 4}, 4))}, normalize::softmax{}),
                             support::query_with_word{3, 2}, 6);
}

TEST_CASE("the contracts are satisfied")
{
    const auto base = grouped(3, 6, 3);
    support::check_report("softmax",
                          verify(attention_of(base, normalize::softmax{}), {.width = 6}, support::plain_query{3}));
    const score::with_word word{base, matrix(random({2, 4}, 4))};
    support::check_report("with word, temporal", verify(attention_of(word, normalize::temporal{}), {.width = 6},
                                                        support::query_with_word{3, 2}));
}

TEST_CASE("as many groups as V has columns, each with weights that sum to 1")
{
    const auto attend =
        attention_of(score::with_word{grouped(3, 6, 2), matrix(random({2, 4}, 4))}, normalize::temporal{});
    CHECK(attend.score.groups() == 2);
    const auto memory = attend.on(random({2, 5, 6}, 5), lengths{5, 3});
    const auto start = attend.start(memory);
    CHECK(shape_of(start.normalize.history) == shape_of_rank<3>{2, 5, 2});
    const auto now = attend.step(memory, state_and_word{random({2, 3}, 6), random({2, 2}, 7)}, start);
    CHECK(shape_of(now.weights) == shape_of_rank<3>{2, 5, 2});
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t g = 0; g < 2; ++g) {
            double sum = 0;
            for (std::size_t t = 0; t < 5; ++t) sum += now.weights(b, t, g);
            CHECK(sum == doctest::Approx(1.0).epsilon(1e-14));
        }
    }
    // A mask over positions applies to all groups.
    boolean_mask<2> mask(shape_of_rank<2>{2, 5});
    mask[1] = mask[3] = mask[5] = 1;
    const auto seen = attend.step(memory, state_and_word{random({2, 3}, 6), random({2, 2}, 7)}, start, mask);
    for (std::size_t i = 0; i < 10; ++i) {
        for (std::size_t g = 0; g < 2; ++g) CHECK((seen.weights.data()[i * 2 + g] != 0) == (mask[i] != 0));
    }
}

TEST_CASE("groups that do not divide the width are rejected")
{
    const auto attend = attention_of(grouped(3, 6, 4), normalize::softmax{});
    const auto memory = attend.on(random({2, 5, 6}, 5));
    const std::string message = support::message_of<shape_error>([&] {
        attend.step(memory, random({2, 3}, 6), attend.start(memory));
    });
    CHECK(message == "combine::grouped_sum: the weights [2,5,4] do not fit the values [2,5,6] "
                     "(grouped_sum: 4 groups for values of width 6, but the number of groups must divide the width)");
}
