// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_coverage.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <support/approx.hpp>
#include <support/coverage.hpp>
#include <support/gradients.hpp>

using namespace heed;
using namespace support::coverages;
using support::random;

TEST_CASE("coverage embeddings match their equations, satisfy the contracts, and pass finite differences")
{
    const auto score = coverage_over(parameters.score());
    check_promises(score, scalar_coverage(score), describe);
}

TEST_CASE("trap: z keeps the old coverage, r acts after the product")
{
    // Many GRU cells swap z and 1 - z: with such a cell, coverage would run backwards (docs/explanation/decisions.md).
    // σ(±1e3) is 1 or 0: z = 1 ignores the new input, z = 0 drops the old vector.
    const auto c = random({2, 4, N}, 1);
    const auto alpha = random({2, 4}, 2);
    const auto y = array<double, 2>(shape_of_rank<2>{2, 1}, 1.0);
    const auto gates = [&](double z, double r) {
        auto cell = nn::coverage_gru{array<double, 2>(shape_of_rank<2>{1, 3 * N}, 0.0),
                                     array<double, 1>(shape_of_rank<1>{3 * N}, 0.0), random({N, 3 * N}, 3)};
        for (std::size_t i = 0; i < N; ++i) cell.W(0, i) = z, cell.W(0, N + i) = r, cell.W(0, 2 * N + i) = 0.25;
        return cell;
    };
    CHECK(support::same_bits(gates(1e3, 0).step(y, alpha, c), c));
    for (const double r : {1e3, -1e3}) {
        const auto cell = gates(-1e3, r);
        const auto next = cell.step(y, alpha, c);
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t j = 0; j < 4; ++j) {
                for (std::size_t i = 0; i < N; ++i) {
                    double product = 0;
                    for (std::size_t k = 0; k < N; ++k) product += c(b, j, k) * cell.U(k, 2 * N + i);
                    CHECK(next(b, j, i) == doctest::Approx(std::tanh(0.25 + (r > 0 ? product : 0.0))).epsilon(1e-13));
                }
            }
        }
    }
    // Half open everywhere except in the product: r ⊙ (U c), which differs from U (r ⊙ c) if r differs among
    // dimensions.
    auto cell = gates(-1e3, 0);
    cell.W(0, N) = 1e3;
    cell.W(0, N + 1) = -1e3;
    const auto next = cell.step(y, alpha, c);
    CHECK(next(0, 0, 1) == doctest::Approx(std::tanh(0.25)).epsilon(1e-14));  // its own product has r = 0
}

TEST_CASE("trap: a step's score does not depend on its own weights, and the first step uses c_0 unchanged")
{
    // Known bugs of peers: a coverage that included the current step, and a configured coverage that for years no score
    // read.
    const attention attend{coverage_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 3});
    const auto s = random({2, sizes.query}, 2);
    const auto y = random({2, sizes.word}, 3), other = random({2, sizes.word}, 4);
    const auto c_0 = ops::clear_padding(random({2, 4, N}, 5), memory.real);
    const auto start = attend.start(memory, attend.score.start_from(memory, c_0));

    // Step 1: additive with C c_0 in its keys, for any word.
    const attention plain{parameters.score(), normalize::softmax{}, combine::weighted_sum{}};
    auto keys = memory;
    keys.keys = ops::add(memory.keys, ops::linear(c_0, attend.score.C));
    const auto first = attend.step(memory, state_and_word{s, y}, start);
    CHECK(support::distance(first.weights, plain.compose(keys, s, plain.start(keys)).weights) < 1e-15);
    CHECK(support::same_bits(attend.step(memory, state_and_word{s, other}, start).weights, first.weights));
    // The next state still has c_0: the word that step 1 emits is not known before step 2.
    CHECK(support::same_bits(first.state.score.coverage, c_0));
    CHECK(support::same_bits(first.state.score.weights, first.weights));

    // Step 2 reads c_1 = GRU(c_0, y_1, α_1), without α_2.
    const auto c_1 = attend.score.cell.step(y, first.weights, c_0);
    keys.keys = ops::add(memory.keys, ops::linear(c_1, attend.score.C));
    const auto second = attend.step(memory, state_and_word{s, y}, first.state);
    CHECK(support::distance(second.weights, plain.compose(keys, s, plain.start(keys)).weights) < 1e-15);
    CHECK(support::distance(second.weights, first.weights) > 1e-3);
    CHECK(support::same_bits(second.state.score.coverage, c_1));
    // An update without α_1 gives other weights, so the test can fail.
    keys.keys = ops::add(memory.keys, ops::linear(c_0, attend.score.C));
    CHECK(support::distance(second.weights, plain.compose(keys, s, plain.start(keys)).weights) > 1e-3);
}

