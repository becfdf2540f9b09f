// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/pack.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <support/score_indices.hpp>

namespace {

using namespace heed;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("functions of score indices match scalar functions", T, float, double)
{
    const double near = 2 * last_place<T>;
    CHECK(worst<T>([](auto e, score_index p) { return e + 0.1 * (p.query - p.key); },
                   [](double q, double k) { return 0.1 * (q - k); }) <= near);
    CHECK(worst<T>([](auto e, score_index p) { return e - abs(0.3 * (p.key - p.query)) / 7; },
                   [](double q, double k) { return -std::abs(0.3 * (k - q)) / 7; }) <= 2 * near);
    CHECK(worst<T>([](auto e, score_index p) { return e + log(abs(p.query - p.key) + 1.5); },
                   [](double q, double k) { return std::log(std::abs(q - k) + 1.5); }) <= 2 * near);
    CHECK(worst<T>([](auto e, score_index p) { return e + sqrt(0.5 * p.query) - tanh(0.001 * p.key); },
                   [](double q, double k) { return std::sqrt(0.5 * q) - std::tanh(0.001 * k); }) <= 4 * near);
    CHECK(worst<T>([](auto e, score_index p) { return e + exp(-0.0001 * p.key) * sigmoid(0.01 * p.key - 3); },
                   [](double, double k) { return std::exp(-0.0001 * k) / (1 + std::exp(3 - 0.01 * k)); }) <= 40 * near);
    CHECK(worst<T>([](auto e, score_index p) { return e + max(0.1 * p.key, 4) - min(p.key * 0.2, 5.5); },
                   [](double, double k) { return std::max(0.1 * k, 4.0) - std::min(0.2 * k, 5.5); }) <= 2 * near);
    CHECK(worst<T>([](auto e, score_index p) { return e + select(0.5 * p.key < 2, -(0.25 * p.key), 1.5 * p.query); },
                   [](double q, double k) { return 0.5 * k < 2 ? -0.25 * k : 1.5 * q; }) <= near);
}

TEST_CASE_TEMPLATE("sines of indices are exact, also far from 0", T, float, double)
{
    const double near = 2.5 * last_place<T>;
    for (const double omega : {1.0, 0.2, 0.01, 3.14159265358979, 1e-7, 12345.678}) {
        // The bound includes a rounding error of the angle in double.
        const double bound = near + 16777216 * omega * 1.2e-16;
        CHECK(worst<T>([=](auto e, score_index p) { return e + sin(omega * (p.query - p.key)); },
                       [=](double q, double k) { return std::sin(omega * (q - k)); }) <= bound);
        CHECK(worst<T>([=](auto e, score_index p) { return e + cos(omega * (p.query - p.key)); },
                       [=](double q, double k) { return std::cos(omega * (q - k)); }) <= bound);
    }
    const auto far = [](double omega) {
        const score_index p = place_at(1, 3);
        return pack<T>(sin(omega * p.key) + pack<T>(0))[0] - static_cast<T>(std::sin(omega * 3)) +
               pack<T>(cos(omega * p.key) + pack<T>(0))[0] - static_cast<T>(std::cos(omega * 3));
    };
    CHECK(std::abs(far(1e17)) <= near);
    CHECK(std::abs(far(-1e200)) <= near);
    CHECK(std::isnan(far(std::numeric_limits<double>::infinity())));
    CHECK(std::isnan(far(std::numeric_limits<double>::quiet_NaN())));
    CHECK((cos(0.0 * place_at(0, 0).key) - pack<T>(1))[0] == 0);
}

TEST_CASE_TEMPLATE("indices have the type of the score that they are combined with", T, float, double)
{
    const pack<T> e(1);
    const score_index p = place_at(5, 2);
    static_assert(std::is_same_v<decltype(e + 0.5 * p.key), pack<T>>);
    static_assert(std::is_same_v<decltype(0.5 * (p.query - p.key) * e), pack<T>>);
    static_assert(std::is_same_v<decltype(select(p.key > 1, 0.5 * p.key, e)), pack<T>>);
    static_assert(std::is_same_v<decltype(dual<T>() + 0.5 * p.key), dual<T>>);
    static_assert(std::is_same_v<decltype(cos(0.5 * p.key) - 1), decltype(0.5 * p.key)>);
    static_assert(std::is_same_v<decltype(p.query * 2), pack<std::int32_t>>);
    CHECK((e + 0.5 * p.key)[0] == T(2));
    CHECK((e - (p.query - p.key) / 4.0)[1] == T(0));
    CHECK((2 / (1.0 * p.key) * e)[0] == T(1));
    CHECK((dual<T>(e, e) * (0.5 * p.key)).slope[0] == T(1));
    CHECK((pack<dual_number<T>>(dual_number<T>(3, 1)) * (0.5 * p.key))[0].slope == T(1));
    const pack<double> doubles = 0.1 * p.key;
    CHECK(doubles[0] == 0.1 * 2);
    CHECK(pack<std::int32_t>(0.9 * p.query)[0] == 4);
    const lane_mask more = 0.5 * p.query > 2.4;
    CHECK(int{more.at[0]} == -1);
}

TEST_CASE_TEMPLATE("a constant has the precision of the score that it is combined with", T, float, double)
{
    const score_index p = place_at(5, 2);
    const pack<T> e(1);
    static_assert(std::is_same_v<decltype(0.5F * p.key), decltype(0.5 * p.key)>);
    static_assert(std::is_same_v<decltype(p.key / 3.0F), decltype(p.key / 3.0)>);
    static_assert(std::is_same_v<decltype(e - 0.5F * p.key), pack<T>>);
    static_assert(std::is_same_v<decltype(e - 0.5 * p.key), pack<T>>);
    static_assert(std::is_same_v<decltype(0.5F * e), pack<T>> && std::is_same_v<decltype(e * 0.5), pack<T>>);
    static_assert(std::is_same_v<decltype(max(e, 0.5F)), pack<T>> && std::is_same_v<decltype(max(0.5, e)), pack<T>>);
    static_assert(std::is_same_v<decltype(dual<T>() - 0.5F * p.key), dual<T>>);
    using learning = pack<dual_number<T>>;
    static_assert(std::is_same_v<decltype(learning() - 0.5F * p.key), learning>);
    static_assert(std::is_same_v<decltype(learning() * pack<float>()), learning>);
    // Lanes of two types combine in the wider type, in either order.
    static_assert(std::is_same_v<decltype(pack<float>() * pack<double>()), pack<double>>);
    static_assert(std::is_same_v<decltype(pack<double>() - pack<float>()), pack<double>>);
    static_assert(std::is_same_v<decltype(select(p.key > 1, pack<float>(), pack<double>())), pack<double>>);
    static_assert(std::is_same_v<decltype(p.key + pack<std::int64_t>()), pack<std::int64_t>>);
    static_assert(std::is_same_v<decltype(pack<std::int64_t>() + p.key), pack<std::int64_t>>);
    const pack<float> floats = 0.5F * p.key;
    CHECK(floats[0] == 1.0F);

    // Compared with double: only the constant is rounded.
    const double near = 2 * last_place<T>;
    CHECK(worst<T>([](auto x, score_index at) { return x - 0.3F * (at.query - at.key); },
                   [](double q, double k) { return -double{0.3F} * (q - k); }) <= near);
    CHECK(worst<T>([](auto x, score_index at) { return x + 0.7F * at.query * (0.1 * at.key) + at.query / 3.0F; },
                   [](double q, double k) { return double{0.7F} * q * (0.1 * k) + q / 3; }) <= 4 * near);
    CHECK(worst<T>([](auto x, score_index at) { return x + cos(0.2F * (at.query - at.key)); },
                   [](double q, double k) { return std::cos(double{0.2F} * (q - k)); }) <= near + 16777216 * 1.2e-16);
}
