// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/attention/linear.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

namespace {

struct sized {
    std::size_t B, S, T, F, D;
    bool causal;
    ops::rule_of_sums rule;
};

array<double, 3> positive(array<double, 3> x)
{
    for (double& v : x) v = std::abs(v) + 0.1;
    return x;
}

/// By the definition, one number at a time.
std::vector<double> by_hand(const array<double, 3>& q, const array<double, 3>& k, const array<double, 3>& v,
                            const lengths& real, const sized& z)
{
    std::vector<double> all(z.B * z.S * z.D, 0.0);
    for (std::size_t b = 0; b < z.B; ++b) {
        for (std::size_t s = 0; s < z.S; ++s) {
            std::size_t n = real[b];
            if (z.causal) n = n + s + 1 > z.S ? n + s + 1 - z.S : 0;
            std::vector<double> w;
            double total = 0;
            for (std::size_t t = 0; t < n; ++t) {
                double sum = 0;
                for (std::size_t i = 0; i < z.F; ++i) sum += q(b, s, i) * k(b, t, i);
                w.push_back(sum * std::pow(z.rule.decay, static_cast<double>(n - 1 - t)));
                total += w.back();
            }
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t i = 0; i < z.D; ++i)
                    all[(b * z.S + s) * z.D + i] += w[t] / (z.rule.divides ? total : 1) * v(b, t, i);
            }
        }
    }
    return all;
}

const std::vector<sized> sizes{
    {2, 5, 7, 3, 4, false, {1, true}},      {2, 7, 7, 3, 4, true, {1, true}},
    {2, 5, 7, 3, 4, true, {0.9, true}},     {1, 70, 150, 4, 3, true, {0.95, true}},
    {2, 150, 70, 2, 5, true, {0.9, false}}, {2, 130, 129, 3, 1, true, {1, false}},
    {1, 64, 64, 1, 2, true, {0.8, true}},   {1, 70, 150, 4, 3, false, {0.98, true}},
    {1, 3, 200, 4, 3, true, {0.98, false}}, {1, 200, 3, 4, 3, true, {0.7, true}},
    {1, 1, 1, 1, 1, true, {0.5, true}},
};

lengths real_of(const sized& z)
{
    lengths real(std::vector<std::size_t>(z.B, z.T));
    if (z.B > 1) real = lengths({z.T, z.T - 2});
    return real;
}

}  // namespace

TEST_CASE("contexts are those of the definition")
{
    for (const sized& z : sizes) {
        CAPTURE(z.S);
        CAPTURE(z.T);
        const auto q = positive(random({z.B, z.S, z.F}, 1)), k = positive(random({z.B, z.T, z.F}, 2)),
                   v = random({z.B, z.T, z.D}, 3);
        const auto is = ops::linear_attention(q, k, v, real_of(z), z.causal, z.rule);
        const auto must = by_hand(q, k, v, real_of(z), z);
        double worst = 0;
        for (std::size_t i = 0; i < must.size(); ++i) worst = std::max(worst, std::abs(is.data()[i] - must[i]));
        CHECK(worst < 1e-12);
    }
}

TEST_CASE("gradients by finite differences")
{
    for (const sized& z : sizes) {
        if (z.S * z.T > 200 * 3 && z.S != 70) continue;  // long ones one by one are slow
        CAPTURE(z.S);
        CAPTURE(z.T);
        const auto f = [&](const auto& q, const auto& k, const auto& v) {
            return ops::linear_attention(q, k, v, real_of(z), z.causal, z.rule);
        };
        CHECK_GRADIENT(f, positive(random({z.B, z.S, z.F}, 1)), positive(random({z.B, z.T, z.F}, 2)),
                       random({z.B, z.T, z.D}, 3));
    }
}

