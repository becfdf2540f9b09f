// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/products.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <limits>

using namespace heed;
using support::random;

// Values compared with scalar loops; gradients at ordinary sizes, at size 1 and of empty tensors.

TEST_CASE("products equal scalar sums")
{
    const auto x = random({2, 3, 5}, 1), h = random({2, 3, 7}, 2);
    const auto W = random({5, 7}, 4), q = random({2, 7}, 5), alpha = random({2, 3}, 6);
    const auto b = random({7}, 7), v = random({7}, 8);
    array<double, 3> linear({2, 3, 7}, 0.0), with_bias({2, 3, 7}, 0.0);
    array<double, 2> matvec({2, 3}, 0.0), dot_per_position({2, 3}, 0.0), weighted({2, 7}, 0.0);
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t t = 0; t < 3; ++t) {
            for (std::size_t n = 0; n < 7; ++n) {
                for (std::size_t k = 0; k < 5; ++k) linear(i, t, n) += x(i, t, k) * W(k, n);
                with_bias(i, t, n) = linear(i, t, n) + b(n);
                matvec(i, t) += h(i, t, n) * v(n);
                dot_per_position(i, t) += q(i, n) * h(i, t, n);
                weighted(i, n) += alpha(i, t) * h(i, t, n);
            }
        }
    }
    CHECK(support::distance(ops::linear(x, W), linear) < 1e-14);
    CHECK(support::distance(ops::linear(x, W, b), with_bias) < 1e-14);
    CHECK(support::distance(ops::matvec(h, v), matvec) < 1e-14);
    CHECK(support::distance(ops::dot_per_position(q, h), dot_per_position) < 1e-14);
    CHECK(support::distance(ops::weighted_sum(alpha, h), weighted) < 1e-14);
}

TEST_CASE("linear")
{
    const auto f = [](const auto& x, const auto& W) { return ops::linear(x, W); };
    const auto with_bias = [](const auto& x, const auto& W, const auto& b) { return ops::linear(x, W, b); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2));
    CHECK_GRADIENT(f, random({3, 4}, 3), random({4, 5}, 4));
    CHECK_GRADIENT(f, random({1, 4}, 3), random({4, 5}, 4));  // one row goes through gemv
    CHECK_GRADIENT(f, random({4}, 3), random({4, 5}, 4));
    CHECK_GRADIENT(f, random({2, 3, 4}, 5), random({4, 2}, 6));
    CHECK_GRADIENT(with_bias, random({3, 4}, 7), random({4, 5}, 8), random({5}, 9));
    CHECK_GRADIENT(with_bias, random({2, 3, 1}, 7), random({1, 2}, 8), random({2}, 9));
    support::check_empty(f, random({0, 4}, 1), random({4, 5}, 2));
    support::check_empty(f, random({2, 0}, 1), random({0, 5}, 2));
    support::check_empty(f, random({2, 4}, 1), random({4, 0}, 2));
    support::check_empty(with_bias, random({0, 4}, 1), random({4, 5}, 2), random({5}, 3));
    // Without columns: only the bias.
    CHECK(support::same_bits(ops::linear(random({2, 0}, 1), random({0, 1}, 2), array<double, 1>{7.0}),
                             array<double, 2>{{7.0}, {7.0}}));
}

TEST_CASE("matvec")
{
    const auto f = [](const auto& x, const auto& v) { return ops::matvec(x, v); };
    CHECK_GRADIENT(f, random({1, 1, 1}, 1), random({1}, 2));
    CHECK_GRADIENT(f, random({2, 3, 4}, 3), random({4}, 4));
    CHECK_GRADIENT(f, random({1, 2, 67}, 5), random({67}, 6));
    support::check_empty(f, random({2, 0, 4}, 1), random({4}, 2));
    support::check_empty(f, random({2, 3, 0}, 1), random({0}, 2));
}

TEST_CASE("dot_per_position")
{
    const auto f = [](const auto& q, const auto& k) { return ops::dot_per_position(q, k); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f, random({2, 4}, 3), random({2, 3, 4}, 4));
    CHECK_GRADIENT(f, random({2, 67}, 5), random({2, 1, 67}, 6));
    support::check_empty(f, random({2, 4}, 1), random({2, 0, 4}, 2));
    support::check_empty(f, random({0, 4}, 1), random({0, 3, 4}, 2));
}

TEST_CASE("weighted_sum")
{
    const auto f = [](const auto& w, const auto& h) { return ops::weighted_sum(w, h); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f, random({2, 3}, 3), random({2, 3, 4}, 4));
    CHECK_GRADIENT(f, random({2, 9}, 5), random({2, 9, 19}, 6));
    support::check_empty(f, random({2, 0}, 1), random({2, 0, 4}, 2));
}

TEST_CASE("a value with weight 0 is not read, even if NaN")
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const array<double, 2> w{{0.5, 0.0}};
    const array<double, 3> h{{{1.0, 2.0}, {nan, nan}}};
    CHECK(support::same_bits(ops::weighted_sum(w, h), array<double, 2>{{0.5, 1.0}}));
}

TEST_CASE("add_outer")
{
    const auto outer = [](const auto& k, const auto& x, const auto& v) { return ops::add_outer(k, x, v); };
    CHECK_GRADIENT(outer, random({2, 3, 5}, 1), random({2, 3}, 2), random({5}, 3));
    CHECK_GRADIENT(outer, random({1, 1, 1}, 1), random({1, 1}, 2), random({1}, 3));
    CHECK(support::distance(outer(random({1, 2, 2}, 1), array<double, 2>{{2.0, 3.0}}, array<double, 1>{10.0, 100.0}),
                            array<double, 3>(random({1, 2, 2}, 1) + array<double, 3>{{{20.0, 200.0}, {30.0, 300.0}}})) <
          1e-15);
    const auto message = [](auto&& act) { return support::message_of<shape_error>(act); };
    CHECK(support::contains(message([&] {
                                outer(random({2, 3, 5}, 1), random({2, 4}, 2), random({5}, 3));
                            }),
                            "add_outer: x is [2,4] but must be [2,3]"));
    CHECK(support::contains(message([&] {
                                outer(random({2, 3, 5}, 1), random({2, 3}, 2), random({4}, 3));
                            }),
                            "v is [4] but must be [5]"));
}

TEST_CASE("addmm")
{
    const auto f = [](const auto& base, const auto& x, const auto& W) { return ops::addmm(base, x, W); };
    CHECK_GRADIENT(f, random({3, 5}, 1), random({3, 4}, 2), random({4, 5}, 3));
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2), random({1, 1}, 3));
    CHECK_GRADIENT(f, random({2, 3, 5}, 1), random({2, 3, 4}, 2), random({4, 5}, 3));
    CHECK(support::same_bits(f(random({2, 3}, 1), array<double, 2>({2, 0}), array<double, 2>({0, 3})),
                             random({2, 3}, 1)));
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                f(random({3, 6}, 1), random({3, 4}, 2), random({4, 5}, 3));
                            }),
                            "the base is [3,6] but must be [3,5]"));
}
