// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/softmax.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace heed;
using support::random;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Compares softmax and log_softmax over an axis with loops over all elements.
template <std::size_t R>
void check_axes(const array<double, R>& x)
{
    for (std::size_t axis = 0; axis < R; ++axis) {
        std::size_t inner = 1;
        for (std::size_t i = axis + 1; i < R; ++i) inner *= x.shape()[i];
        const std::size_t n = x.shape()[axis];
        const auto weights = ops::softmax(x, static_cast<int>(axis)),
                   logs = ops::log_softmax(x, static_cast<int>(axis));
        REQUIRE(weights.shape() == x.shape());
        REQUIRE(logs.shape() == x.shape());
        double most = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < n; ++j) sum += std::exp(x.data()[i - i / inner % n * inner + j * inner]);
            most = std::max(most, std::abs(weights.data()[i] - std::exp(x.data()[i]) / sum));
            most = std::max(most, std::abs(logs.data()[i] - (x.data()[i] - std::log(sum))));
        }
        CHECK(most < 1e-13);
        const int from_the_end = static_cast<int>(axis) - static_cast<int>(R);
        CHECK(support::same_bits(ops::softmax(x, from_the_end), weights));
        CHECK(support::same_bits(ops::log_softmax(x, from_the_end), logs));
        if (axis + 1 < R) continue;
        CHECK(support::same_bits(ops::softmax(x), weights));
        CHECK(support::same_bits(ops::log_softmax(x), logs));
    }
}

}  // namespace

TEST_CASE("softmax: positive weights that sum to 1 over the real positions")
{
    const auto e = random({3, 5}, 1, 4);
    const lengths real{5, 2, 0};
    const auto weights = ops::softmax(e, real);
    for (std::size_t b = 0; b < 3; ++b) {
        double sum = 0;
        for (std::size_t t = 0; t < real[b]; ++t) sum += std::exp(e(b, t));
        for (std::size_t t = 0; t < 5; ++t) {
            CHECK(weights(b, t) == doctest::Approx(t < real[b] ? std::exp(e(b, t)) / sum : 0.0).epsilon(1e-13));
        }
    }
    for (std::size_t t = 2; t < 5; ++t) CHECK(weights(1, t) == 0);

    // Adding a constant to all scores changes no bit, however large, in float with multiples of 1/2.
    array<float, 2> low{{0.0f, 0.5f, -2.0f, 3.5f}}, high = low, negative = low;
    for (float& s : high) s += 1e4f;
    for (float& s : negative) s -= 1e4f;
    CHECK(support::same_bits(ops::softmax(high, lengths{4}), ops::softmax(low, lengths{4})));
    CHECK(support::same_bits(ops::softmax(negative, lengths{4}), ops::softmax(low, lengths{4})));
    CHECK(support::same_bits(ops::softmax(array<float, 2>{{1e4f, -1e4f}}, lengths{2}), array<float, 2>{{1.0f, 0.0f}}));

    // Per dimension: each column is a separate softmax.
    const auto columns = random({2, 6, 3}, 2, 4);
    const auto each = ops::softmax(columns, lengths{6, 4});
    for (std::size_t d = 0; d < 3; ++d) {
        array<double, 2> column({2, 6});
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 6; ++t) column(b, t) = columns(b, t, d);
        }
        const auto must = ops::softmax(column, lengths{6, 4});
        for (std::size_t b = 0; b < 2; ++b) {
            for (std::size_t t = 0; t < 6; ++t) CHECK(each(b, t, d) == doctest::Approx(must(b, t)).epsilon(1e-13));
        }
    }

    // A NaN score is not padding: it must be visible.
    array<double, 2> broken{{0.0, std::nan("")}};
    CHECK(std::isnan(ops::softmax(broken, lengths{2})(0, 0)));
    CHECK(ops::softmax(broken, lengths{1})(0, 0) == 1);
}

TEST_CASE("softmax and log_softmax over an axis, of any rank")
{
    check_axes(random({23}, 1, 3));
    check_axes(random({3, 17}, 2, 3));
    check_axes(random({2, 5, 19}, 3, 3));
    check_axes(random({2, 3, 4, 5}, 4, 3));
    check_axes(random({3, 1}, 5, 3));

    // The last axis of [B,T] is softmax over all positions.
    const auto e = random({3, 5}, 6, 4);
    CHECK(support::same_bits(ops::softmax(e, -1), ops::softmax(e, lengths::full(3, 5))));
    const auto f = random<float>({2, 33}, 7);
    CHECK(support::distance(ops::exp(ops::log_softmax(f, -1)), ops::softmax(f, -1)) < 1e-6);

    // Far apart: the logarithm of a number that underflows. Masked: -inf. Only -inf, and NaN.
    const array<double, 2> x{{1e4, -1e4, -infinity}, {-infinity, -infinity, -infinity}, {std::nan(""), 0, -infinity}};
    const auto logs = ops::log_softmax(x, 1);
    const array<double, 2> must{{0, -2e4, -infinity}, {-infinity, -infinity, -infinity}};
    for (std::size_t i = 0; i < 6; ++i) CHECK(logs.data()[i] == must.data()[i]);
    CHECK(std::isnan(logs(2, 0)));
    CHECK(std::isnan(logs(2, 1)));
    CHECK(logs(2, 2) == -infinity);
    for (std::size_t i = 3; i < 6; ++i) CHECK(ops::softmax(x, 1).data()[i] == 0);

    CHECK_THROWS_WITH_AS(ops::softmax(x, 2),
                         "softmax: axis 2 of a tensor [3,3]; it has axes 0 to 1, or -1 for the last", shape_error);
    CHECK_THROWS_WITH_AS(ops::log_softmax(x, -3),
                         "log_softmax: axis -3 of a tensor [3,3]; it has axes 0 to 1, or -1 for the last", shape_error);
}

