// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/sparse.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>

using namespace heed;
using support::random;

TEST_CASE("sparsemax and entmax15: the threshold matches bisection")
{
    const lengths real{7, 0, 1, 4};
    const auto e = random({4, 7}, 1);
    const auto check = [&](const auto& weights, auto&& weight) {
        for (std::size_t b = 0; b < 4; ++b) {
            double low = -10, high = 10;  // the sum of the weights decreases with the threshold
            for (int step = 0; step < 200; ++step) {
                const double middle = (low + high) / 2;
                double sum = 0;
                for (std::size_t t = 0; t < real[b]; ++t) sum += weight(e(b, t), middle);
                (sum > 1 ? low : high) = middle;
            }
            for (std::size_t t = 0; t < 7; ++t)
                CHECK(weights(b, t) == support::approx(t < real[b] ? weight(e(b, t), low) : 0.0));
        }
    };
    check(ops::sparsemax(e, real), [](double x, double least) { return std::max(x - least, 0.0); });
    check(ops::entmax15(e, real), [](double x, double least) { return std::pow(std::max(x / 2 - least, 0.0), 2); });
}

TEST_CASE("the gradient of sparse weights is that of their Jacobian, and 0 where the weight is 0")
{
    const lengths real{5};
    const array<double, 2> scores{{0.9, -0.4, 0.7, 0.2, -2}}, upstream{{0.3, -7, -1.1, 0.4, 1e6}};
    const auto gradient = [&](const auto& operation, double power) {
        ad::tape<double> on;
        const auto e = on.parameter(scores);
        const auto weights = operation(e, real);
        on.backward(ops::dot(weights, upstream));
        double mass = 0, pulled = 0;
        array<double, 2> s(scores.shape(), 0.0);
        for (std::size_t j = 0; j < 5; ++j) {
            const double w = weights.data()[j];
            s(0, j) = w > 0 ? std::pow(w, power) : 0;
            mass += s(0, j);
            pulled += s(0, j) * upstream(0, j);
        }
        std::size_t zeros = 0;
        for (std::size_t j = 0; j < 5; ++j) {
            CHECK(on.gradient(e).data[j] == support::approx(s(0, j) * (upstream(0, j) - pulled / mass)));
            if (weights.data()[j] == 0) {
                CHECK(on.gradient(e).data[j] == 0);
                ++zeros;
            }
        }
        return zeros;
    };
    CHECK(gradient(ops::sparsemax, 0) == 3);
    CHECK(gradient(ops::entmax15, 0.5) == 1);
}
