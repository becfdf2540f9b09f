// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_neighbors.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <support/earlier_weights.hpp>
#include <support/gradients.hpp>

using namespace heed;
using namespace support::earlier_weights;
using support::random;

TEST_CASE("scores of the neighbors' weights satisfy the contracts: of the last step, and of all steps")
{
    const auto markov = neighbors_over(parameters.score(), score::last_weights{});
    const auto fertility = neighbors_over(parameters.score(), score::all_weights{});
    check_promises(markov, scalar_neighbors(markov, false));
    check_memory(attention{fertility, normalize::temporal{}, combine::weighted_sum{}}, parameters,
                 scalar_neighbors(fertility, true), true, describe, sizes.width);  // its gradient is checked below
    check_window(fertility);
}

TEST_CASE("nested: the biases of one model")
{
    // Cohn et al.'s model has all three biases; any order gives the same scores.
    const auto base = parameters.score();
    const attention one{
        positions_over(neighbors_over(neighbors_over(base, score::last_weights{}), score::all_weights{})),
        normalize::softmax{}, combine::weighted_sum{}};
    const attention other{
        neighbors_over(positions_over(neighbors_over(base, score::all_weights{})), score::last_weights{}),
        normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = one.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    auto a = one.start(memory);
    auto b = other.start(memory);
    for (std::size_t t = 0; t < 4; ++t) {
        const auto s = random({2, sizes.query}, 10 + t);
        auto first = one.step(memory, s, a);
        auto second = other.step(memory, s, b);
        CHECK(support::distance(first.weights, second.weights) < 1e-14);
        a = first.state;
        b = second.state;
    }
    support::check_selection(one, describe, sizes.width);
    support::check_gradients(one, describe, sizes.width);
}

TEST_CASE("an even number of neighbors is rejected")
{
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    const attention pairs{score::with_neighbors{parameters.score(), random({4, sizes.alignment}, 1)},
                          normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::contains(message([&] {
                                pairs.start(pairs.on(random({2, 4, sizes.width}, 1)));
                            }),
                            "with_neighbors: M is [4,4], but must have an odd"));
}

TEST_CASE("neighborhood: the values around each position, 0 beyond the edges")
{
    const auto near = [](const auto& x) { return ops::neighborhood(x, std::size_t{1}); };
    CHECK(near(array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{0.0, 1.0, 2.0}, {1.0, 2.0, 3.0}, {2.0, 3.0, 0.0}}});
    CHECK(ops::neighborhood(array<double, 2>{{5.0}}, std::size_t{2}) == array<double, 3>{{{0.0, 0.0, 5.0, 0.0, 0.0}}});
    CHECK(ops::neighborhood(array<double, 2>{{5.0, 6.0}}, std::size_t{0}) == array<double, 3>{{{5.0}, {6.0}}});
    CHECK_GRADIENT(near, random({2, 5}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighborhood(x, std::size_t{4}); }, random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::neighborhood(x, std::size_t{2}); }, random({1, 1}, 1));
}
