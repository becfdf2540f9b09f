// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/noisy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/monotonic.hpp>

using namespace heed;
using support::random;
using namespace support::monotonic;

TEST_CASE("noise changes scores on the tape, and depends only on seed, step, row and position")
{
    const auto W = random({3, 3}, 1), query = random({2, 3}, 3);
    const auto annotations = random({2, 6, 3}, 2);
    const lengths real{6, 4};
    const auto weights = [&](const auto& policy, bool taped) {
        const attention attend{score::general{W}, policy, combine::weighted_sum{}};
        ad::tape<double> on;
        const auto run = [&](const auto& model) {
            const auto memory = model.on(annotations, real);
            const auto one = model.step(memory, query, model.start(memory));
            const auto two = model.step(memory, query, one.state);
            return copy_of(view_of(two.weights));
        };
        return taped ? run(ad::lift(on, attend)) : run(attend);
    };
    const normalize::monotonic plain{r};
    const auto quiet = weights(plain, true);
    CHECK(support::distance(weights(plain, false), quiet) < 1e-15);
    CHECK(support::same_bits(weights(normalize::noisy{1.0, 7, plain}, false), weights(plain, false)));
    const auto noise = weights(normalize::noisy{1.0, 7, plain}, true);
    CHECK(support::distance(noise, quiet) > 1e-3);
    CHECK(support::same_bits(noise, weights(normalize::noisy{1.0, 7, plain}, true)));
    CHECK(support::distance(noise, weights(normalize::noisy{1.0, 8, plain}, true)) > 1e-3);
    CHECK(support::distance(noise, weights(normalize::noisy{1.0, 7, plain, {.at_inference = true}}, false)) < 1e-14);
    CHECK(support::same_bits(weights(normalize::noisy{0.0, 7, plain}, true), quiet));
    for (const double sigma : {-1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
        CHECK_THROWS_WITH_AS(weights(normalize::noisy{sigma, 7, plain}, true), doctest::Contains("sigma"), error);
    }
}

TEST_CASE("the history of a normalizer inside noise holds noisy scores")
{
    const auto e = some_scores(2, 5, 3);
    const lengths real{5, 3};
    const auto at = [&real](std::size_t step) { return plain_step_context{real, step}; };
    std::vector<array<double, 2>> noisy;
    for (std::size_t step = 0; step < 3; ++step) {
        noisy.push_back(ops::add_normal(e[step], real, ops::stream_of(7, step, ops::chance::normal_noise), 0.5));
    }
    const auto check = [&](const auto& inner) {
        const auto is = weights_of(normalize::noisy{0.5, 7, inner, {.at_inference = true}}, e, at);
        const auto must = weights_of(inner, noisy, at), without = weights_of(inner, e, at);
        for (std::size_t step = 0; step < 3; ++step) {
            CHECK(support::same_bits(is[step], must[step]));
            CHECK(support::distance(is[step], without[step]) > 1e-3);
        }
    };
    check(normalize::temporal{});
    check(normalize::chunkwise{2, s, normalize::monotonic{r}});
}

TEST_CASE("noise is standard normal, keeps -inf and padding, and does not depend on lengths or dimensions")
{
    const array<double, 2> zeros(shape_of_rank<2>{40, 500}, 0.0);
    const auto g = ops::add_normal(zeros, lengths::full(40, 500), 5, 2.0);
    double mean = 0, squares = 0;
    for (const double x : g) mean += x / 20000, squares += x * x / 20000;
    CHECK(std::abs(mean) < 0.05);
    CHECK(std::abs(squares - 4) < 0.15);
    const auto few = ops::add_normal(array<double, 2>{{1.0, none, 2.0}}, lengths{2}, 5, 2.0);
    CHECK(few(0, 0) == 1 + g(0, 0));
    CHECK(few(0, 1) == none);
    CHECK(few(0, 2) == 0);
    const auto f = [](const auto& e) { return ops::add_normal(e, lengths{4, 0, 2}, 5, 2.0); };
    CHECK_GRADIENT(f, random({3, 4}, 1));
    CHECK_GRADIENT(f, random({3, 4, 2}, 2));
}