TEST_CASE("a sum of many small numbers in float")
{
    // exp(-3.3) many times: a running sum in float would be off by a thousandth.
    constexpr std::size_t n = 1 << 16;
    auto scores = filled<float, 2>({1, n}, -3.3f);
    scores(0, 17) = 0.0f;
    const auto weights = ops::softmax(scores, lengths{n});
    double sum = 0;
    for (const float w : weights) sum += static_cast<double>(w);
    CHECK(std::abs(sum - 1) < 1e-5);
}

TEST_CASE("softmax: gradients")
{
    for (const std::size_t positions : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{20}}) {
        const lengths real{positions, 0, 1, (positions + 1) / 2};
        const auto f = [&](const auto& e) { return ops::softmax(e, real); };
        CHECK_GRADIENT(f, random({4, positions}, 1, 2));
        CHECK_GRADIENT(f, random({4, positions, 3}, 2, 2));
        CHECK_GRADIENT(f, random({4, positions, 1}, 3, 2));
    }
    // A score of -inf gets no weight and no gradient; a row of only -inf is a row without positions.
    const double none = -std::numeric_limits<double>::infinity();
    const array<double, 2> e{{none, 0.0, 1.0}, {none, none, none}};
    ad::tape<double> on;
    const auto scores = on.parameter(e);
    const auto weights = ops::softmax(scores, lengths{3, 3});
    CHECK(weights.data()[0] == 0);
    CHECK(weights.data()[2] == support::approx(1 / (1 + std::exp(-1.0))));
    for (std::size_t i = 3; i < 6; ++i) CHECK(weights.data()[i] == 0);
    on.backward(ops::dot(weights, support::uneven(e.shape())));
    CHECK(on.gradient(scores).data[0] == 0);
    CHECK(on.gradient(scores).data[1] != 0);
    for (std::size_t i = 3; i < 6; ++i) CHECK(on.gradient(scores).data[i] == 0);
    const auto each = ops::softmax(array<double, 3>{{{none, 1.0}, {none, none}}}, lengths{2});
    CHECK(support::same_bits(each, array<double, 3>{{{0.0, 1.0}, {0.0, 0.0}}}));

    const auto empty = [](const auto& x) { return ops::softmax(x, lengths{0, 0}); };
    support::check_empty(empty, random({2, 0}, 1));
    support::check_empty(empty, random({2, 0, 3}, 1));
}

TEST_CASE("softmax and log_softmax over an axis: gradients")
{
    const auto check = [](const auto& operation) {
        for (const int axis : {-1, 0}) {
            const auto f = [&](const auto& x) { return operation(x, axis); };
            CHECK_GRADIENT(f, random({1}, 1, 2));
            CHECK_GRADIENT(f, random({9}, 2, 2));
            CHECK_GRADIENT(f, random({3, 5}, 3, 2));
            CHECK_GRADIENT(f, random({2, 2, 3, 5}, 4, 2));
            support::check_empty(f, random({2, 0}, 5));
            support::check_empty(f, random({0, 2}, 6));
        }
        CHECK_GRADIENT([&](const auto& x) { return operation(x, 1); }, random({2, 4, 3}, 7, 2));
        CHECK_GRADIENT(operation, random({4}, 8, 2));
        CHECK_GRADIENT(operation, random({2, 2, 2, 3}, 9, 2));
    };
    check(ops::softmax);
    check(ops::log_softmax);

    // -inf gets no gradient, for any incoming gradient.
    const double none = -std::numeric_limits<double>::infinity();
    const array<double, 1> x{none, 0.0, 1.0};
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::dot(ops::exp(ops::log_softmax(v, 0)), array<double, 1>{2.0, 3.0, 5.0}));
    CHECK(on.gradient(v).data[0] == 0);
    const double first = 1 / (1 + std::exp(1.0));  // the weight of 0
    CHECK(std::abs(on.gradient(v).data[1] - first * (1 - first) * (3 - 5)) < 1e-14);
    CHECK(std::abs(on.gradient(v).data[2] - first * (1 - first) * (5 - 3)) < 1e-14);
}
