// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <heed/kernels/gated_linear.hpp>
#include <heed/kernels/layer_norm.hpp>
#include <heed/kernels/optimizers.hpp>
#include <heed/kernels/recurrent.hpp>

// Kernels of layers and of optimisers against plain loops in double, for widths with and without a rest behind the last
// whole register. Gradients against finite differences: tests/ops/recurrent.cpp, tests/nn/layer_norm.cpp
// and tests/nn/gated_convolution.cpp.

namespace {

using namespace heed;
using namespace heed::kernels;

template <class T>
std::vector<T> some(std::size_t n, unsigned seed)
{
    std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    std::vector<T> x(n);
    for (T& element : x) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        element = static_cast<T>(static_cast<double>(state >> 33) / 1073741824.0 - 1.0);
    }
    return x;
}

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

constexpr std::size_t widths[] = {1, 3, 4, 8, 16, 17, 35};

double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }

}  // namespace

TEST_CASE_TEMPLATE("LSTM: plain loops agree, finished rows keep their state", T, float, double)
{
    constexpr std::size_t B = 4;
    const std::vector<std::size_t> lengths{3, 2, 9, 0};
    for (const std::size_t H : widths) {
        const auto x = some<T>(B * 4 * H, 1), u = some<T>(B * 4 * H, 2), h = some<T>(B * H, 3), c = some<T>(B * H, 4);
        const lstm_step<T> step{B, H, x.data(), h.data(), c.data(), lengths.data(), 2};
        std::vector<T> saved(5 * B * H), next_h(B * H), next_c(B * H), d_sums(4 * B * H), d_c(B * H), d_h(B * H);
        lstm_forward(step, u.data(), saved.data(), next_h.data(), next_c.data());
        const auto g_h = some<T>(B * H, 5), g_c = some<T>(B * H, 6);
        lstm_backward(step, saved.data(), g_h.data(), g_c.data(), d_sums.data(), d_h.data(), d_c.data());
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t j = 0; j < H; ++j) {
                const std::size_t at = b * H + j;
                const auto near = [](T found, double must) { CHECK(std::abs(found - must) <= tolerance<T>); };
                if (lengths[b] <= 2) {
                    CHECK(next_h[at] == h[at]);
                    CHECK(next_c[at] == c[at]);
                    CHECK(d_c[at] == g_c[at]);
                    CHECK(d_h[at] == g_h[at]);
                    for (std::size_t gate = 0; gate < 4; ++gate) CHECK(d_sums[(b * 4 + gate) * H + j] == 0);
                    continue;
                }
                double a[4];
                for (std::size_t gate = 0; gate < 4; ++gate) {
                    a[gate] = double(x[(b * 4 + gate) * H + j]) + double(u[(b * 4 + gate) * H + j]);
                }
                const double i = sigmoid(a[0]), f = sigmoid(a[1]), o = sigmoid(a[2]), g = std::tanh(a[3]);
                const double cell = f * c[at] + i * g, t = std::tanh(cell), d = g_c[at] + g_h[at] * o * (1 - t * t);
                near(next_c[at], cell);
                near(next_h[at], o * t);
                near(d_sums[b * 4 * H + j], d * g * i * (1 - i));
                near(d_sums[(b * 4 + 1) * H + j], d * c[at] * f * (1 - f));
                near(d_sums[(b * 4 + 2) * H + j], g_h[at] * t * o * (1 - o));
                near(d_sums[(b * 4 + 3) * H + j], d * i * (1 - g * g));
                near(d_c[at], d * f);
                CHECK(d_h[at] == 0);  // through the product, which is not the kernel's
            }
        }
    }
}

