// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/gated_linear.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <support/kernels.hpp>

// Gradients against finite differences are in tests/nn/gated_convolution.cpp.

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("gated linear units: plain loops agree", T, float, double)
{
    for (const std::size_t N : widths) {
        const auto v = some<T>(2 * N, 1), x = some<T>(N, 2), g = some<T>(N, 3), start = some<T>(2 * N, 4);
        std::vector<T> y(N), residual(N), d_v = start;
        gated_linear(N, v.data(), y.data());
        gated_residual(N, T(0.75), x.data(), v.data(), residual.data());
        gated_linear_backward(N, T(0.75), v.data(), g.data(), d_v.data());
        for (std::size_t i = 0; i < N; ++i) {
            const double a = v[i], s = sigmoid(v[N + i]), d = 0.75 * g[i];
            CHECK(std::abs(y[i] - a * s) <= few_roundings<T>);
            CHECK(std::abs(residual[i] - 0.75 * (x[i] + a * s)) <= few_roundings<T>);
            CHECK(std::abs(d_v[i] - (start[i] + d * s)) <= few_roundings<T>);
            CHECK(std::abs(d_v[N + i] - (start[N + i] + d * a * s * (1 - s))) <= few_roundings<T>);
        }
    }
}
