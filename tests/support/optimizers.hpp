// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <support/one_table.hpp>

/// Tests of the optimizers of heed/train.
namespace support {

/// Compares seven steps on Σ c ⊙ θ², clipped to a norm of 2, with `rule(g, i)`, which returns the change of θ_i.
template <class Optimizer, class Rule>
void check_rule(Optimizer optimizer, Rule rule)
{
    one_table<heed::array<double, 2>> module{gaussian_numbers(1, 3, 7)};
    const auto c = gaussian_numbers(2, 3, 7);
    std::vector<double> theta(module.E.begin(), module.E.end());
    heed::ad::tape<double> on;
    for (std::size_t t = 1; t <= 7; ++t) {
        on.clear();
        const auto lifted = heed::ad::lift(on, module);
        on.backward(heed::ops::dot(heed::ops::square(lifted.E), c));
        optimizer.step(module, lifted, on, 2.0);
        double squares = 0;
        for (std::size_t i = 0; i < 21; ++i) squares += std::pow(2 * theta[i] * c.data()[i], 2);
        const double scale = std::min(1.0, 2 / std::sqrt(squares));
        for (std::size_t i = 0; i < 21; ++i) {
            theta[i] += rule(scale * 2 * theta[i] * c.data()[i], i);
            CHECK(module.E.data()[i] == doctest::Approx(theta[i]).epsilon(1e-12));
        }
    }
    CHECK(optimizer.steps() == 7);
}

/// The moments of an optimizer after one step in which the batch looked up rows 1 and 3 of 5; checks that only these
/// rows change.
template <class Optimizer>
auto moments_of_two_rows(Optimizer optimizer)
{
    one_table<heed::array<double, 2>> module{gaussian_numbers(3, 5, 4)};
    const auto before = module.E;
    heed::ad::tape<double> on;
    const auto lifted = heed::ad::lift(on, module);
    heed::word_ids words(1, 2);
    words(0, 0) = 3, words(0, 1) = 1;
    const auto y = heed::ops::lookup(lifted.E, words);
    on.backward(heed::ops::dot(y, heed::filled<double, 3>({1, 2, 4}, 1.0)));
    optimizer.step(module, lifted, on);
    for (std::size_t row = 0; row < 5; ++row) {
        for (std::size_t i = 0; i < 4; ++i) CHECK((module.E(row, i) == before(row, i)) == (row != 1 && row != 3));
    }
    return optimizer.state();
}

}  // namespace support
