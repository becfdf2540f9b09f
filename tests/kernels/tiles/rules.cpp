// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
using test::head_of_numbers, test::waves;

namespace {

template <class T>
constexpr double rounding = 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
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

/// The numbers of a row [count] by a selection that sees it in tiles, each lane of it moved by its number.
template <class T, class Rule>
std::vector<T> selected(const Rule& rule, const std::vector<T>& scores, bool& kept)
{
    constexpr std::size_t width = simd::lanes<T>;
    tiles::selection<1, T, Rule> found(rule);
    for (std::size_t first = 0; first < scores.size(); first += tiles::keys) {
        const std::size_t count = std::min(tiles::keys, scores.size() - first);
        std::vector<T> tile(count * width);
        for (std::size_t j = 0; j < count; ++j)
            for (std::size_t q = 0; q < width; ++q) tile[j * width + q] = scores[first + j] + static_cast<T>(q);
        found.add(tile.data(), count);
    }
    std::vector<T> z(2 * width);
    kept = !found.finish(z.data());
    return z;
}

}  // namespace

TEST_CASE_TEMPLATE("weights and slopes of a score, by the definition; a hidden score has none, whatever z is", T, float,
                   double)
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double e : {-3.0, -0.5, 0.0, 0.75, 2.0}) {
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

TEST_CASE_TEMPLATE("stick breaking: from the last key, parts of what is left, thousands of small ones, too", T, float,
                   double)
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

TEST_CASE_TEMPLATE("rules that select find τ, or the k-th greatest, of a row that comes in tiles", T, float, double)
{
    constexpr std::size_t width = simd::lanes<T>;
    const auto scores = waves<T>(700, 1, 40);
    bool kept = false;
    const auto check_sums = [&](const auto& rule) {
        const auto z = selected(rule, scores, kept);
        CHECK(kept);
        for (std::size_t q = 0; q < width; ++q) {
            double sum = 0;
            for (const T e : scores)
                sum += weight_of<T, 2>(rule, static_cast<double>(e + static_cast<T>(q)),
                                       {static_cast<double>(z[q]), static_cast<double>(z[width + q])});
            CHECK(std::fabs(sum - 1) <= 40 * rounding<T>);
        }
    };
    check_sums(tiles::sparse_weights<1>{});
    check_sums(tiles::sparse_weights<2>{});
    auto sorted = scores;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (const std::size_t k : {1u, 7u, 100u}) {
        const auto z = selected(tiles::top_k{k}, scores, kept);
        CHECK(kept);
        for (std::size_t q = 0; q < width; ++q) {
            CHECK(z[q] == sorted[0] + static_cast<T>(q));
            CHECK(z[width + q] == sorted[k - 1] + static_cast<T>(q));
        }
    }
    CHECK(tiles::top_k{160}.fits());
    CHECK_FALSE(tiles::top_k{161}.fits());
    // More nearly equal scores than are kept; rows of which nothing is seen.
    selected(tiles::sparse_weights<1>{}, std::vector<T>(400, T(1)), kept);
    CHECK_FALSE(kept);
    const auto z = selected(tiles::sparse_weights<1>{}, std::vector<T>(9, -std::numeric_limits<T>::infinity()), kept);
    CHECK(std::all_of(z.begin(), z.end(), [](T e) { return e == 0; }));
}

TEST_CASE("factors before a rule multiply; no rule stays none")
{
    const auto twice = tiles::scaled_before(tiles::scaled_before(tiles::top_k{161}, 3), 0.5);
    CHECK(twice.factor == 1.5);
    CHECK_FALSE(twice.fits());
    CHECK(tiles::scaled_before(tiles::top_k{2}, 3).fits());
    static_assert(std::is_same_v<decltype(tiles::scaled_before(tiles::no_rule{}, 2)), tiles::no_rule>);
}
