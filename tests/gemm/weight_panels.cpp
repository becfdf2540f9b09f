// SPDX-License-Identifier: BSD-3-Clause
#include <heed/gemm/weight_panels.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace {

using namespace heed;
using kernels::int8_panels;

std::vector<float> numbers(std::size_t count, double phase, double size = 1)
{
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double at = static_cast<double>(i);
        x[i] = static_cast<float>(size * std::sin(phase + 1.3 * at) * std::cos(0.37 * at + phase));
    }
    return x;
}

}  // namespace

TEST_CASE("products with a model's matrices use 8 bits only while the quantized weights are in use")
{
    const std::size_t K = 40, N = 24, R = 3;
    const auto W = numbers(2 * K * N, 1), x = numbers(R * K, 2), other = numbers(K * N, 1);
    kernels::int8_weights bytes;
    bytes.add(W.data(), 2 * K, N);
    const auto product = [&](const float* matrix) {
        std::vector<float> y(R * N, 1.0f);
        kernels::times_weights(R, N, K, x.data(), matrix, true, y.data());
        return y;
    };
    const auto floats = product(W.data()), lower = product(W.data() + K * N);
    CHECK(product(other.data()) == floats);
    {
        const kernels::int8_weights::in_use guard(&bytes);
        const auto upper = product(W.data());
        CHECK(upper != floats);
        for (std::size_t i = 0; i < upper.size(); ++i) CHECK(upper[i] == doctest::Approx(floats[i]).epsilon(0.05));
        // consecutive rows of a matrix, with the scales of the whole
        int8_panels part;
        std::vector<float> scales(N), must(R * N, 1.0f);
        int8_panels::column_scales(2 * K, N, W.data(), N, scales.data());
        part.pack(K, N, W.data() + K * N, N, scales.data());
        part.multiply(R, x.data(), K, must.data(), N, true);
        CHECK(product(W.data() + K * N) == must);
        CHECK(product(other.data()) == floats);
        {
            const kernels::int8_weights::in_use none(nullptr);
            CHECK(product(W.data()) == floats);
        }
        CHECK(product(W.data()) == upper);
    }
    CHECK(product(W.data()) == floats);
    CHECK(product(W.data() + K * N) == lower);
}

TEST_CASE("panels of doubles have no 8-bit form")
{
    const std::vector<double> W(6, 1.0);
    kernels::weight_panels<double> panels;
    CHECK_THROWS_WITH_AS(panels.pack(2, 3, W.data(), 3, kernels::weight_numbers::int8),
                         "int8: 8-bit weights require a model of float", error);
}
