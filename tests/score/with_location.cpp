// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_location.hpp>

#include <heed/ad/ad.hpp>
#include <heed/score/with_neighbors.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <support/earlier_weights.hpp>
#include <support/gradients.hpp>

using namespace heed;
using namespace support::earlier_weights;
using support::random;

TEST_CASE("location-aware scores satisfy the contracts, also with filters wider than the sentence")
{
    const auto score = location_over(parameters.score()), wide = location_over(parameters.score(), 13);
    check_promises(score, scalar_location(score));
    check_promises(wide, scalar_location(wide));
    check_window(location_over(parameters.score(), 5));
}

TEST_CASE("weights per dimension: the state stores their mean")
{
    const auto V = random({sizes.alignment, sizes.width}, 71);
    const attention attend{location_over(score::additive_per_dimension{parameters.W, parameters.U, V}),
                           normalize::temporal{}, combine::elementwise_sum{}};
    support::check_gradients(attend, describe, sizes.width);
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    const auto now = attend.step(memory, random({2, sizes.query}, 2), attend.start(memory));
    array<double, 2> mean(shape_of_rank<2>{2, 4}, 0.0);
    for (std::size_t i = 0; i < now.weights.size(); ++i) {
        mean.data()[i / sizes.width] += now.weights.data()[i] / static_cast<double>(sizes.width);
    }
    CHECK(support::distance(now.state.score.features, ops::convolve(mean, attend.score.F)) < 1e-15);
}

TEST_CASE("initial weights can be given; arguments that do not fit are rejected")
{
    const attention attend{location_over(parameters.score()), normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 4, sizes.width}, 1), lengths{4, 2});
    array<double, 2> at_the_start(shape_of_rank<2>{2, 4}, 0.0);
    at_the_start(0, 0) = at_the_start(1, 0) = 1;
    const auto state = attend.score.start_from(memory, at_the_start);
    for (std::size_t k = 0; k < 2; ++k) {
        CHECK(state.features(0, 0, k) == attend.score.F(k, 1));
        CHECK(state.features(0, 1, k) == attend.score.F(k, 0));
        CHECK(state.features(0, 2, k) == 0);
    }
    const auto q = random({2, sizes.query}, 2);
    CHECK(support::distance(attend.step(memory, q, attend.start(memory, state)).weights,
                            attend.step(memory, q, attend.start(memory)).weights) > 1e-3);

    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                attend.score.start_from(memory, random({2, 3}, 1));
                            }),
                            "with_location::start_from: the weights are [2,3] but must be [2,4]"));
    const attention even{location_over(parameters.score(), 4), normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::contains(message([&] { even.start(memory); }), "their width must be odd"));
    const auto alien = attend.start(attend.on(random({2, 5, sizes.width}, 1)));
    CHECK(support::contains(message([&] { attend.step(memory, q, alien); }), "the state is [2,5"));
}

TEST_CASE("convolve: a product with the neighborhood, for any width, also wider than the sentence")
{
    const auto slide = [](const auto& x, const auto& F) { return ops::convolve(x, F); };
    for (const std::size_t reach : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{20}}) {
        const auto x = random({2, 7}, 1), F = random({3, 2 * reach + 1}, 2);
        array<double, 2> columns(shape_of_rank<2>{2 * reach + 1, 3});
        for (std::size_t n = 0; n < 3; ++n) {
            for (std::size_t i = 0; i < 2 * reach + 1; ++i) columns(i, n) = F(n, i);
        }
        CHECK(support::distance(slide(x, F), ops::linear(ops::neighborhood(x, reach), columns)) < 1e-14);
    }
    CHECK(slide(array<double, 2>{{0.0, 1.0, 0.0}}, array<double, 2>{{1.0, 2.0, 3.0}}) ==
          array<double, 3>{{{3.0}, {2.0}, {1.0}}});
    CHECK_GRADIENT(slide, random({2, 5}, 1), random({3, 3}, 2));
    CHECK_GRADIENT(slide, random({2, 2}, 1), random({1, 7}, 2));
    CHECK_GRADIENT(slide, random({1, 1}, 1), random({1, 1}, 2));
    CHECK(slide(random({2, 0}, 1), random({3, 5}, 2)).size() == 0);
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                slide(random({2, 5}, 1), random({3, 4}, 2));
                            }),
                            "convolve: the filters are [3,4], but their width must be odd"));
}
