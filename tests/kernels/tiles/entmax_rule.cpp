// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/kernels/tiles/entmax_rule.hpp>
#include <support/exhaustive.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

using namespace heed;

namespace {

constexpr std::size_t kinds = 9;

/// Scores of a register of rows, [count][lanes], with a maximum of 0: one kind per lane, `kind` in the first lane.
/// Infinite numbers follow, which must not be read.
template <class T>
std::vector<T> rows_of_scores(std::size_t count, std::size_t kind)
{
    std::vector<T> e(count * simd::lanes<T>);
    for (std::size_t i = 0; i < simd::lanes<T>; ++i) {
        for (std::size_t j = 0; j < count; ++j) {
            const double x = std::sin(2.0 * static_cast<double>(j + i)), share = static_cast<double>(j);
            double score = 0;
            switch ((kind + i) % kinds) {
            case 0:
                score = 3 * x - 3;
                break;
            case 1:
                score = -share / 100;
                break;  // nearly equal
            case 2:
                score = j < count / 2 ? 0 : -1e4;
                break;  // half equal, the others far away
            case 3:
                score = j == 0 ? 0 : -30 - x;
                break;  // a single large score
            case 4:
                score = j == 0 ? 0 : -0.5 - 0.1 * x;
                break;  // one above the others
            case 5:
                score = -0.5 * std::pow(static_cast<double>(j % 50), 2);
                break;
            case 6:
                score = j == 1 ? 0 : -40 + x;
                break;  // a single large score outside the sample
            case 7:
                score = j % 8 == 0 ? x : -15 + x;
                break;  // large scores only in the sample
            default:
                score = j % 3 == 0 ? -std::numeric_limits<double>::infinity() : 8 * x - 8;
                break;
            }
            e[j * simd::lanes<T> + i] = static_cast<T>(score);
        }
        T top = -std::numeric_limits<T>::infinity();
        for (std::size_t j = 0; j < count; ++j) top = std::max(top, e[j * simd::lanes<T> + i]);
        for (std::size_t j = 0; j < count; ++j) e[j * simd::lanes<T> + i] -= top;
    }
    e.resize(e.size() + simd::lanes<T>, std::numeric_limits<T>::infinity());
    return e;
}

/// Checks that the weights of every row sum to 1, also starting from a u of other scores. `bound` applies to 300
/// scores, whose sum and u are rounded.
template <class T>
void check_sums(double bound)
{
    constexpr std::size_t L = simd::lanes<T>;
    for (const double delta : {1e-6, 0.001, 0.02, 0.1, 0.124, 0.126, 0.2, 0.26, 0.3, 0.34, 0.4, 0.5, 0.57, 0.8, 0.99}) {
        const kernels::tiles::entmax_of_head<T> rule(static_cast<T>(delta));
        const bool all_counts = support::exhaustive() || delta <= 0.02 || delta > 0.9;
        for (const std::size_t count : {4u, 100u, 300u, 1030u}) {
            if (count > 100 && !all_counts) continue;
            for (std::size_t kind = 0; kind < kinds; ++kind) {
                const auto e = rows_of_scores<T>(count, kind);
                const simd::vec<T> top{}, right = rule.solve(count, e.data(), L, top, simd::vec<T>{});
                for (const bool again : {false, true}) {
                    const simd::vec<T> u = again ? rule.solve(count, e.data(), L, top, right * T(0.9)) : right;
                    for (std::size_t i = 0; i < L; ++i) {
                        double sum = 0, slope = 0;  // the slope of the sum with respect to u
                        for (std::size_t j = 0; j < count; ++j) {
                            const double score = static_cast<double>(e[j * L + i]);
                            const double b = 1 + delta * (score - static_cast<double>(u[i]));
                            if (b <= 0) continue;
                            sum += std::pow(b, 1 / delta);
                            slope += std::pow(b, 1 / delta - 1);
                        }
                        const double last_place =
                            slope * static_cast<double>(u[i]) * static_cast<double>(std::numeric_limits<T>::epsilon());
                        CAPTURE(delta);
                        CAPTURE(count);
                        CAPTURE((kind + i) % kinds);
                        CHECK(std::abs(sum - 1) < bound * std::max(1.0, static_cast<double>(count) / 300) + last_place);
                    }
                }
            }
        }
    }
}

}  // namespace

TEST_CASE("u makes the weights sum to 1")
{
    check_sums<double>(1e-9);
    check_sums<float>(4e-6);
}