TEST_CASE_TEMPLATE("layer normalisation: plain loops agree", T, float, double)
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
                CHECK(std::abs(row(y, i) - (gain[i] * unit(i) + bias[i])) <= 4 * tolerance<T>);
                const double must = scale * (row(g, i) * gain[i] - d_mean - unit(i) * d_slope);
                CHECK(std::abs(row(d_x, i) - must) <= 20 * tolerance<T>);
            }
        }
        for (std::size_t i = 0; i < N; ++i) {
            CHECK(std::abs(d_gain[i] - of_gain[i]) <= 20 * tolerance<T>);
            CHECK(std::abs(d_bias[i] - of_bias[i]) <= 4 * tolerance<T>);
        }
    }
}

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
            CHECK(std::abs(y[i] - a * s) <= tolerance<T>);
            CHECK(std::abs(residual[i] - 0.75 * (x[i] + a * s)) <= tolerance<T>);
            CHECK(std::abs(d_v[i] - (start[i] + d * s)) <= tolerance<T>);
            CHECK(std::abs(d_v[N + i] - (start[N + i] + d * a * s * (1 - s))) <= tolerance<T>);
        }
    }
}

TEST_CASE_TEMPLATE("gradient descent and AdaDelta: plain loops agree", T, float, double)
{
    for (const std::size_t n : widths) {
        const auto g = some<T>(n, 1), start = some<T>(n, 2), G = some<T>(n, 3), D = some<T>(n, 4);
        auto theta = start, squares = G, steps = D;
        for (T& each : squares) each = std::abs(each);
        for (T& each : steps) each = std::abs(each);
        const auto old_squares = squares, old_steps = steps;
        update_all(n, sgd_settings{0.5}.update<T>(1, T(2)), g.data(), moments_of<T>{}, theta.data());
        for (std::size_t i = 0; i < n; ++i) CHECK(std::abs(theta[i] - (start[i] - g[i])) <= tolerance<T>);
        theta = start;
        update_all(n, adadelta_settings{0.9, 0.01, 0.5}.update<T>(1, T(2)), g.data(),
                   moments_of<T>{squares.data(), steps.data()}, theta.data());
        for (std::size_t i = 0; i < n; ++i) {
            const double slope = 2.0 * g[i], all = 0.9 * old_squares[i] + 0.1 * slope * slope;
            const double step = std::sqrt(old_steps[i] + 0.01) / std::sqrt(all + 0.01) * slope;
            CHECK(std::abs(squares[i] - all) <= tolerance<T>);
            CHECK(std::abs(steps[i] - (0.9 * old_steps[i] + 0.1 * step * step)) <= 4 * tolerance<T>);
            CHECK(std::abs(theta[i] - (start[i] - 0.5 * step)) <= 4 * tolerance<T>);
        }
    }
}

TEST_CASE("the same for any number of threads")
{
    constexpr std::size_t B = 37, H = 1000;
    const auto x = some<float>(B * 4 * H, 1), u = some<float>(B * 4 * H, 2), h = some<float>(B * H, 3),
               c = some<float>(B * H, 4), gain = some<float>(H, 5);
    const auto all = [&] {
        std::vector<float> saved(5 * B * H), next_h(B * H), next_c(B * H), sums(4 * B * H), d_c(B * H);
        const lstm_step<float> step{B, H, x.data(), h.data(), c.data()};
        lstm_forward(step, u.data(), saved.data(), next_h.data(), next_c.data());
        lstm_backward(step, saved.data(), h.data(), c.data(), sums.data(), static_cast<float*>(nullptr), d_c.data());
        std::vector<float> moments(2 * B), y(B * H), d_x(B * H), d_gain(H), d_bias(H);
        const layer_norm_rows<float> of{B, H, h.data(), gain.data(), gain.data(), 1e-5f};
        layer_norm(of, moments.data(), y.data());
        layer_norm_backward(of, moments.data(), c.data(), d_x.data(), d_gain.data(), d_bias.data());
        return std::vector<std::vector<float>>{next_h, next_c, sums, d_c, y, d_x, d_gain, d_bias};
    };
    const auto one = all();
    for (const std::size_t count : {std::size_t{2}, std::size_t{5}}) {
        set_threads(count);
        const auto several = all();
        for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], several[i]));
    }
    set_threads(1);
}
