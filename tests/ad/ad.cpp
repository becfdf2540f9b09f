// SPDX-License-Identifier: BSD-3-Clause

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

TEST_CASE("one include is enough to fit a matrix: its gradient is xᵀ (xW − y), and gradient descent finds W")
{
    const auto x = random({20, 3}, 1), wanted = random({3, 2}, 2);
    const auto y = ops::linear(x, wanted);
    auto W = filled<double, 2>({3, 2}, 0.0);
    ad::tape<double> on;
    for (int step = 0; step < 2000; ++step) {
        const auto v = on.parameter(W);
        const auto off = ops::subtract(ops::linear(x, v), y);
        on.backward(ops::scale(ops::sum_last(ops::sum_last(ops::square(off))), 0.5));
        const auto gradient = on.gradient(v);
        if (step == 0) {
            for (std::size_t i = 0; i < 6; ++i) {
                double sum = 0;
                for (std::size_t r = 0; r < 20; ++r) sum -= x(r, i / 2) * y(r, i % 2);
                CHECK(gradient.data[i] == support::approx(sum));
            }
        }
        for (std::size_t i = 0; i < 6; ++i) W.data()[i] -= 0.02 * gradient.data[i];
        on.clear();
    }
    CHECK(support::distance(W, wanted) < 1e-9);
}