TEST_CASE("powers of floats compared with double, also near 1 and for NaN")
{
    constexpr std::size_t L = simd::lanes<float>;
    for (const double p : {0.3, 0.7, 1.1, 2.0, 3.3, 20.0, 1e4, 1e6}) {
        for (std::size_t i = 0; i < 4000; ++i) {
            // x near 0 where p is large, and down to -1 in steps
            const double most = i < 2000 ? std::min(1.0, 20 / p) : 1.0;
            const float x = static_cast<float>(-most * (static_cast<double>(i % 2000) + 0.5) / 2000);
            const auto is = static_cast<double>(
                kernels::tiles::power_of(simd::splat(x + 1), simd::splat(x), static_cast<float>(p))[i % L]);
            const double logarithm = static_cast<double>(static_cast<float>(p)) * std::log1p(static_cast<double>(x));
            if (logarithm < -80) {
                CHECK(is >= 0);
                CHECK(is < 1e-34);
            } else {
                CAPTURE(p);
                CAPTURE(x);
                CHECK(std::abs(is / std::exp(logarithm) - 1) < 2e-7 * (1 - logarithm) + 4e-8 * (x < -0.2F ? p : 0));
            }
        }
    }
    for (const float b : {1.0F, 0.999F, 0.8F, 0.5F, 0.1F, 0.01F, 1e-3F}) {
        for (const float p : {0.0F, 0.1F, 0.75F, 3.0F, 8.0F}) {
            const double must = std::pow(static_cast<double>(b), static_cast<double>(p));
            const double is = static_cast<double>(kernels::tiles::power_of<true>(simd::splat(b), simd::splat(b), p)[0]);
            if (must > 1e-9) CHECK(std::abs(is / must - 1) < 2e-4 - 1e-4 * std::log(must));
        }
    }
    const simd::vec<float> nan = simd::splat(std::numeric_limits<float>::quiet_NaN());
    CHECK(std::isnan(kernels::tiles::power_of(nan, nan, 3.0F)[0]));
}

TEST_CASE_TEMPLATE("slopes of small weights", T, float, double)
{
    const kernels::tiles::entmax_of_head<T> rule(T(0.3));
    for (const double w : {1.0, 0.5, 0.7, 1e-3, 1e-12, 1e-30}) {
        const double must = std::pow(w, 0.7);
        CHECK(std::abs(static_cast<double>(rule.slope(simd::splat(static_cast<T>(w)))[0]) / must - 1) < 1e-5);
    }
    CHECK((rule.slope(simd::vec<T>{})[0] == 0));
}

TEST_CASE_TEMPLATE("the derivative of a weight with respect to delta, and of delta with respect to a", T, float, double)
{
    for (const double delta : {0.01, 0.3, 0.9}) {
        const kernels::tiles::entmax_of_head<T> rule(static_cast<T>(delta));
        for (const double w : {1.0, 0.9, 0.5, 0.1, 1e-3}) {
            const double over = (std::pow(w, delta) - 1) / delta;  // w = (1 + delta over)^{1/delta}
            const auto weight = [over](double d) { return std::exp(std::log1p(d * over) / d); };
            const double must = (weight(delta + 1e-5) - weight(delta - 1e-5)) / 2e-5;
            const double is = static_cast<double>(rule.bend(simd::splat(static_cast<T>(w)))[0]);
            CAPTURE(delta);
            CAPTURE(w);
            CHECK(std::abs(is - must) <= 1e-4 * std::abs(must) + 1e-9);
        }
        CHECK((rule.bend(simd::vec<T>{})[0] == 0));
    }
    for (const double a : {-2.0, 0.0, 1.5}) {
        const auto delta = [](double x) {
            return static_cast<double>(kernels::tiles::entmax_delta(static_cast<T>(x)));
        };
        CHECK(std::abs(delta(a) - 1 / (1 + std::exp(-a))) <= 1e-6);
        const kernels::tiles::entmax_of_head<T> rule(static_cast<T>(delta(a)));
        const double slope = (delta(a + 0.01) - delta(a - 0.01)) / 0.02;
        CHECK(std::abs(static_cast<double>(rule.of_number(T(2))) - 2 * slope) <= 1e-4);
    }
}

namespace {

/// u changes with the scores by Σ_j s_j ∂e_j / Σ_j s_j, s_j = b_j^{1/δ−1}.
template <class T>
void check_slopes_of_u(double bound)
{
    using dual = dual_number<T>;
    constexpr std::size_t L = simd::lanes<dual>;
    for (const double delta : {0.05, 0.2, 0.4, 0.7}) {
        for (const std::size_t count : {std::size_t{40}, std::size_t{600}}) {
            const auto score = [](std::size_t j) {
                return j == 0 ? 0 : 1.5 * std::sin(3.0 * static_cast<double>(j)) - 1.5;
            };
            const auto slope = [](std::size_t j, std::size_t i) { return std::cos(1.7 * static_cast<double>(j + i)); };
            std::vector<dual> e(count * L);
            for (std::size_t j = 0; j < count; ++j)
                for (std::size_t i = 0; i < L; ++i)
                    e[j * L + i] = {static_cast<T>(score(j)), static_cast<T>(slope(j, i))};
            const kernels::tiles::entmax_of_head<dual> rule(dual{static_cast<T>(delta), T(0)});
            const simd::vec<dual> u = rule.solve(count, e.data(), L, simd::vec<dual>{}, simd::vec<dual>{});
            for (std::size_t i = 0; i < L; ++i) {
                double all = 0, pulled = 0;
                for (std::size_t j = 0; j < count; ++j) {
                    const double b = 1 + delta * (score(j) - static_cast<double>(u[i].value));
                    const double s = b > 0 ? std::pow(b, 1 / delta - 1) : 0;
                    all += s;
                    pulled += s * slope(j, i);
                }
                CAPTURE(delta);
                CAPTURE(count);
                CHECK(std::abs(pulled / all - static_cast<double>(u[i].slope)) < bound);
            }
        }
    }
}

}  // namespace

TEST_CASE("dual numbers: the slope of u with respect to the scores")
{
    check_slopes_of_u<double>(1e-6);
    check_slopes_of_u<float>(2e-4);
}
