// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/softmax_variants.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <support/causal_presets.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;
using namespace support::causal_presets;

TEST_CASE("Lin et al. 2025")
{
    const auto w = random({D, 1}, 5);
    const auto b = random({1}, 6);
    check(paper::lin2025::forgetting(w, b), [&](std::size_t s, std::size_t j) {
        double weight = std::exp(dot(s, j) / std::sqrt(double{D}));
        for (std::size_t l = j + 1; l <= s; ++l) {
            double x = b(0);
            for (std::size_t i = 0; i < D; ++i) x += w(i, 0) * k(0, l, i);
            weight /= 1 + std::exp(-x);
        }
        return weight;
    });
}

TEST_CASE("Gemma Team 2024")
{
    for (const double cap : {0.3, 50.0}) {
        check(paper::gemma2024::capped(cap),
              [=](std::size_t s, std::size_t j) { return std::exp(cap * std::tanh(scaled(s, j) / cap)); });
    }
}

TEST_CASE("Xiao et al. 2024, OpenAI 2025")
{
    const auto beside = [](double sink) {
        return [=](std::size_t s, std::size_t j) {
            double sum = std::exp(sink);
            for (std::size_t i = 0; i <= s; ++i) sum += std::exp(scaled(s, i));
            return std::exp(scaled(s, j)) / sum;
        };
    };
    check(paper::xiao2024::zero_sink<double>(), beside(0), false);
    check(paper::openai2025::with_sink(array<double, 1>{1.5}), beside(1.5), false);
}

TEST_CASE("Correia et al. 2019")
{
    for (const double a : {-1.0, 0.7}) {
        const double delta = 1 / (1 + std::exp(-a));
        const auto powers = [=](std::size_t s, std::size_t j, double tau) {
            return std::pow(std::max(delta * scaled(s, j) - tau, 0.0), 1 / delta);
        };
        check(
            paper::correia2019::adaptive(array<double, 1>{a}),
            [=](std::size_t s, std::size_t j) {
                double low = -100, high = 100;  // τ, by bisection
                for (int i = 0; i < 100; ++i) {
                    const double tau = (low + high) / 2;
                    double sum = 0;
                    for (std::size_t t = 0; t <= s; ++t) sum += powers(s, t, tau);
                    (sum > 1 ? low : high) = tau;
                }
                return powers(s, j, low);
            },
            false);
    }
}

TEST_CASE("Tan et al. 2025")
{
    check(
        paper::tan2025::stick_breaking(),
        [](std::size_t s, std::size_t j) {
            double weight = 1 / (1 + std::exp(-scaled(s, j)));
            for (std::size_t t = j + 1; t <= s; ++t) weight /= 1 + std::exp(scaled(s, t));
            return weight;
        },
        false);
}

TEST_CASE("Ramapuram et al. 2025")
{
    check(
        paper::ramapuram2025::sigmoid(7),
        [](std::size_t s, std::size_t j) { return 1 / (1 + 7 * std::exp(-scaled(s, j))); }, false);
}

TEST_CASE("Gupta et al. 2021")
{
    check(paper::gupta2021::top_k(2), [](std::size_t s, std::size_t j) {
        std::size_t greater = 0;
        for (std::size_t t = 0; t <= s; ++t) greater += scaled(s, t) > scaled(s, j) ? 1 : 0;
        return greater < 2 ? std::exp(scaled(s, j)) : 0;
    });
}
