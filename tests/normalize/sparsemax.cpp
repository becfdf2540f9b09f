// SPDX-License-Identifier: BSD-3-Clause
#include <heed/normalize/sparsemax.hpp>

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <support/normalizers.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using support::random;
using namespace support::normalizers;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Σ_j max(e_j / power − τ, 0)^power = 1 by bisection, as in the papers' algorithm 1: without sorting or a closed form.
std::vector<double> bisected(const std::vector<double>& e, int power)
{
    std::vector<double> weights(e.size(), 0.0);
    double top = -infinity;
    for (const double x : e) top = std::max(top, x / power);
    if (top == -infinity) return weights;
    double low = top - 1, high = top;
    for (int i = 0; i < 200; ++i) {
        const double tau = low + (high - low) / 2;
        double sum = 0;
        for (const double x : e) sum += std::pow(std::max(x / power - tau, 0.0), power);
        (sum < 1 ? high : low) = tau;
    }
    double sum = 0;
    for (std::size_t j = 0; j < e.size(); ++j) {
        weights[j] = std::pow(std::max(e[j] / power - low, 0.0), power);
        sum += weights[j];
    }
    for (double& w : weights) w /= sum;
    return weights;
}

template <class T, std::size_t R>
array<T, R> sparse(int power, const array<T, R>& scores, const lengths& real)
{
    const plain_step_context at{real};
    return power == 1 ? normalize::sparsemax{}(scores, no_state{}, at) : normalize::entmax15{}(scores, no_state{}, at);
}

void check_bisected(int power, const array<double, 3>& scores, const array<double, 3>& weights, const lengths& real,
                    double tolerance, double of_sum)
{
    CAPTURE(power);
    const auto [batch, positions, width] = shape_of(scores);
    for (std::size_t b = 0; b < batch; ++b) {
        for (std::size_t d = 0; d < width; ++d) {
            const auto must = bisected(column(scores, real, b, d), power);
            double worst = 0, sum = 0;
            for (std::size_t t = 0; t < positions; ++t) {
                worst = std::max(worst, std::abs(weights(b, t, d) - (t < real[b] ? must[t] : 0.0)));
                sum += weights(b, t, d);
            }
            CHECK(worst < tolerance);
            const bool something = std::any_of(must.begin(), must.end(), [](double w) { return w > 0; });
            CHECK(std::abs(sum - (something ? 1 : 0)) < of_sum);
        }
    }
}

/// The numbers as [B,T,N], with N = 1 for weights per position.
template <class T, std::size_t R>
array<double, 3> with_columns(const array<T, R>& x)
{
    array<double, 3> y(shape_of_rank<3>{x.shape()[0], x.shape()[1], R == 3 ? x.shape()[R - 1] : 1});
    std::copy(x.begin(), x.end(), y.begin());
    return y;
}

template <class T, std::size_t R>
void check_against_bisection(const array<T, R>& scores, const lengths& real, double tolerance)
{
    for (const int power : {1, 2}) {
        check_bisected(power, with_columns(scores), with_columns(sparse(power, scores, real)), real, tolerance,
                       sizeof(T) == 4 ? 1e-6 : 1e-12);
    }
}

}  // namespace

TEST_CASE_TEMPLATE("sparsemax and entmax15 agree with bisection", T, float, double)
{
    const double tolerance = sizeof(T) == 4 ? 2e-7 : 1e-14;
    for (const double scale : {0.01, 0.3, 1.0, 4.0}) {
        CAPTURE(scale);
        check_against_bisection(random<T>({4, 7}, 1, scale), {7, 0, 1, 4}, tolerance);
        check_against_bisection(random<T>({1, 1}, 2, scale), {1}, tolerance);
        check_against_bisection(random<T>({3, 500}, 3, scale), {500, 333, 499}, tolerance);
        check_against_bisection(random<T>({3, 6, 2}, 4, scale), {6, 0, 1}, tolerance);
        check_against_bisection(random<T>({2, 9, 37}, 5, scale), {9, 5},
                                tolerance);  // several cache lines and a remainder
    }
    check_against_bisection(array<T, 2>(shape_of_rank<2>{2, 3}, T(0.5)), {3, 2}, tolerance);
}

TEST_CASE_TEMPLATE("sparse weights of simple scores", T, float, double)
{
    const auto check = [](int power, std::initializer_list<double> scores, std::initializer_list<double> weights) {
        const auto is = sparse(power, row_of<T>(scores), {scores.size()});
        CHECK(support::distance(is, row_of<T>(weights)) < 1e-7);
    };
    check(1, {3}, {1});
    check(1, {0.5, 0.5, 0.5, 0.5}, {0.25, 0.25, 0.25, 0.25});
    check(1, {1, 0}, {1, 0});                   // leads by 1: all
    check(1, {0.6, 0.2}, {0.7, 0.3});           // of two: (1 ± difference) / 2
    check(1, {0.5, 0.5, -0.5}, {0.5, 0.5, 0});  // on the border: 0
    check(1, {0.1, 1.1, 0.2, 0.8}, {0, 0.65, 0, 0.35});
    check(2, {3}, {1});
    check(2, {0.5, 0.5, 0.5, 0.5}, {0.25, 0.25, 0.25, 0.25});
    check(2, {2, 0}, {1, 0});                   // leads by 2: all
    check(2, {1, 0.6, -0.6}, {0.64, 0.36, 0});  // z = (0, -0.2, -0.8), τ = -0.8
}

