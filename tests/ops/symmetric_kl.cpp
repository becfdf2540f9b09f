// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/symmetric_kl.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

namespace {

std::vector<double> softmax_of(std::size_t n, const double* x)
{
    std::vector<double> p(n);
    double sum = 0;
    for (std::size_t v = 0; v < n; ++v) sum += p[v] = std::exp(x[v]);
    for (double& each : p) each /= sum;
    return p;
}

ops::expected_words<double> rows_of_weights(std::size_t steps, std::size_t batch, std::vector<double> weights)
{
    return {word_ids(steps, batch), std::move(weights)};
}

}  // namespace

TEST_CASE("symmetric KL: value and gradients, with weights, for lengths around a register")
{
    for (const std::size_t V : {1u, 2u, 7u, 8u, 9u, 33u}) {
        const auto a = random({2, 3, V}, 1, 2.0), b = random({2, 3, V}, 2, 2.0);
        const auto targets = rows_of_weights(2, 3, {1.0, 0.5, 0.0, 2.0, 0.25, 1.0});
        double must = 0;
        for (std::size_t r = 0; r < 6; ++r) {
            const auto p = softmax_of(V, a.data() + r * V), q = softmax_of(V, b.data() + r * V);
            for (std::size_t v = 0; v < V; ++v)
                must += targets.weights[r] * (p[v] * std::log(p[v] / q[v]) + q[v] * std::log(q[v] / p[v]));
        }
        CHECK(ops::symmetric_kl(a, b, targets)() == doctest::Approx(must).epsilon(1e-13));
        const auto found = support::gradient_of<0b11>(
            [&](const auto& x, const auto& y) { return ops::scale(ops::symmetric_kl(x, y, targets), 0.7); }, a, b);
        CHECK_MESSAGE(bool(found), found.text());
    }
}

TEST_CASE("symmetric KL: one step, equal distributions, no rows")
{
    const auto a = random({3, 5}, 1), b = random({3, 5}, 2);
    auto shifted = a;
    for (std::size_t i = 0; i < shifted.size(); ++i) shifted.data()[i] += 3;
    const auto one = rows_of_weights(1, 3, {1.0, 2.0, 0.5});
    const double forth = ops::symmetric_kl(a, b, one)();
    CHECK(forth > 0.1);
    CHECK(ops::symmetric_kl(b, a, one)() == doctest::Approx(forth).epsilon(1e-14));
    CHECK(std::abs(ops::symmetric_kl(a, shifted, one)()) < 1e-14);
    const auto none = filled<double, 3>({0, 2, 4}, 0.0);
    CHECK(ops::symmetric_kl(none, none, rows_of_weights(0, 2, {}))() == 0.0);
}

TEST_CASE("symmetric KL: hidden words do not count, and rows of weight 0 are not read")
{
    constexpr double hidden = -std::numeric_limits<double>::infinity();
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    const auto logits = [](std::vector<double> of) {
        auto x = filled<double, 2>({2, 3}, 0.0);
        std::copy(of.begin(), of.end(), x.data());
        return x;
    };
    const auto a = logits({1, hidden, 2, unknown, unknown, unknown});
    const auto b = logits({0, hidden, 0.5, unknown, unknown, unknown});
    const auto targets = rows_of_weights(1, 2, {1.0, 0.0});
    const auto p = softmax_of(3, a.data()), q = softmax_of(3, b.data());
    const double must = (p[0] - q[0]) * std::log(p[0] / q[0]) + (p[2] - q[2]) * std::log(p[2] / q[2]);
    CHECK(ops::symmetric_kl(a, b, targets)() == doctest::Approx(must).epsilon(1e-13));
    ad::tape<double> on;
    const auto x = on.parameter(a), y = on.parameter(b);
    on.backward(ops::symmetric_kl(x, y, targets));
    for (const auto& each : {copy_of(on.gradient(x)), copy_of(on.gradient(y))}) {
        CHECK(each(0, 0) + each(0, 2) == support::approx(0));
        CHECK(each(0, 0) != 0.0);
        CHECK(each(0, 1) == 0.0);
        for (std::size_t v = 0; v < 3; ++v) CHECK(each(1, v) == 0.0);
    }
}

TEST_CASE("symmetric KL: wrong shapes are named")
{
    const auto a = random({2, 5}, 1);
    const auto weights = rows_of_weights(1, 2, {1.0, 1.0});
    CHECK_THROWS_WITH_AS(ops::symmetric_kl(a, random({2, 4}, 1), weights),
                         "symmetric_kl: the second logits are [2,4] but must be [2,5] (the shape of the first)",
                         shape_error);
    CHECK_THROWS_WITH_AS(ops::symmetric_kl(a, a, rows_of_weights(1, 1, {1.0})),
                         "symmetric_kl: the weights are [1] but must be [2] (one for each row of logits)", shape_error);
}
