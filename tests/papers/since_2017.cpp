// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/papers.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace heed;
namespace paper = heed::papers;
using support::random;

// Mechanisms of the years after the Transformer, by the equations of their papers, number by number.

namespace {

constexpr std::size_t L = 5, D = 4;

const auto q = random({1, L, D}, 1), k = random({1, L, D}, 2);

/// Contexts of values that are the keys: w(s, j) are weights before they are divided by their sum, if they are.
array<double, 3> by_hand(const auto& w, bool divides)
{
    array<double, 3> all(shape_of_rank<3>{1, L, D}, 0.0);
    for (std::size_t s = 0; s < L; ++s) {
        double sum = 0;
        for (std::size_t j = 0; j <= s; ++j) sum += w(s, j);
        for (std::size_t j = 0; j <= s; ++j)
            for (std::size_t i = 0; i < D; ++i) all(0, s, i) += w(s, j) / (divides ? sum : 1) * k(0, j, i);
    }
    return all;
}

void check(const auto& attend, const auto& w, bool divides = true)
{
    const auto is = attend(attend.on(k), q, causal{}), must = by_hand(w, divides);
    for (std::size_t i = 0; i < must.size(); ++i) CHECK(is.data()[i] == support::approx(must.data()[i]));
}

double dot(std::size_t s, std::size_t j)
{
    double sum = 0;
    for (std::size_t i = 0; i < D; ++i) sum += q(0, s, i) * k(0, j, i);
    return sum;
}

/// The same, divided by √D.
double scaled(std::size_t s, std::size_t j) { return dot(s, j) / std::sqrt(double{D}); }

/// The inner product of vectors that are turned with their positions.
double turned(std::size_t s, std::size_t j)
{
    double sum = 0;
    for (std::size_t m = 0; m < D / 2; ++m) {
        const double angle = (static_cast<double>(s) - static_cast<double>(j)) *
                             std::pow(10000.0, -2.0 * static_cast<double>(m) / double{D});
        const double a = q(0, s, 2 * m), b = q(0, s, 2 * m + 1), c = k(0, j, 2 * m), d = k(0, j, 2 * m + 1);
        sum += std::cos(angle) * (a * c + b * d) + std::sin(angle) * (a * d - b * c);
    }
    return sum;
}

}  // namespace

TEST_CASE("Katharopoulos et al. 2020")
{
    const auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
    check(paper::katharopoulos2020::linear(), [&](std::size_t s, std::size_t j) {
        double sum = 0;
        for (std::size_t i = 0; i < D; ++i) sum += phi(q(0, s, i)) * phi(k(0, j, i));
        return sum;
    });
}

TEST_CASE("Choromanski et al. 2021")
{
    const auto Omega = random({D, 3}, 3);
    const auto phi = [&](const auto& x, std::size_t at, std::size_t f) {
        double product = 0, norm = 0;
        for (std::size_t i = 0; i < D; ++i) {
            const double part = x(0, at, i) / std::pow(double{D}, 0.25);
            product += Omega(i, f) * part;
            norm += part * part;
        }
        return std::exp(product - norm / 2) / std::sqrt(3.0);
    };
    check(paper::choromanski2021::performer(Omega), [&](std::size_t s, std::size_t j) {
        double sum = 0;
        for (std::size_t f = 0; f < 3; ++f) sum += phi(q, s, f) * phi(k, j, f);
        return sum;
    });
    random_source source{2};
    CHECK(shape_of(paper::choromanski2021::make_performer<float>(source, 8, 5).score.features.Omega) ==
          shape_of_rank<2>{8, 5});
}

