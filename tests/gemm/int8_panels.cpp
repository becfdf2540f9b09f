// SPDX-License-Identifier: BSD-3-Clause
#include <heed/gemm/int8_panels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

using namespace heed;
using kernels::int8_panels;

namespace {

std::vector<float> numbers(std::size_t count, double phase, double size = 1)
{
    std::vector<float> x(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double at = static_cast<double>(i);
        x[i] = static_cast<float>(size * std::sin(phase + 1.3 * at) * std::cos(0.37 * at + phase));
    }
    return x;
}

/// W [K,N] of integers times a scale per column; every column contains 127 or -127.
struct whole_numbers {
    std::size_t K, N;
    std::vector<int> w;
    std::vector<float> s, W;

    whole_numbers(std::size_t rows, std::size_t columns) : K(rows), N(columns), w(K * N), s(N), W(K * N)
    {
        for (std::size_t n = 0; n < N; ++n) {
            s[n] = 0.001f * static_cast<float>(n % 7 + 1);
            for (std::size_t k = 0; k < K; ++k) w[k * N + n] = static_cast<int>((k * 53 + n * 29) % 255) - 127;
            w[n % K * N + n] = n % 2 == 0 ? 127 : -127;
            for (std::size_t k = 0; k < K; ++k) W[k * N + n] = s[n] * static_cast<float>(w[k * N + n]);
        }
    }
};

/// int8 quantization of a row: scale f and integers q.
struct row_of_integers {
    float f = 0;
    std::vector<int> q;

    explicit row_of_integers(const std::vector<float>& x) : q(x.size())
    {
        float greatest = 0;
        for (const float each : x) greatest = std::max(greatest, std::abs(each));
        f = greatest / 127;
        for (std::size_t k = 0; k < x.size(); ++k)
            q[k] = greatest > 0 ? static_cast<int>(std::nearbyint(x[k] * (127 / greatest))) : 0;
    }
};

}  // namespace

TEST_CASE("the product equals that of the integers exactly, for any size")
{
    for (const std::size_t K : {1u, 2u, 3u, 4u, 5u, 31u, 64u, 130u}) {
        for (const std::size_t N : {1u, 7u, 16u, 63u, 64u, 65u, 150u}) {
            CAPTURE(K);
            CAPTURE(N);
            const whole_numbers weights(K, N);
            int8_panels W;
            W.pack(K, N, weights.W.data(), N);
            for (const std::size_t R : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 13u}) {
                const auto x = numbers(R * K, static_cast<double>(R));
                std::vector<float> y(R * N, -7.0f);
                W.multiply(R, x.data(), K, y.data(), N, false);
                std::size_t wrong = 0;
                for (std::size_t r = 0; r < R; ++r) {
                    const auto first = x.begin() + static_cast<std::ptrdiff_t>(r * K);
                    const row_of_integers row({first, first + static_cast<std::ptrdiff_t>(K)});
                    for (std::size_t n = 0; n < N; ++n) {
                        long sum = 0;
                        for (std::size_t k = 0; k < K; ++k) sum += long{row.q[k]} * weights.w[k * N + n];
                        // the column's scale as packed: its largest number is 127 times the scale
                        const float s = 127 * weights.s[n] / 127;
                        wrong += std::abs(y[r * N + n] - static_cast<float>(sum) * row.f * s) >
                                 2e-6f * std::abs(static_cast<float>(sum)) * row.f * s;
                    }
                }
                CHECK(wrong == 0);
            }
        }
    }
}

TEST_CASE("sums are exact at their largest")
{
    const std::size_t K = 4096, N = 3;
    std::vector<float> W(K * N, 1.0f), x(2 * K, 1.0f), y(2 * N);
    for (std::size_t k = 0; k < K; ++k) W[k * N + 1] = -1.0f, x[K + k] = -1.0f;
    for (std::size_t k = 0; k < K; ++k) W[k * N + 2] = k % 2 == 0 ? 1.0f : -1.0f;
    int8_panels panels;
    panels.pack(K, N, W.data(), N);
    panels.multiply(2, x.data(), K, y.data(), N, false);
    const std::vector<float> must{4096, -4096, 0, -4096, 4096, 0};
    for (std::size_t i = 0; i < must.size(); ++i) CHECK(y[i] == doctest::Approx(must[i]).epsilon(1e-6));
}

