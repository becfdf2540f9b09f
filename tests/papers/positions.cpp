// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/positions.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <heed/heads/multi_head.hpp>
#include <support/causal_presets.hpp>
#include <support/gradients.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;
using namespace support::causal_presets;

TEST_CASE("Su et al. 2021")
{
    check(paper::su2021::rotary(),
          [](std::size_t s, std::size_t j) { return std::exp(turned(s, j) / std::sqrt(double{D})); });
}

TEST_CASE("Shaw et al. 2018")
{
    const auto a = random({D, 5}, 11);
    check(paper::shaw2018::relative(a), [&](std::size_t s, std::size_t j) {
        const std::size_t r = j + 2 < s ? 0 : std::min<std::size_t>(j + 2 - s, 4);
        double e = dot(s, j);
        for (std::size_t i = 0; i < D; ++i) e += q(0, s, i) * a(i, r);
        return std::exp(e / std::sqrt(double{D}));
    });
}

TEST_CASE("Press et al. 2022")
{
    const auto slope = [](std::size_t h) { return std::exp2(-8.0 * static_cast<double>(h + 1) / 2); };
    const auto weight = [&](std::size_t h) {
        return [=](std::size_t s, std::size_t j) {
            return std::exp(dot(s, j) / std::sqrt(double{D}) - slope(h) * static_cast<double>(s - j));
        };
    };
    check(paper::press2022::alibi(2), weight(0));
    check(paper::press2022::alibi(3),
          [&](std::size_t s, std::size_t j) {  // a slope that float cannot represent exactly
              return std::exp(scaled(s, j) - std::exp2(-8.0 / 3) * static_cast<double>(s - j));
          });
    // Each head has its own slope.
    array<double, 2> both(shape_of_rank<2>{D, 2 * D}, 0.0), first(shape_of_rank<2>{2 * D, D}, 0.0), second = first;
    for (std::size_t i = 0; i < D; ++i) both(i, i) = both(i, D + i) = first(i, i) = second(D + i, i) = 1;
    check(multi_head{std::vector(2, paper::press2022::alibi(2)), both, both, both, first}, weight(0));
    check(multi_head{std::vector(2, paper::press2022::alibi(2)), both, both, both, second}, weight(1));
}

TEST_CASE("Press et al. 2022: the slopes of the authors' program")
{
    // As in its get_slopes(): for powers of 2 start · ratio^h with start = ratio = 2^−(2^−(log2 n − 3)); otherwise the
    // slopes of the next smaller power, followed by every second slope of twice as many heads.
    const auto of_power = [](std::size_t n) {
        const double start = std::pow(2, -std::pow(2, -(std::log2(static_cast<double>(n)) - 3)));
        std::vector<double> slopes;
        for (std::size_t h = 0; h < n; ++h) slopes.push_back(start * std::pow(start, static_cast<double>(h)));
        return slopes;
    };
    const auto slopes_of = [&](std::size_t n) {
        std::size_t power = 1;
        while (2 * power <= n) power *= 2;
        std::vector<double> slopes = of_power(power);
        const std::vector<double> twice = of_power(2 * power);
        for (std::size_t i = 0; slopes.size() < n; i += 2) slopes.push_back(twice[i]);
        return slopes;
    };
    const std::vector<double> of_twelve = slopes_of(12);
    CHECK(of_twelve[7] == 1.0 / 256);
    CHECK(std::abs(of_twelve[8] - std::sqrt(0.5)) < 1e-15);
    for (const std::size_t heads : {1u, 2u, 3u, 6u, 8u, 12u, 20u}) {
        for (std::size_t h = 0; h < heads; ++h) {
            CAPTURE(heads);
            CAPTURE(h);
            score_index p;
            p.head = static_cast<std::int32_t>(h);
            p.query = pack<std::int32_t>(5);
            p.key = pack<std::int32_t>(2);
            const auto get = [](const auto& changed) { return static_cast<double>(changed.at[0]); };
            const pack<double> e(1.0);
            const double program = get(paper::press2022::linear_bias_of_program{heads}(e, p));
            CHECK(std::abs(program - (1.0 - 3 * slopes_of(heads)[h])) < 1e-6);  // slopes are float
            if ((heads & (heads - 1)) == 0) CHECK(program == get(paper::press2022::linear_bias{heads}(e, p)));
        }
    }
    check(paper::press2022::alibi_of_program(3), [&](std::size_t s, std::size_t j) {
        return std::exp(dot(s, j) / std::sqrt(double{D}) - slopes_of(3)[0] * static_cast<double>(s - j));
    });
}

TEST_CASE("Raffel et al. 2020")
{
    // The buckets of the authors' program: 32, up to a distance of 128.
    const std::vector<std::pair<int, int>> known{{-3, 0},   {0, 0},    {1, 1},    {15, 15}, {16, 16},
                                                 {18, 16},  {19, 17},  {20, 17},  {31, 21}, {64, 26},
                                                 {100, 30}, {127, 31}, {5000, 31}};
    for (const auto& [distance, bucket] : known)
        CHECK(paper::raffel2020::buckets{}(pack<std::int32_t>(distance))[0] == bucket);
    // Bidirectional: 16 for earlier keys, 16 for later ones; 8 + 8 log(n / 8) / log 16 from 8 on.
    const std::vector<std::pair<int, int>> encoder{{0, 0},    {1, 1},    {7, 7},    {8, 8},    {11, 8},   {12, 9},
                                                   {16, 10},  {32, 12},  {64, 14},  {90, 14},  {91, 15},  {128, 15},
                                                   {-1, 17},  {-7, 23},  {-8, 24},  {-15, 25}, {-16, 26}, {-32, 28},
                                                   {-64, 30}, {999, 15}, {-999, 31}};
    for (const auto& [distance, bucket] : encoder)
        CHECK(paper::raffel2020::buckets{32, 128, true}(pack<std::int32_t>(distance))[0] == bucket);
    const auto table = random({1, 4}, 4);
    const paper::raffel2020::buckets few{4, 8};
    check(paper::raffel2020::relative_bias(table, few), [&](std::size_t s, std::size_t j) {
        const auto bucket = static_cast<std::size_t>(few(pack<std::int32_t>(static_cast<int>(s - j)))[0]);
        return std::exp(dot(s, j) + table(0, bucket));
    });
    const auto f = [&](const auto& b) {
        const auto attend = paper::raffel2020::relative_bias(b, few);
        return attend(attend.on(k), q, causal{});
    };
    CHECK_GRADIENT(f, table);
}

TEST_CASE("Golovneva et al. 2024")
{
    const auto z = random({D, std::size_t{3}}, 5);
    check(paper::golovneva2024::contextual(z), [&](std::size_t s, std::size_t j) {
        double p = 0;
        for (std::size_t l = j; l <= s; ++l) p += 1 / (1 + std::exp(-dot(s, l) / std::sqrt(double{D})));
        p = std::min(p, 2.0);
        double e = dot(s, j);
        for (std::size_t i = 0; i < D; ++i) {
            const auto low = static_cast<std::size_t>(p), high = static_cast<std::size_t>(std::ceil(p));
            const double part = p - std::floor(p);
            e += q(0, s, i) * ((1 - part) * z(i, low) + part * z(i, high));
        }
        return std::exp(e / std::sqrt(double{D}));
    });
}
