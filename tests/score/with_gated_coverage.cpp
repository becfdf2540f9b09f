// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_gated_coverage.hpp>

#include <doctest/doctest.h>

#include <limits>

#include <support/approx.hpp>
#include <support/coverage.hpp>
#include <support/gradients.hpp>

using namespace heed;
using namespace support::coverages;
using support::random;

TEST_CASE("gated coverage matches its equations, satisfies the contracts, and passes finite differences")
{
    const auto score = gated_over(parameters.score());
    check_promises(score, scalar_gated_coverage(score), describe_state);
}

TEST_CASE("gated coverage reads the state of a step, not its word, and never its own weights")
{
    const attention attend{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const attention plain{parameters.score(), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 4, sizes.width}, 1);
    const auto memory = attend.on(h, lengths{4, 3});
    const auto s = random({2, sizes.query}, 2), other = random({2, sizes.query}, 3);
    const auto y = random({2, sizes.word}, 4);

    // Step 1: C_0 is 0, so only additive.
    const auto first = attend.step(memory, s, attend.start(memory));
    CHECK(support::distance(first.weights, plain.step(memory, s, plain.start(memory)).weights) < 1e-15);
    CHECK(support::same_bits(attend.step(memory, state_and_word{s, y}, attend.start(memory)).state.score.coverage,
                             first.state.score.coverage));

    // Step 2: C_1 depends on the query of step 1, not on the current query.
    const auto& cell = attend.score.cell;
    const auto C_1 = cell.step(cell.project(memory.values), s, first.weights, cell_start(memory));
    CHECK(support::same_bits(first.state.score.coverage, C_1));
    auto keys = memory;
    keys.keys = ops::add(memory.keys, ops::linear(C_1, attend.score.V));
    const auto second = attend.step(memory, other, first.state);
    CHECK(support::distance(second.weights, plain.compose(keys, other, plain.start(keys)).weights) < 1e-15);
    const auto without = plain.step(memory, other, plain.start(memory)).weights;
    CHECK(support::distance(second.weights, without) > 1e-3);  // the test can fail
}

TEST_CASE("gated coverage over other scores, in a window, and with a mask")
{
    const auto V = random({sizes.alignment, sizes.width}, 71);
    support::check_gradients(attention{gated_over(score::additive_per_dimension{parameters.W, parameters.U, V}),
                                       normalize::softmax{}, combine::elementwise_sum{}},
                             describe_state, sizes.width);
    const attention local{gated_over(coverage_over(parameters.score())), normalize::local_m{1, normalize::temporal{}},
                          combine::weighted_sum{}};
    support::check_gradients(local, describe, sizes.width);
    support::check_selection(local, describe, sizes.width);

    // A masked position changes nothing.
    const attention attend{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({1, 3, sizes.width}, 1);
    array<double, 3> without(shape_of_rank<3>{1, 2, sizes.width});
    std::copy_n(h.data(), sizes.width, without.data());
    std::copy_n(h.data() + 2 * sizes.width, sizes.width, without.data() + sizes.width);
    boolean_mask<2> mask(shape_of_rank<2>{1, 3});
    mask[0] = mask[2] = 1;
    const auto hidden = attend.on(h, mask);
    const auto shorter = attend.on(without);
    auto a = attend.start(hidden), b = attend.start(shorter);
    for (std::size_t t = 0; t < 3; ++t) {
        const auto query = random({1, sizes.query}, 10 + t);
        auto masked = attend.step(hidden, query, a), gone = attend.step(shorter, query, b);
        CHECK(support::distance(masked.context, gone.context) < 1e-14);
        CHECK(masked.weights(0, 1) == 0);
        a = masked.state;
        b = gone.state;
    }
}

TEST_CASE("gated coverage may start with a given coverage, and does not read its padding")
{
    const attention attend{gated_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto h = random({2, 4, sizes.width}, 1);
    const auto s = random({2, sizes.query}, 2);
    boolean_mask<2> mask(shape_of_rank<2>{2, 4});
    for (const std::size_t real : {0u, 2u, 3u, 4u, 5u}) mask[real] = 1;  // row 0: not 1; row 1: 0 and 1
    const auto two_steps = [&](const auto& memory, const auto& C_0) {
        const auto start = attend.start(memory, attend.score.start_from(memory, C_0));
        const auto seen = attend.step(memory, s, start);
        return ops::concat(seen.context, attend.step(memory, s, seen.state).context);
    };
    auto C_0 = random({2, 4, N}, 5);
    const auto check = [&](auto&& on) {
        CHECK_GRADIENT([&](const auto& C, const auto& x) { return two_steps(on(x), C); }, C_0, h);
        const auto results = [&](const array<double, 3>& C) {
            ad::tape<double> tape;
            const auto lifted = tape.parameter(C), x = tape.parameter(h);
            const auto y = two_steps(on(x), lifted);
            tape.backward(ops::dot(y, support::uneven(y.shape())));
            return std::tuple{copy_of(y.value()), copy_of(tape.gradient(lifted)), copy_of(tape.gradient(x))};
        };
        auto with_nan = C_0;
        for (std::size_t k = 0; k < N; ++k) {
            with_nan(1, 2, k) = std::numeric_limits<double>::quiet_NaN();
            with_nan(1, 3, k) = std::numeric_limits<double>::infinity();
        }
        const auto clean = results(C_0), rubbish = results(with_nan);
        CHECK(support::same_bits(std::get<0>(clean), std::get<0>(rubbish)));
        CHECK(support::same_bits(std::get<1>(clean), std::get<1>(rubbish)));
        CHECK(support::same_bits(std::get<2>(clean), std::get<2>(rubbish)));
        // It is read at visible positions.
        auto zero = C_0;
        zero.fill(0.0);
        CHECK(support::distance(std::get<0>(results(zero)), std::get<0>(clean)) > 1e-3);
    };
    check([&](const auto& x) { return attend.on(x, lengths{4, 2}); });
    check([&](const auto& x) { return attend.on(x, mask); });
}
