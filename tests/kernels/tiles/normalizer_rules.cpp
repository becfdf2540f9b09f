// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/normalizer_rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::rounding, test::waves;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class T, std::size_t n>
double weight_of(const auto& rule, double e, const std::array<double, n>& z)
{
    std::array<simd::vec<T>, n> numbers;
    for (std::size_t i = 0; i < n; ++i) numbers[i] = simd::splat(static_cast<T>(z[i]));
    return static_cast<double>(rule.weight(simd::splat(static_cast<T>(e)), numbers)[0]);
}
template <class T>
double slope_of(const auto& rule, double w)
{
    return static_cast<double>(rule.slope(simd::splat(static_cast<T>(w)))[0]);
}

}  // namespace

TEST_CASE_TEMPLATE("weights and slopes of a score match the definition; a masked score has none, for any z", T, float,
                   double)
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double e : {-3.0, -0.5, 0.0, 0.375, 0.75, 2.0}) {
        CHECK(std::fabs(weight_of<T, 2>(tiles::softmax{}, e, {2, 0.25}) - std::exp(e - 2) / 4) <= rounding<T>);
        CHECK(std::fabs(weight_of<T, 0>(tiles::sigmoid{0.5}, e, {}) - sigmoid(e + 0.5)) <= rounding<T>);
        CHECK(std::fabs(weight_of<T, 0>(tiles::learned_sigmoid{}.of_head(T(0.5)), e, {}) - sigmoid(e + 0.5)) <=
              rounding<T>);
        const double over = std::max(e - 2 + 0.9, 0.0), half = std::max((e - 2) / 2 + 0.9, 0.0);
        CHECK(std::fabs(weight_of<T, 2>(tiles::sparse_weights<1>{}, e, {2, -0.9}) - over) <= rounding<T>);
        CHECK(std::fabs(weight_of<T, 2>(tiles::sparse_weights<2>{}, e, {2, -0.9}) - half * half) <= rounding<T>);
        const double among = e < 0.5 ? 0 : std::exp(e - 2) / 4;
        CHECK(std::fabs(weight_of<T, 3>(tiles::top_k{3}, e, {2, 0.5, 0.25}) - among) <= rounding<T>);
    }
    CHECK(weight_of<T, 2>(tiles::softmax{}, -infinity, {nan, nan}) == 0);
    CHECK(weight_of<T, 0>(tiles::sigmoid{infinity}, -infinity, {}) == 0);
    CHECK(weight_of<T, 2>(tiles::sparse_weights<1>{}, -infinity, {nan, nan}) == 0);
    CHECK(weight_of<T, 3>(tiles::top_k{3}, -infinity, {nan, nan, nan}) == 0);
    CHECK(std::isnan(weight_of<T, 2>(tiles::softmax{}, 1, {nan, nan})));
    CHECK(slope_of<T>(tiles::softmax{}, 0.25) == 0.25);
    CHECK(slope_of<T>(tiles::sigmoid{}, 0.25) == 0.1875);
    CHECK(slope_of<T>(tiles::sparse_weights<1>{}, 0.25) == 1);
    CHECK(slope_of<T>(tiles::sparse_weights<1>{}, 0) == 0);
    CHECK(slope_of<T>(tiles::sparse_weights<2>{}, 0.25) == 0.5);
}

TEST_CASE_TEMPLATE("stick-breaking from the last key takes fractions of the rest, also thousands of small fractions", T,
                   float, double)
{
    const std::size_t n = 5000;
    const auto e = waves<T>(n, 1, 3);
    for (const double moved : {0.0, -9.0}) {
        tiles::stick_breaking::stick<simd::vec<T>> rest;
        double left = 1, worst = 0, sum = 0;
        for (std::size_t j = n; j-- > 0;) {
            const T score = j % 5 == 0 ? -std::numeric_limits<T>::infinity() : e[j] + static_cast<T>(moved);
            simd::vec<T> part;
            const double w = static_cast<double>(tiles::stick_breaking::next_weight(simd::splat(score), rest, part)[0]);
            const double share = sigmoid(static_cast<double>(score));
            worst = std::max(worst, std::fabs(w - share * left));
            if (j % 5 == 0) CHECK(w == 0);
            left *= 1 - share;
            sum += w;
        }
        CHECK(worst <= rounding<T>);
        CHECK(std::fabs(sum + left - 1) <= rounding<T>);
    }
}

