// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using support::random;

namespace {

/// [(α − 1) e_j − τ]₊^{1/(α−1)} as printed, with τ by bisection.
std::vector<double> by_halving(const std::vector<double>& e, double alpha)
{
    const double top = *std::max_element(e.begin(), e.end()) * (alpha - 1);
    double low = top - 1, high = top;
    const auto weight = [&](double x, double tau) {
        const double over = (alpha - 1) * x - tau;
        return over <= 0 ? 0 : std::pow(over, 1 / (alpha - 1));
    };
    for (int i = 0; i < 200; ++i) {
        const double tau = low + (high - low) / 2;
        double sum = 0;
        for (const double x : e) sum += weight(x, tau);
        (sum < 1 ? high : low) = tau;
    }
    std::vector<double> weights;
    for (const double x : e) weights.push_back(weight(x, low));
    return weights;
}

double a_of(double alpha) { return std::log((alpha - 1) / (2 - alpha)); }

}  // namespace

TEST_CASE("the printed equation, for any α")
{
    std::vector<double> e(23);
    for (std::size_t j = 0; j < e.size(); ++j) e[j] = std::sin(2.0 * static_cast<double>(j)) * 3;
    array<double, 2> scores(shape_of_rank<2>{1, 23});
    std::copy(e.begin(), e.end(), scores.data());
    for (const double alpha : {1.05, 1.2, 1.5, 1.8, 1.99}) {
        const auto w = ops::entmax(scores, array<double, 1>{a_of(alpha)}, lengths{23});
        const auto must = by_halving(e, alpha);
        for (std::size_t j = 0; j < e.size(); ++j) CHECK(std::abs(w(0, j) - must[j]) < 1e-12);
    }
}

TEST_CASE("between softmax and sparsemax, with entmax15 halfway")
{
    const auto e = random({3, 40}, 1, 5);
    const lengths real{40, 17, 0};
    const auto distance = [&](double a, const auto& other) {
        const auto w = ops::entmax(e, array<double, 1>{a}, real);
        double worst = 0;
        for (std::size_t i = 0; i < w.size(); ++i) worst = std::max(worst, std::abs(w.data()[i] - other.data()[i]));
        return worst;
    };
    CHECK(distance(0, ops::entmax15(e, real)) < 1e-14);
    CHECK(distance(40, ops::sparsemax(e, real)) < 1e-14);
    CHECK(distance(-40, ops::softmax(e, real)) < 1e-4);  // α = 1 + 10⁻⁶
    CHECK(distance(-40, ops::softmax(e, real)) > 0);
    const auto wide = random({2, 9, 4}, 2, 3);
    const auto w = ops::entmax(wide, array<double, 1>{0.0}, lengths{9, 3}), must = ops::entmax15(wide, lengths{9, 3});
    for (std::size_t i = 0; i < w.size(); ++i) CHECK(w.data()[i] == support::approx(must.data()[i]));
}

TEST_CASE("floats, long rows, and scores far apart")
{
    for (const float a : {-6.0F, 0.0F, 3.0F}) {
        array<float, 2> e(shape_of_rank<2>{1, 5000});
        for (std::size_t j = 0; j < 5000; ++j) e(0, j) = static_cast<float>(std::sin(static_cast<double>(j)) * 40);
        const auto w = ops::entmax(e, array<float, 1>{a}, lengths{5000});
        double sum = 0;
        for (const float x : w) sum += static_cast<double>(x);
        CHECK(sum == doctest::Approx(1).epsilon(1e-5));
    }
    constexpr double none = -std::numeric_limits<double>::infinity();
    const auto hidden =
        ops::entmax(array<double, 2>{{0.5, none, none}, {none, none, none}}, array<double, 1>{0.3}, lengths{3, 3});
    CHECK(hidden(0, 0) == 1);
    CHECK(hidden(0, 1) == 0);
    CHECK(hidden(1, 1) == 0);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isnan(ops::entmax(array<double, 2>{{0.5, nan}}, array<double, 1>{0.3}, lengths{2})(0, 0)));
}

TEST_CASE("gradients with respect to the scores and alpha")
{
    const auto f = [](const auto& e, const auto& a) { return ops::entmax(e, a, lengths{7, 0, 1, 4}); };
    for (const double a : {-8.0, -2.0, 0.0, 1.5}) {
        CHECK_GRADIENT(f, random({4, 7}, 1), array<double, 1>{a});
        const auto each = support::gradient_of<0b11>(f, random({4, 7, 3}, 2, 2), array<double, 1>{a});
        CHECK_MESSAGE(bool(each), each.text());
    }
}

TEST_CASE("a wrong shape is rejected")
{
    CHECK_THROWS_AS(ops::entmax(random({2, 3}, 1), random({2}, 2), lengths{3, 3}), shape_error);
}

TEST_CASE("entmax satisfies the contracts, per position and per dimension")
{
    const auto W = random({3, 4}, 11), U = random({5, 4}, 12), V = random({4, 5}, 13);
    const auto v = random({4}, 14, 2.0);
    const normalize::entmax learned{array<double, 1>{0.4}};
    const auto per_position =
        verify(attention{score::additive{W, U, v}, learned, combine::weighted_sum{}}, {.query = 3, .width = 5});
    CHECK_MESSAGE(bool(per_position), per_position.text());
    const auto per_dimension =
        verify(attention{score::additive_per_dimension{W, U, V}, learned, combine::elementwise_sum{}},
               {.query = 3, .width = 5});
    CHECK_MESSAGE(bool(per_dimension), per_dimension.text());
}
