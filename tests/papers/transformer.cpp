// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/transformer.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <support/approx.hpp>
#include <support/causal_presets.hpp>
#include <support/recurrent_presets.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;

TEST_CASE("Vaswani et al. 2017")
{
    using namespace support::recurrent_presets;
    namespace vaswani = paper::vaswani2017;
    const auto W_Q = random({Q, 6}, 80), W_K = random({D, 6}, 81), W_V = random({D, 4}, 82), W_O = random({4, 3}, 83);
    const attention head{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    check_same(vaswani::scaled_dot(), head, state_of);
    check_same(vaswani::multi_head(2, W_Q, W_K, W_V, W_O), multi_head{std::vector{head, head}, W_Q, W_K, W_V, W_O},
               state_of);

    // Heads of width 4, all ones: e = 4/√4 and 8/√4, and both values count once.
    auto ask = filled<double, 2>({1, 8}, 1.0);
    for (std::size_t k = 4; k < 8; ++k) ask(0, k) = 2;
    const auto ones = filled<double, 2>({1, 8}, 1.0);
    array<double, 2> of_heads({1, 2}, 1.0);
    CHECK(once(vaswani::multi_head(2, ask, ones, of_heads, filled<double, 2>({2, 1}, 1.0)), number(1)) ==
          about(weight(2) + weight(4)));

    random_source source{1};
    const auto made = vaswani::make_multi_head<float>(source, {.model = 6, .heads = 3});
    CHECK(made.heads.size() == 3);
    CHECK(shape_of(made.W_O) == shape_of_rank<2>{6, 6});
    const auto message = support::message_of<error>([&] { vaswani::make_multi_head<float>(source, {6, 4}); });
    CHECK(message == "vaswani2017::make_multi_head: 4 heads for a width of 6; the number of heads must divide it");
}

TEST_CASE("Qiu et al. 2025")
{
    using namespace support::causal_presets;
    const auto W_Q = random({D, D}, 5), W_K = random({D, D}, 6), W_V = random({D, D}, 7), W_O = random({D, D}, 8);
    const auto gated = paper::qiu2025::gated(2, W_Q, W_K, W_V, W_O, random({D, D}, 9));
    const multi_head plain{gated.heads, W_Q, W_K, W_V, W_O};
    // With one-hot rows of W_O the joined heads are returned one by one, ungated.
    auto one_by_one = plain;
    one_by_one.W_O = array<double, 2>(shape_of_rank<2>{D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) one_by_one.W_O(i, i) = 1;
    const auto Y = one_by_one(one_by_one.on(k), q, causal{}), is = gated(gated.on(k), q, causal{});
    for (std::size_t s = 0; s < L; ++s) {
        for (std::size_t o = 0; o < D; ++o) {
            double must = 0;
            for (std::size_t i = 0; i < D; ++i) {
                double x = 0;
                for (std::size_t j = 0; j < D; ++j) x += q(0, s, j) * gated.head_transform.W(j, i);
                must += Y(0, s, i) / (1 + std::exp(-x)) * W_O(i, o);
            }
            CHECK(is(0, s, o) == support::approx(must));
        }
    }
}

TEST_CASE("Shazeer et al. 2020")
{
    using namespace support::causal_presets;
    // Two heads that read all of q and k, the second scaled by two.
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
    using namespace support::causal_presets;
    // One head, whose second map reads half of the input of the first.
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

TEST_CASE("DeepSeek-AI 2024")
{
    using namespace support::causal_presets;
    // One head that keeps all of k unchanged, and also rotates all of it.
    array<double, 2> unit(shape_of_rank<2>{D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) unit(i, i) = 1;
    check(paper::deepseek2024::latent(1, unit, unit, unit, unit, unit, unit, unit),
          [](std::size_t s, std::size_t j) { return std::exp((dot(s, j) + turned(s, j)) / std::sqrt(2.0 * D)); });
}

TEST_CASE("Ainslie et al. 2023")
{
    using namespace support::causal_presets;
    // Two heads of one group: the second uses twice the query.
    array<double, 2> W_Q(shape_of_rank<2>{D, 2 * D}, 0.0), unit(shape_of_rank<2>{D, D}, 0.0),
        second(shape_of_rank<2>{2 * D, D}, 0.0);
    for (std::size_t i = 0; i < D; ++i) W_Q(i, i) = unit(i, i) = second(D + i, i) = 1, W_Q(i, D + i) = 2;
    check(paper::ainslie2023::grouped(2, W_Q, unit, unit, second),
          [](std::size_t s, std::size_t j) { return std::exp(2 * scaled(s, j)); });
}

TEST_CASE("Henry et al. 2020")
{
    using namespace support::causal_presets;
    const auto length = [](const auto& x, std::size_t at) {
        double sum = 0;
        for (std::size_t i = 0; i < D; ++i) sum += x(0, at, i) * x(0, at, i);
        return std::sqrt(sum);
    };
    check(paper::henry2020::normalized(array<double, 1>{3}),
          [&](std::size_t s, std::size_t j) { return std::exp(3 * dot(s, j) / (length(q, s) * length(k, j))); });
}
