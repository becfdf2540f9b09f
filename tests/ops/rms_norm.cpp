// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/rms_norm.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>

using namespace heed;
using support::random;

TEST_CASE("root mean square normalization matches its equation, for whole rows and slices, and its gradient")
{
    const auto x = random({3, 2, 6}, 1);
    for (const std::size_t n : {std::size_t{6}, std::size_t{3}, std::size_t{1}}) {
        const auto gain = random({n}, 2);
        const auto y = ops::rms_norm(x, gain, 1e-3);
        for (std::size_t i = 0; i < x.size(); ++i) {
            double squares = 0;
            for (std::size_t k = 0; k < n; ++k) squares += std::pow(x.data()[i / n * n + k], 2);
            CHECK(y.data()[i] ==
                  support::approx(gain(i % n) * x.data()[i] / std::sqrt(squares / static_cast<double>(n) + 1e-3)));
        }
        CHECK_GRADIENT([](const auto& v, const auto& g) { return ops::rms_norm(v, g, 1e-3); }, x, gain);
    }
}

TEST_CASE("rows of zeros stay zeros; misfits are rejected")
{
    const auto y = ops::rms_norm(array<double, 2>({2, 4}, 0.0), random({4}, 1), 1e-5);
    for (const double v : y) CHECK(v == 0);
    const auto says = [](auto&& f) { return support::message_of<shape_error>(f); };
    CHECK(says([] {
              (void)ops::rms_norm(random({2, 4}, 1), random({3}, 1), 1e-5);
          }) == "rms_norm: a gain of 3 numbers for x [2,4]; the gain's size must divide the last axis of x");
    CHECK(support::contains(says([] {
                                (void)ops::rms_norm(random({2, 4}, 1), random({4}, 1), 0.0);
                            }),
                            "but must be above 0"));
}