TEST_CASE("Qiu et al. 2025")
{
    const auto W_Q = random({D, D}, 5), W_K = random({D, D}, 6), W_V = random({D, D}, 7), W_O = random({D, D}, 8);
    const auto gated = paper::qiu2025::gated(2, W_Q, W_K, W_V, W_O, random({D, D}, 9));
    const multi_head plain{gated.heads, W_Q, W_K, W_V, W_O};
    // With one-hot rows of W_O the joined heads come out one by one, ungated.
    auto one_by_one = plain;
    one_by_one.W_O = array<double, 2>(shape_of_rank<2>{D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) one_by_one.W_O(i, i) = 1;
    const auto Y = one_by_one(one_by_one.on(k), q, causal{}), is = gated(gated.on(k), q, causal{});
    for (std::size_t s = 0; s < L; ++s) {
        for (std::size_t o = 0; o < D; ++o) {
            double must = 0;
            for (std::size_t i = 0; i < D; ++i) {
                double x = 0;
                for (std::size_t j = 0; j < D; ++j) x += q(0, s, j) * gated.joined.W(j, i);
                must += Y(0, s, i) / (1 + std::exp(-x)) * W_O(i, o);
            }
            CHECK(is(0, s, o) == support::approx(must));
        }
    }
}

TEST_CASE("Shazeer et al. 2020")
{
    // Two heads that see all of q and k, the second twice as large.
    array<double, 2> both(shape_of_rank<2>{D, 2 * D}, 0.0), sum(shape_of_rank<2>{2 * D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) both(i, i) = 1, both(i, D + i) = 2, sum(i, i) = sum(D + i, i) = 1;
    const array<double, 2> P_l{{1, 0.5}, {-0.25, 1}}, P_w{{1, 0.3}, {0.2, -1}};
    const auto attend = paper::shazeer2020::talking_heads(2, both, both, both, sum, P_l, P_w);
    const auto is = attend(attend.on(k), q, causal{});
    for (std::size_t s = 0; s < L; ++s) {
        std::vector<double> W[2], must(D);
        for (std::size_t g = 0; g < 2; ++g) {
            double all = 0;
            for (std::size_t j = 0; j <= s; ++j) {
                W[g].push_back(std::exp((P_l(0, g) * dot(s, j) + P_l(1, g) * 4 * dot(s, j)) / std::sqrt(double{D})));
                all += W[g].back();
            }
            for (double& w : W[g]) w /= all;
        }
        for (std::size_t j = 0; j <= s; ++j)
            for (std::size_t v = 0; v < 2; ++v)
                for (std::size_t i = 0; i < D; ++i)
                    must[i] += (P_w(0, v) * W[0][j] + P_w(1, v) * W[1][j]) * static_cast<double>(v + 1) * k(0, j, i);
        for (std::size_t i = 0; i < D; ++i) CHECK(is(0, s, i) == support::approx(must[i]));
    }
}

TEST_CASE("Ye et al. 2024")
{
    // One head, whose second map sees half of what the first sees.
    array<double, 2> W_Q(shape_of_rank<2>{D, 2 * D}, 0.0), W_K = W_Q, unit(shape_of_rank<2>{D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) W_Q(i, i) = W_K(i, i) = W_K(i, D + i) = unit(i, i) = 1, W_Q(i, D + i) = 0.5;
    const auto q1 = random({2}, 5), k1 = random({2}, 6), q2 = random({2}, 7), k2 = random({2}, 8),
               gain = random({D}, 9);
    const auto attend =
        paper::ye2024::differential(1, W_Q, W_K, unit, unit, per_head::differential{q1, k1, q2, k2, gain, 0.2});
    const double lambda = std::exp(q1(0) * k1(0) + q1(1) * k1(1)) - std::exp(q2(0) * k2(0) + q2(1) * k2(1)) + 0.2;
    const auto is = attend(attend.on(k), q, causal{});
    const auto map = [](double by) {
        return by_hand([by](std::size_t s, std::size_t j) { return std::exp(by * dot(s, j) / std::sqrt(double{D})); },
                       true);
    };
    const auto one = map(1), two = map(0.5);
    for (std::size_t s = 0; s < L; ++s) {
        double squares = 0;
        for (std::size_t i = 0; i < D; ++i) squares += std::pow(one(0, s, i) - lambda * two(0, s, i), 2) / double{D};
        for (std::size_t i = 0; i < D; ++i) {
            const double difference = one(0, s, i) - lambda * two(0, s, i);
            CHECK(is(0, s, i) == support::approx(0.8 * gain(i) * difference / std::sqrt(squares + 1e-5)));
        }
    }
}

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
    check(paper::press2022::alibi(3), [&](std::size_t s, std::size_t j) {  // a slope that no float has
        return std::exp(scaled(s, j) - std::exp2(-8.0 / 3) * static_cast<double>(s - j));
    });
    // Each head of several has its own slope.
    array<double, 2> both(shape_of_rank<2>{D, 2 * D}, 0.0), first(shape_of_rank<2>{2 * D, D}, 0.0), second = first;
    for (std::size_t i = 0; i < D; ++i) both(i, i) = both(i, D + i) = first(i, i) = second(D + i, i) = 1;
    check(multi_head{std::vector(2, paper::press2022::alibi(2)), both, both, both, first}, weight(0));
    check(multi_head{std::vector(2, paper::press2022::alibi(2)), both, both, both, second}, weight(1));
}

TEST_CASE("Press et al. 2022: the slopes of the authors' program")
{
    // As its get_slopes() does it: for powers of 2 start · ratio^h with start = ratio = 2^−(2^−(log2 n − 3)); else
    // those of the next smaller power, and every second one of twice as many heads.
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
            place p;
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
    // The buckets of the authors' program: 32 of them, up to a distance of 128.
    const std::vector<std::pair<int, int>> known{{-3, 0},   {0, 0},    {1, 1},    {15, 15}, {16, 16},
                                                 {18, 16},  {19, 17},  {20, 17},  {31, 21}, {64, 26},
                                                 {100, 30}, {127, 31}, {5000, 31}};
    for (const auto& [distance, bucket] : known)
        CHECK(paper::raffel2020::buckets{}(pack<std::int32_t>(distance))[0] == bucket);
    // Both ways: 16 for earlier keys, 16 for later ones; 8 + 8 log(n / 8) / log 16 from 8 on.
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

TEST_CASE("DeepSeek-AI 2024")
{
    // One head that keeps all of k as it is, and turns all of it as well.
    array<double, 2> unit(shape_of_rank<2>{D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) unit(i, i) = 1;
    check(paper::deepseek2024::latent(1, unit, unit, unit, unit, unit, unit, unit),
          [](std::size_t s, std::size_t j) { return std::exp((dot(s, j) + turned(s, j)) / std::sqrt(2.0 * D)); });
}

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

TEST_CASE("Ainslie et al. 2023")
{
    // Two heads of one group: the second asks with twice the query.
    array<double, 2> W_Q(shape_of_rank<2>{D, 2 * D}, 0.0), unit(shape_of_rank<2>{D, D}, 0.0),
        second(shape_of_rank<2>{2 * D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) W_Q(i, i) = unit(i, i) = second(D + i, i) = 1, W_Q(i, D + i) = 2;
    check(paper::ainslie2023::grouped(2, W_Q, unit, unit, second),
          [](std::size_t s, std::size_t j) { return std::exp(2 * scaled(s, j)); });
}

TEST_CASE("Henry et al. 2020")
{
    const auto length = [](const auto& x, std::size_t at) {
        double sum = 0;
        for (std::size_t i = 0; i < D; ++i) sum += x(0, at, i) * x(0, at, i);
        return std::sqrt(sum);
    };
    check(paper::henry2020::normalised(array<double, 1>{3}),
          [&](std::size_t s, std::size_t j) { return std::exp(3 * dot(s, j) / (length(q, s) * length(k, j))); });
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
                double low = -100, high = 100;  // τ, by halving
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

TEST_CASE("Wu et al. 2019")
{
    const auto W = random({D, std::size_t{3}}, 5);
    const auto w = random({3}, 6);
    // The kernel's last weight is that of the word itself; x_{i+k−3} with k from 1.
    const auto share = [](std::size_t s, std::size_t j, const auto& e) {
        return j + 2 < s ? 0.0 : std::exp(e(j + 2 - s)) / (std::exp(e(0)) + std::exp(e(1)) + std::exp(e(2)));
    };
    check(
        paper::wu2019::dynamic(W, score::kernel_over::past),
        [&](std::size_t s, std::size_t j) {
            return share(s, j, [&](std::size_t c) {
                double sum = 0;
                for (std::size_t i = 0; i < D; ++i) sum += q(0, s, i) * W(i, c);
                return sum;
            });
        },
        false);
    check(
        paper::wu2019::lightweight(w, score::kernel_over::past),
        [&](std::size_t s, std::size_t j) { return share(s, j, [&](std::size_t c) { return w(c); }); }, false);
}

TEST_CASE("Yang et al. 2024; Dao and Gu 2024")
{
    const auto w = random({D, 1}, 5);
    const auto b = random({1}, 6);
    const auto left = [&](std::size_t s, std::size_t j) {
        double product = 1;
        for (std::size_t l = j + 1; l <= s; ++l) {
            double x = b(0);
            for (std::size_t i = 0; i < D; ++i) x += w(i, 0) * k(0, l, i);
            product *= std::exp(-std::log1p(std::exp(-x)));  // exp(−softplus(−x)), which is σ(x)
        }
        return product;
    };
    check(
        paper::yang2024::gated_linear(w, b),
        [&](std::size_t s, std::size_t j) { return left(s, j) * dot(s, j) / std::sqrt(double{D}); }, false);
    check(
        paper::dao2024::state_space(w, b), [&](std::size_t s, std::size_t j) { return left(s, j) * dot(s, j); }, false);
}

TEST_CASE("Sun et al. 2023")
{
    const auto weight = [](double gamma) {
        return [=](std::size_t s, std::size_t j) {
            return std::pow(gamma, static_cast<double>(s - j)) * turned(s, j) / std::sqrt(double{D});
        };
    };
    check(paper::sun2023::retention(0.9), weight(0.9), false);
    array<double, 2> both(shape_of_rank<2>{D, 2 * D}, 0.0), second(shape_of_rank<2>{2 * D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) both(i, i) = both(i, D + i) = second(D + i, i) = 1;
    check(paper::sun2023::multi_scale(2, both, both, both, second), weight(1 - std::exp2(-6.0)), false);
}
