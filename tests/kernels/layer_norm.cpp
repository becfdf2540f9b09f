// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/layer_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <support/kernels.hpp>

// Gradients against finite differences are in tests/nn/layer_norm.cpp.

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("layer normalization: plain loops agree", T, float, double)
{
    constexpr std::size_t rows = 3;
    for (const std::size_t N : widths) {
        const auto x = some<T>(rows * N, 1), gain = some<T>(N, 2), bias = some<T>(N, 3), g = some<T>(rows * N, 4);
        const layer_norm_rows<T> of{rows, N, x.data(), gain.data(), bias.data(), T(0.01)};
        std::vector<T> moments(2 * rows), y(rows * N), d_x(rows * N), d_gain(N), d_bias(N);
        layer_norm(of, moments.data(), y.data());
        layer_norm_backward(of, moments.data(), g.data(), d_x.data(), d_gain.data(), d_bias.data());
        std::vector<double> of_gain(N), of_bias(N);
        const auto size = static_cast<double>(N);
        for (std::size_t r = 0; r < rows; ++r) {
            const auto row = [&](const std::vector<T>& all, std::size_t i) { return double(all[r * N + i]); };
            double mean = 0, variance = 0, d_mean = 0, d_slope = 0;
            for (std::size_t i = 0; i < N; ++i) mean += row(x, i) / size;
            for (std::size_t i = 0; i < N; ++i) variance += std::pow(row(x, i) - mean, 2) / size;
            const double scale = 1 / std::sqrt(variance + double(T(0.01)));
            const auto unit = [&](std::size_t i) { return (row(x, i) - mean) * scale; };
            for (std::size_t i = 0; i < N; ++i) {
                d_mean += row(g, i) * gain[i] / size;
                d_slope += row(g, i) * gain[i] * unit(i) / size;
                of_gain[i] += row(g, i) * unit(i);
                of_bias[i] += row(g, i);
            }
            for (std::size_t i = 0; i < N; ++i) {
                CHECK(std::abs(row(y, i) - (gain[i] * unit(i) + bias[i])) <= 4 * few_roundings<T>);
                const double must = scale * (row(g, i) * gain[i] - d_mean - unit(i) * d_slope);
                CHECK(std::abs(row(d_x, i) - must) <= 20 * few_roundings<T>);
            }
        }
        for (std::size_t i = 0; i < N; ++i) {
            CHECK(std::abs(d_gain[i] - of_gain[i]) <= 20 * few_roundings<T>);
            CHECK(std::abs(d_bias[i] - of_bias[i]) <= 4 * few_roundings<T>);
        }
    }
}

TEST_CASE("layer normalization: each gradient alone")
{
    constexpr std::size_t rows = 2, N = 5;
    const auto x = some<double>(rows * N, 1), gain = some<double>(N, 2), g = some<double>(rows * N, 3);
    const layer_norm_rows<double> of{rows, N, x.data(), gain.data(), gain.data(), 0.01};
    std::vector<double> moments(2 * rows), y(rows * N), all[3], alone[3];
    layer_norm(of, moments.data(), y.data());
    for (auto* each : {all, alone}) each[0].resize(rows * N), each[1].resize(N), each[2].resize(N);
    layer_norm_backward(of, moments.data(), g.data(), all[0].data(), all[1].data(), all[2].data());
    for (std::size_t i = 0; i < 3; ++i) {
        const auto wanted = [&](std::size_t k) { return k == i ? alone[k].data() : nullptr; };
        layer_norm_backward(of, moments.data(), g.data(), wanted(0), wanted(1), wanted(2));
        CHECK(same_bits(alone[i], all[i]));
    }
}

TEST_CASE("layer normalization: the same bits for any number of threads")
{
    constexpr std::size_t B = 37, H = 1000;
    const auto h = some<float>(B * H, 3), c = some<float>(B * H, 4), gain = some<float>(H, 5);
    const auto all = [&] {
        std::vector<float> moments(2 * B), y(B * H), d_x(B * H), d_gain(H), d_bias(H);
        const layer_norm_rows<float> of{B, H, h.data(), gain.data(), gain.data(), 1e-5f};
        layer_norm(of, moments.data(), y.data());
        layer_norm_backward(of, moments.data(), c.data(), d_x.data(), d_gain.data(), d_bias.data());
        return list<list<float>>{y, d_x, d_gain, d_bias};
    };
    const auto one = all();
    for (const std::size_t count : {std::size_t{2}, std::size_t{5}}) {
        set_threads(count);
        const auto several = all();
        for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], several[i]));
    }
    set_threads(1);
}