TEST_CASE("the error of the float product is within the bounds of the two roundings")
{
    const std::size_t K = 100, N = 70, R = 9;
    const auto W = numbers(K * N, 1, 0.3), x = numbers(R * K, 2, 4);
    int8_panels panels;
    panels.pack(K, N, W.data(), N);
    std::vector<float> y(R * N);
    panels.multiply(R, x.data(), K, y.data(), N, false);
    double nearest = 1;
    for (std::size_t r = 0; r < R; ++r) {
        double f = 0;
        for (std::size_t k = 0; k < K; ++k) f = std::max(f, std::abs(double(x[r * K + k])) / 127);
        for (std::size_t n = 0; n < N; ++n) {
            double s = 0, sum = 0, bound = 0;
            for (std::size_t k = 0; k < K; ++k) s = std::max(s, std::abs(double(W[k * N + n])) / 127);
            for (std::size_t k = 0; k < K; ++k) {
                const double a = x[r * K + k], w = W[k * N + n];
                sum += a * w;
                bound += f / 2 * std::abs(w) + s / 2 * std::abs(a) + f * s / 4;
            }
            CHECK(std::abs(y[r * N + n] - sum) <= bound);
            nearest = std::min(nearest, bound == 0 ? 1 : std::abs(y[r * N + n] - sum) / bound);
        }
    }
    CHECK(nearest > 0);  // it is not a product of floats
}

TEST_CASE("rows with a stride, and adding")
{
    const std::size_t K = 10, N = 20, R = 8;
    const whole_numbers weights(K, N);
    int8_panels W;
    W.pack(K, N, weights.W.data(), N);
    const auto x = numbers(R * 13, 3);
    std::vector<float> tight(R * K), y(R * N), apart(R * 25, 2.0f);
    for (std::size_t r = 0; r < R; ++r) std::copy_n(x.data() + r * 13, K, tight.data() + r * K);
    W.multiply(R, tight.data(), K, y.data(), N, false);
    W.multiply(R, x.data(), 13, apart.data(), 25, true);
    for (std::size_t r = 0; r < R; ++r) {
        for (std::size_t n = 0; n < 25; ++n) CHECK(apart[r * 25 + n] == (n < N ? 2.0f + y[r * N + n] : 2.0f));
    }
}

TEST_CASE("a row or column of zeros gives zeros, and NaN stays in its row or column")
{
    const std::size_t K = 9, N = 40;
    auto W = numbers(K * N, 1);
    for (std::size_t k = 0; k < K; ++k) W[k * N + 5] = 0;
    auto x = numbers(5 * K, 2);
    std::fill_n(x.begin(), K, 0.0f);
    x[K + 4] = std::numeric_limits<float>::quiet_NaN();
    x[2 * K + 8] = std::numeric_limits<float>::infinity();
    x[3 * K] = -std::numeric_limits<float>::infinity();
    int8_panels panels;
    panels.pack(K, N, W.data(), N);
    std::vector<float> y(5 * N);
    panels.multiply(5, x.data(), K, y.data(), N, false);
    for (std::size_t n = 0; n < N; ++n) {
        CHECK(y[n] == 0.0f);
        for (const std::size_t r : {1u, 2u, 3u}) CHECK(std::isnan(y[r * N + n]));
        CHECK(!std::isnan(y[4 * N + n]));
        CHECK((y[4 * N + n] == 0.0f) == (n == 5));
    }
    W[3 * N + 39] = std::numeric_limits<float>::quiet_NaN();
    panels.pack(K, N, W.data(), N);
    panels.multiply(5, x.data(), K, y.data(), N, false);
    CHECK(std::isnan(y[4 * N + 39]));
    CHECK(!std::isnan(y[4 * N + 38]));
}

TEST_CASE("a matrix too long for exact sums is rejected")
{
    const std::vector<float> W(int8_panels::longest + 1, 1.0f);
    int8_panels panels;
    CHECK_THROWS_WITH_AS(panels.pack(W.size(), 1, W.data(), 1),
                         "int8: a matrix of 65537 rows; 32-bit sums are exact up to 65536", error);
}
