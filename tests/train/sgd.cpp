// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/sgd.hpp>
#include <support/one_table.hpp>
#include <support/optimizers.hpp>

using namespace heed;

TEST_CASE("gradient descent equals its formula")
{
    support::check_rule(train::sgd<double>({0.3}), [](double g, std::size_t) { return -0.3 * g; });
}

TEST_CASE("momentum, Nesterov momentum and weight decay equal PyTorch's formulas")
{
    for (const bool nesterov : {false, true}) {
        std::vector<double> m(21);
        support::check_rule(train::sgd_with_momentum<double>({.rate = 0.2, .momentum = 0.8, .nesterov = nesterov}),
                            [&](double g, std::size_t i) {
                                m[i] = 0.8 * m[i] + g;
                                return -0.2 * (nesterov ? g + 0.8 * m[i] : m[i]);
                            });
    }

    // Two steps with decay, computed manually: θ = 1, gradients 2 and 2.
    const auto two_steps = [](train::momentum_settings with) {
        support::one_table<array<double, 2>> module{filled<double, 2>({1, 5}, 1.0)};
        train::sgd_with_momentum<double> optimizer(with);
        ad::tape<double> on;
        for (int t = 0; t < 2; ++t) {
            on.clear();
            const auto lifted = ad::lift(on, module);
            on.backward(ops::dot(lifted.E, filled<double, 2>({1, 5}, 2.0)));
            optimizer.step(module, lifted, on);
        }
        for (std::size_t i = 1; i < 5; ++i) CHECK(module.E(0, i) == module.E(0, 0));
        return module.E(0, 0);
    };
    // g = 2.5, m = 2.5, θ = 0.75;  g = 2.375, m = 3.625, θ = 0.3875
    CHECK(std::abs(two_steps({0.1, 0.5, 0.5}) - 0.3875) < 1e-15);
    // g = 2.5, m = 2.5, θ = 1 − 0.1 (2.5 + 1.25) = 0.625;  g = 2.3125, m = 3.5625, θ = 0.625 − 0.1 · 4.09375
    CHECK(std::abs(two_steps({0.1, 0.5, 0.5, true}) - 0.215625) < 1e-15);
    // No momentum: 1 − 0.25 = 0.75, 0.75 − 0.2375
    CHECK(std::abs(two_steps({0.1, 0, 0.5}) - 0.5125) < 1e-15);
    // Only some parameters decay.
    std::string seen;
    const auto vectors = [&](const std::string& name, std::size_t rank) {
        seen += name + std::to_string(rank) + " ";
        return rank < 2;
    };
    CHECK(std::abs(two_steps({0.1, 0.5, 0.5, false, vectors}) - 0.5) < 1e-15);
    CHECK(seen == "E2 E2 ");
}

TEST_CASE("table rows that a batch does not use keep their values and moments")
{
    const auto of_sgd = support::moments_of_two_rows(train::sgd<double>({0.1}));
    CHECK(of_sgd[0].first.empty());
    CHECK(of_sgd[0].second.empty());
    const auto of_momentum = support::moments_of_two_rows(train::sgd_with_momentum<double>({.weight_decay = 0.1}));
    for (std::size_t i = 0; i < 20; ++i) CHECK((of_momentum[0].first[i] == 0) == (i / 4 != 1 && i / 4 != 3));
    CHECK(of_momentum[0].second.empty());
}