TEST_CASE("floats as doubles, forward and backward")
{
    // Contexts, and the gradients of queries, keys and values, of the same numbers.
    const auto answers = [](const sized& z, const auto& q, const auto& k, const auto& v) {
        using T = element_of<decltype(q)>;
        ad::tape<T> on;
        const auto Q = on.parameter(q), K = on.parameter(k), values = on.parameter(v);
        const auto contexts = ops::linear_attention(Q, K, values, real_of(z), z.causal, z.rule);
        on.backward(ops::inner(contexts, random<T>({z.B, z.S, z.D}, 4)));
        std::vector<std::vector<double>> all;
        const auto add = [&](const auto& x) { all.emplace_back(x.data, x.data + x.size()); };
        add(contexts.value());
        add(on.gradient(Q));
        add(on.gradient(K));
        add(on.gradient(values));
        return all;
    };
    const auto in_float = [](const array<double, 3>& x) {
        array<float, 3> y(shape_of(x));
        std::transform(x.begin(), x.end(), y.begin(), [](double each) { return static_cast<float>(each); });
        return y;
    };
    for (const sized& z : sizes) {
        CAPTURE(z.S);
        CAPTURE(z.T);
        const auto q = positive(random({z.B, z.S, z.F}, 1)), k = positive(random({z.B, z.T, z.F}, 2)),
                   v = random({z.B, z.T, z.D}, 3);
        const auto is = answers(z, in_float(q), in_float(k), in_float(v)), must = answers(z, q, k, v);
        for (std::size_t i = 0; i < must.size(); ++i) {
            double worst = 0, greatest = 0;
            for (std::size_t j = 0; j < must[i].size(); ++j) {
                const double off = std::abs(is[i][j] - must[i][j]);
                worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
                greatest = std::max(greatest, std::abs(must[i][j]));
            }
            CHECK(worst < 1e-5 * (1 + greatest));
            if (z.F > 1) CHECK(greatest > 1e-3);  // a feature alone divides itself away
        }
    }
}

TEST_CASE("weights by sums")
{
    const lengths real{7, 0, 1, 4};
    for (const ops::rule_of_sums rule : {ops::rule_of_sums{1, true}, {0.7, true}, {0.7, false}}) {
        const auto f = [&](const auto& e) { return ops::weights_by_sum(e, real, rule); };
        CHECK_GRADIENT(f, positive(random({4, 7, 2}, 1)));
        const auto y = ops::weights_by_sum(array<double, 2>{{1, 3, 4, 1e9}}, lengths{3}, rule);
        const double g = rule.decay, sum = rule.divides ? g * g + 3 * g + 4 : 1;
        CHECK(y(0, 0) == support::approx(g * g / sum));
        CHECK(y(0, 1) == support::approx(3 * g / sum));
        CHECK(y(0, 2) == support::approx(4 / sum));
        CHECK(y(0, 3) == 0);
    }
    constexpr double none = -std::numeric_limits<double>::infinity();
    const auto hidden =
        ops::weights_by_sum(array<double, 2>{{1, none, 3}, {none, none, none}}, lengths{3, 3}, ops::rule_of_sums{});
    CHECK(hidden(0, 0) == 0.25);
    CHECK(hidden(0, 1) == 0);
    CHECK(hidden(0, 2) == 0.75);
    CHECK(hidden(1, 2) == 0);
}

TEST_CASE("whatever is behind the real positions does not matter")
{
    const sized z{1, 4, 6, 2, 3, true, {}};
    auto q = positive(random({1, 4, 2}, 1)), k = positive(random({1, 6, 2}, 2));
    auto v = random({1, 6, 3}, 3);
    const auto must = ops::linear_attention(q, k, v, lengths{4}, true, z.rule);
    for (std::size_t t = 4; t < 6; ++t) k(0, t, 0) = v(0, t, 1) = std::numeric_limits<double>::quiet_NaN();
    CHECK(ops::linear_attention(q, k, v, lengths{4}, true, z.rule) == must);
}

TEST_CASE("wrong shapes say what is wrong")
{
    const auto q = random({2, 3, 4}, 1), k = random({2, 5, 4}, 2), v = random({2, 5, 3}, 3);
    CHECK_THROWS_WITH_AS(ops::linear_attention(q, random({2, 5, 3}, 2), v, lengths({5, 5}), false, ops::rule_of_sums{}),
                         doctest::Contains("the keys"), shape_error);
    CHECK_THROWS_WITH_AS(ops::linear_attention(q, k, random({2, 4, 3}, 2), lengths({5, 5}), false, ops::rule_of_sums{}),
                         doctest::Contains("the values"), shape_error);
}