TEST_CASE("c_0 is looked up for each source word, and the table gets a gradient")
{
    const attention attend{coverage_over(parameters.score()), normalize::temporal{}, combine::weighted_sum{}};
    const auto fertilities = random({6, N}, 9);
    word_ids words(3, 2);  // [T,B]
    words.ids = {4, 0, 1, 5, 4, 0};
    const auto h = random({2, 3, sizes.width}, 1);
    const auto s = random({2, sizes.query}, 2), y = random({2, sizes.word}, 3);
    const auto loss = [&](const auto& table, const auto& annotations, const auto& state, const auto& word) {
        const auto memory = attend.on(annotations, lengths{3, 2});
        const auto c_0 = ops::swap_axes(ops::lookup(table, words));
        const auto first = attend.step(memory, state_and_word{state, word},
                                       attend.start(memory, attend.score.start_from(memory, c_0)));
        return ops::concat(first.context, attend.step(memory, state_and_word{state, word}, first.state).context);
    };
    const auto found = support::gradient_of<0b1111>(loss, fertilities, h, s, y);
    CHECK_MESSAGE(bool(found), found.text());
    ad::tape<double> on;
    const auto table = on.parameter(fertilities);
    const auto out = loss(table, h, s, y);
    on.backward(ops::dot(out, support::uneven(out.shape())));
    const auto gradient = copy_of(on.gradient(table));
    CHECK(gradient(4, 0) != 0);  // three times in the batch, twice as a real word
    CHECK(gradient(2, 0) == 0);  // not in the batch
}

TEST_CASE("coverage over other scores: it is added to their keys")
{
    // With weights per dimension, and over a score without projected keys. Over a score that reads the word: over.cpp.
    const auto V = random({sizes.alignment, sizes.width}, 71);
    support::check_gradients(attention{coverage_over(score::additive_per_dimension{parameters.W, parameters.U, V}),
                                       normalize::softmax{}, combine::elementwise_sum{}},
                             describe, sizes.width);
    support::check_gradients(attention{score::with_coverage{score::general{random({sizes.query, sizes.width}, 73)},
                                                            random({N, sizes.width}, 74), cell_of(N)},
                                       normalize::softmax{}, combine::weighted_sum{}},
                             describe, sizes.width);
}

TEST_CASE("coverage in a window; coverage and masks")
{
    const auto score = coverage_over(fertility_over(parameters.score()));
    // Over a score with a separate state.
    const attention local{score, normalize::local_m{1, normalize::temporal{}}, combine::weighted_sum{}};
    support::check_gradients(local, describe, sizes.width);
    support::check_selection(local, describe, sizes.width);

    // A masked position changes nothing.
    const attention attend{score, normalize::temporal{}, combine::weighted_sum{}};
    const auto h = random({1, 4, sizes.width}, 1);
    array<double, 3> without(shape_of_rank<3>{1, 3, sizes.width});
    std::copy_n(h.data(), sizes.width, without.data());
    std::copy_n(h.data() + 2 * sizes.width, 2 * sizes.width, without.data() + sizes.width);
    boolean_mask<2> mask(shape_of_rank<2>{1, 4});
    mask[0] = mask[2] = mask[3] = 1;
    const auto hidden = attend.on(h, mask);
    const auto shorter = attend.on(without);
    auto a = attend.start(hidden), b = attend.start(shorter);
    for (std::size_t t = 0; t < 3; ++t) {
        const state_and_word query{random({1, sizes.query}, 10 + t), random({1, sizes.word}, 20 + t)};
        auto masked = attend.step(hidden, query, a), gone = attend.step(shorter, query, b);
        CHECK(support::distance(masked.context, gone.context) < 1e-14);
        CHECK(masked.weights(0, 1) == 0);
        CHECK(masked.weights(0, 3) == doctest::Approx(gone.weights(0, 2)).epsilon(1e-13));
        a = masked.state;
        b = gone.state;
    }
}

TEST_CASE("with C = 0 coverage changes nothing; nested, both states have an effect")
{
    auto none = coverage_over(fertility_over(parameters.score()));
    none.C.fill(0.0);
    const attention both{none, normalize::softmax{}, combine::weighted_sum{}};
    const attention one{fertility_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 4, sizes.width}, 1);
    const auto memory = both.on(h, lengths{4, 2});
    auto a = both.start(memory);
    auto b = one.start(memory);
    for (std::size_t t = 0; t < 4; ++t) {
        const auto s = random({2, sizes.query}, 10 + t);
        auto with = both.step(memory, state_and_word{s, random({2, sizes.word}, 20 + t)}, a);
        auto without = one.step(memory, s, b);
        CHECK(support::distance(with.weights, without.weights) < 1e-15);
        a = with.state;
        b = without.state;
    }
}

TEST_CASE("coverage: arguments that do not fit are rejected")
{
    const attention attend{coverage_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 3});
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                attend.score.start_from(memory, random({2, 3, N}, 1));
                            }),
                            "with_coverage::start_from: the coverage is [2,3,3] but must be [2,4,3]"));
    const attention gated{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::contains(message([&] {
                                gated.score.start_from(memory, random({2, 4, 2}, 1));
                            }),
                            "with_gated_coverage::start_from: the coverage is [2,4,2] but must be [2,4,3]"));
    const auto alien = attend.start(attend.on(random({2, 5, sizes.width}, 1)));
    const state_and_word query{random({2, sizes.query}, 1), random({2, sizes.word}, 2)};
    CHECK(support::contains(message([&] { attend.step(memory, query, alien); }),
                            "the state is [2,5,3] but must be [2,4,3]"));
    const attention fertile{fertility_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto other = fertile.start(fertile.on(random({2, 5, sizes.width}, 1)));
    CHECK(support::contains(message([&] { fertile.step(memory, query.state, other); }),
                            "the state is [2,5] but must be [2,4]"));
}
