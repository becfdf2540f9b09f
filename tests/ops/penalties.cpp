// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/penalties.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>

using namespace heed;
using support::random;

TEST_CASE("penalties equal their sums within both lengths, and have gradients")
{
    const auto weights = ops::square(random({4, 3, 5}, 1));
    const lengths source{5, 2, 0}, target{4, 2, 3};
    double doubly = 0, covered = 0, monotone = 0;
    for (std::size_t b = 0; b < 3; ++b) {
        double before = 0;
        for (std::size_t t = 0; t < target[b]; ++t) {
            double mean = 0;
            for (std::size_t i = 0; i < source[b]; ++i) mean += static_cast<double>(i) * weights(t, b, i);
            if (t > 0) monotone += std::max(0.0, before - mean);
            before = mean;
        }
        for (std::size_t i = 0; i < source[b]; ++i) {
            double sum = 0;
            for (std::size_t t = 0; t < target[b]; ++t) {
                covered += std::min(weights(t, b, i), sum);
                sum += weights(t, b, i);
            }
            doubly += (1 - sum) * (1 - sum);
        }
    }
    CHECK(ops::doubly_stochastic_penalty(weights, source, target)() == support::approx(doubly));
    CHECK(ops::coverage_penalty(weights, source, target)() == support::approx(covered));
    CHECK(ops::monotone_penalty(weights, source, target)() == support::approx(monotone));
    CHECK_GRADIENT([&](const auto& w) { return ops::doubly_stochastic_penalty(w, source, target); }, weights);
    CHECK_GRADIENT([&](const auto& w) { return ops::coverage_penalty(w, source, target); }, weights);
    CHECK_GRADIENT([&](const auto& w) { return ops::monotone_penalty(w, source, target); }, weights);
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::coverage_penalty(weights, source, lengths{5, 1, 1});
          }) == "penalty, target: the length of row 0 is 5 but there are only 4 positions");
}