TEST_CASE("stick-breaking: gradients of scores, also after a part of 0 and before a part of 1")
{
    using V = simd::vec<double>;
    const std::vector<double> d_weights{0.5, -1, 2, 0.25, -0.75};
    const auto weights_of = [](const std::vector<double>& e, std::vector<double>& parts) {
        tiles::stick_breaking::stick<V> rest;
        std::vector<double> weights(e.size());
        for (std::size_t j = e.size(); j-- > 0;) {
            V part;
            weights[j] = tiles::stick_breaking::next_weight(simd::splat(e[j]), rest, part)[0];
            parts[j] = part[0];
        }
        return weights;
    };
    const auto loss = [&](const std::vector<double>& e) {
        std::vector<double> parts(e.size());
        const auto weights = weights_of(e, parts);
        return std::inner_product(weights.begin(), weights.end(), d_weights.begin(), 0.0);
    };
    for (const std::vector<double>& e :
         {std::vector<double>{0.5, -1, 0, 1, -0.5}, {0.5, -1, 100, 1, -0.5}, {0.5, -1, 0, -infinity, -0.5}}) {
        std::vector<double> parts(e.size());
        const auto weights = weights_of(e, parts);
        const V all = simd::splat(loss(e));
        V later{};
        for (std::size_t j = e.size(); j-- > 0;) {
            const V part = simd::splat(parts[j]);
            const V pulled = tiles::stick_breaking::pulled(simd::splat(weights[j]), simd::splat(d_weights[j]));
            later = tiles::stick_breaking::later_than(part, later + pulled, all);
            CAPTURE(j);
            if (parts[j] == 1) CHECK((later[0] == all[0]));
            auto above = e, below = e;
            above[j] += 1e-5;
            below[j] -= 1e-5;
            const double slope = tiles::stick_breaking::gradient(part, pulled, all - later)[0];
            CHECK(std::fabs(slope - (loss(above) - loss(below)) / 2e-5) <= 1e-9);
        }
    }
}

TEST_CASE_TEMPLATE("sparse weights sum to 1, and their bound does not depend on the maximum", T, float, double)
{
    const auto check = [](const auto& rule) {
        constexpr std::size_t L = simd::lanes<T>;
        auto e = waves<T>(20 * L, 1, 3);
        const simd::vec<T> top = simd::splat(*std::max_element(e.begin(), e.end()));
        const auto tau = rule.solve(20, e.data(), L, top, simd::splat(static_cast<T>(rule.first)));
        for (std::size_t i = 0; i < L; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < 20; ++j)
                sum += weight_of<T, 2>(rule, e[j * L + i], {static_cast<double>(top[0]), static_cast<double>(tau[i])});
            CHECK(std::fabs(sum - 1) <= 10 * rounding<T>);
        }
        const auto by = simd::splat(T(0.5));
        CHECK(std::fabs(rule.bound(top + by, rule.moved(tau, by))[0] - rule.bound(top, tau)[0]) <= 10 * rounding<T>);
    };
    check(tiles::sparse_weights<1>{});
    check(tiles::sparse_weights<2>{});
}

TEST_CASE_TEMPLATE("top-k: the k-th largest score, or -inf if there are fewer", T, float, double)
{
    constexpr std::size_t L = simd::lanes<T>;
    std::vector<T> e(5 * L, static_cast<T>(-infinity));
    for (std::size_t j = 0; j < 4; ++j) std::fill_n(e.begin() + static_cast<std::ptrdiff_t>((j * 3 % 4) * L), L, T(j));
    for (const std::size_t k : {1u, 2u, 4u, 5u}) {
        const auto least = tiles::top_k{k}.solve(5, e.data(), L, simd::splat(T(3)), simd::vec<T>{});
        CHECK((least[0] == (k > 4 ? static_cast<T>(-infinity) : static_cast<T>(4 - k))));
    }
}

TEST_CASE("factors before a rule multiply; without a rule the result has no rule")
{
    const auto twice = tiles::scaled_before(tiles::scaled_before(tiles::top_k{161}, 3), 0.5);
    CHECK(twice.factor == 1.5);
    CHECK_FALSE(twice.fits());
    CHECK(tiles::scaled_before(tiles::top_k{2}, 3).fits());
    static_assert(std::is_same_v<decltype(tiles::scaled_before(tiles::no_rule{}, 2)), tiles::no_rule>);
}