TEST_CASE_TEMPLATE("ties have equal weights, at the top and at the border", T, float, double)
{
    const auto tied = sparse(1, row_of<T>({2, 1.75, 2, 1.75, -3}), {5});
    CHECK(tied(0, 0) == tied(0, 2));
    CHECK(tied(0, 1) == tied(0, 3));
    CHECK(tied(0, 0) == T(0.375));
    CHECK(tied(0, 1) == T(0.125));
    CHECK(tied(0, 4) == 0);
    const auto smooth = sparse(2, row_of<T>({2, 1, 2, 1, -3}), {5});
    CHECK(smooth(0, 0) == smooth(0, 2));
    CHECK(smooth(0, 1) == smooth(0, 3));
    CHECK(smooth(0, 1) > 0);
    CHECK(smooth(0, 4) == 0);
}

TEST_CASE_TEMPLATE("-inf has weight exactly 0, a row of only -inf is 0, and NaN is not masked", T, float, double)
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const int power : {1, 2}) {
        CAPTURE(power);
        const auto some = sparse(power, row_of<T>({-infinity, 0.5, -infinity, 0.25}), {4});
        const auto same = sparse(power, row_of<T>({0.5, 0.25}), {2});
        CHECK(some(0, 0) == 0);
        CHECK(some(0, 2) == 0);
        CHECK(some(0, 1) == same(0, 0));
        CHECK(some(0, 3) == same(0, 1));
        const auto none = sparse(power, row_of<T>({-infinity, -infinity}), {2});
        CHECK(none(0, 0) == 0);
        CHECK(none(0, 1) == 0);
        CHECK(std::isnan(sparse(power, row_of<T>({0.5, nan, 0.25}), {3})(0, 1)));
        const auto behind = sparse(power, row_of<T>({0.5, 0.25, nan, infinity}), {2});
        CHECK(behind(0, 0) == same(0, 0));
        CHECK(behind(0, 2) == 0);
        CHECK(behind(0, 3) == 0);
    }
}

TEST_CASE("scores of 1e4 in float are as exact as small scores, and adding a constant changes nothing")
{
    for (const int power : {1, 2}) {
        CAPTURE(power);
        const auto great = sparse(power, row_of<float>({1e4, 1e4 - 0.5, -1e4, 1e4 - 0.25}), {4});
        const auto small = sparse(power, row_of<float>({0, -0.5, -2e4, -0.25}), {4});
        CHECK(support::same_bits(great, small));
        const auto scores = random({2, 9, 5}, 3);
        auto moved = scores;
        for (double& x : moved) x += 12.5;
        CHECK(support::distance(sparse(power, moved, {9, 6}), sparse(power, scores, {9, 6})) < 1e-14);
    }
}

TEST_CASE("weights do not depend on the order of the positions or the number of threads")
{
    const auto scores = random<float>({60, 40, 11}, 5, 0.5);
    auto reversed = scores;
    for (std::size_t b = 0; b < 60; ++b) {
        for (std::size_t t = 0; t < 40; ++t) {
            for (std::size_t d = 0; d < 11; ++d) reversed(b, t, d) = scores(b, 39 - t, d);
        }
    }
    const lengths real = lengths::full(60, 40);
    for (const int power : {1, 2}) {
        const auto weights = sparse(power, scores, real), backwards = sparse(power, reversed, real);
        double worst = 0;
        for (std::size_t b = 0; b < 60; ++b) {
            for (std::size_t t = 0; t < 40; ++t) {
                for (std::size_t d = 0; d < 11; ++d) {
                    worst = std::max(worst, std::abs(double(weights(b, t, d)) - double(backwards(b, 39 - t, d))));
                }
            }
        }
        CHECK(worst < 1e-7);
        set_threads(3);
        const auto threaded = sparse(power, scores, real);
        set_threads(1);
        CHECK(support::same_bits(threaded, weights));
    }
}

TEST_CASE("sparsemax is closer to the scores than any nearby weights")
{
    // argmin ‖p − e‖² over the simplex: moving a little weight from one position to another only increases it.
    const auto scores = random({1, 6}, 8, 0.6);
    const auto p = sparse(1, scores, {6});
    const auto far = [&](const array<double, 2>& q) {
        double sum = 0;
        for (std::size_t j = 0; j < 6; ++j) sum += (q(0, j) - scores(0, j)) * (q(0, j) - scores(0, j));
        return sum;
    };
    std::size_t tried = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t j = 0; j < 6; ++j) {
            if (i == j || p(0, i) < 1e-4) continue;
            auto q = p;
            q(0, i) -= 1e-4;
            q(0, j) += 1e-4;
            CHECK(far(q) > far(p));
            ++tried;
        }
    }
    CHECK(tried >= 10);
}

TEST_CASE("lengths that do not fit are rejected")
{
    const auto scores = random({2, 3}, 1);
    const lengths wrong{3, 3, 3}, longer{3, 4};
    const auto message = [&](const auto& policy, const lengths& real) {
        return support::message_of<shape_error>([&] { policy(scores, no_state{}, plain_step_context{real}); });
    };
    CHECK(support::contains(message(normalize::sparsemax{}, wrong), "sparsemax: 3 lengths for a batch of 2 rows"));
    CHECK(support::contains(message(normalize::entmax15{}, longer), "entmax15: the length of row 1 is 4"));
    CHECK(support::contains(message(normalize::sigmoid{}, longer), "sigmoid_weights: the length of row 1 is 4"));
}

TEST_CASE("sparsemax satisfies the contracts") { check_contracts_of(normalize::sparsemax{}); }
TEST_CASE("sparse weights of modulated scores satisfy the contracts")
{
    check_contracts(
        attention{score::dot{},
                  normalize::temperature{0.5, normalize::decayed_temporal{0.5, 0.1, normalize::sparsemax{}}},
                  combine::weighted_sum{}},
        {});
}
