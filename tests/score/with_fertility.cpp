// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/with_fertility.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/coverage.hpp>
#include <support/gradients.hpp>

#include <cmath>

using namespace heed;
using namespace support::coverages;
using support::random;

TEST_CASE("share divides by the fertility")
{
    array<double, 2> fertility = random({2, 3}, 3);
    for (double& f : fertility) f = 0.5 + std::abs(f);
    CHECK_GRADIENT([](const auto& a, const auto& f) { return ops::share(a, f); }, random({2, 3}, 2), fertility);
    CHECK(ops::share(array<double, 2>{{0.5}}, array<double, 2>{{2.0}})(0, 0) == 0.25);
    // An underflowed fertility: a large number, never a division by 0.
    CHECK(ops::share(array<double, 2>{{0.0, 0.5}}, array<double, 2>{{0.0, 0.0}}) ==
          array<double, 2>{{0.0, 0.5 / 1e-6}});
    ad::tape<double> on;
    const array<double, 2> none{{0.0}}, half{{0.5}};
    const auto f = on.parameter(none), a = on.parameter(half);
    on.backward(ops::dot(ops::share(a, f), array<double, 2>{{1.0}}));
    CHECK(on.gradient(f).data[0] == 0);
    CHECK(on.gradient(a).data[0] == support::approx(1e6));

    CHECK(support::contains(support::message_of<shape_error>([&] {
                                ops::share(random({2, 4}, 2), fertility);
                            }),
                            "share: the fertility is [2,3] but must be [2,4]"));
}

TEST_CASE(
    "accumulated coverage with fertility matches its equations, satisfies the contracts, and passes finite differences")
{
    const auto score = fertility_over(parameters.score());
    check_promises(score, scalar_fertility(score), describe_state);
}

TEST_CASE("accumulated coverage sums to the number of steps, divided by the fertility")
{
    auto score = fertility_over(parameters.score());
    score.U_f.fill(0.0);  // σ(0) = ½
    score.N = 2;          // Φ = 1
    const attention attend{score, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(random({2, 5, sizes.width}, 1), lengths{5, 3});
    auto state = attend.start(memory);
    CHECK(support::distance(state.score.coverage, array<double, 2>(shape_of_rank<2>{2, 5}, 0.0)) == 0);
    for (std::size_t t = 1; t <= 3; ++t) {
        state = attend.step(memory, random({2, sizes.query}, t), state).state;
        for (std::size_t b = 0; b < 2; ++b) {
            double sum = 0;
            for (std::size_t j = 0; j < 5; ++j) sum += state.score.coverage(b, j);
            CHECK(sum == doctest::Approx(static_cast<double>(t)).epsilon(1e-14));
        }
    }
}
