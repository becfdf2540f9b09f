// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/broadcast.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>

using namespace heed;
using support::message_of;
using support::random;

// A smaller second argument is broadcast; tensors are reshaped, permuted and sliced.

namespace {

/// The element of b [b0,b1,b2] that is combined with a's (i,j,k).
double met(const array<double, 3>& b, std::size_t i, std::size_t j, std::size_t k)
{
    const auto at = [&](std::size_t axis, std::size_t n) { return b.shape()[axis] == 1 ? 0 : n; };
    return b(at(0, i), at(1, j), at(2, k));
}

struct named {
    const char* name;
    array<double, 3> y;
    double (*of)(double, double);
};

}  // namespace

TEST_CASE("every axis of the second argument may be 1: compared with loops, with derivatives of first and second order")
{
    const std::size_t B = 2, T = 3, N = 4;
    const auto a = random({B, T, N}, 1);
    for (std::size_t which = 0; which < 8; ++which) {
        CAPTURE(which);
        const shape_of_rank<3> shape{which & 1 ? 1 : B, which & 2 ? 1 : T, which & 4 ? 1 : N};
        const auto b = ops::add(random(shape, 2, 0.3), filled<double, 3>(shape, 2.0));  // not near 0
        for (const named& each : {named{"add", ops::add(a, b), [](double x, double y) { return x + y; }},
                                  named{"subtract", ops::subtract(a, b), [](double x, double y) { return x - y; }},
                                  named{"multiply", ops::multiply(a, b), [](double x, double y) { return x * y; }},
                                  named{"divide", ops::divide(a, b), [](double x, double y) { return x / y; }}}) {
            CAPTURE(each.name);
            double worst = 0;
            for (std::size_t i = 0; i < B; ++i)
                for (std::size_t j = 0; j < T; ++j)
                    for (std::size_t k = 0; k < N; ++k)
                        worst = std::max(worst, std::abs(each.y(i, j, k) - each.of(a(i, j, k), met(b, i, j, k))));
            CHECK(worst < 1e-15);
        }
        CHECK_GRADIENT([](const auto& x, const auto& y) { return ops::add(x, y); }, a, b);
        CHECK_GRADIENT([](const auto& x, const auto& y) { return ops::subtract(x, y); }, a, b);
        CHECK_GRADIENT([](const auto& x, const auto& y) { return ops::multiply(x, y); }, a, b);
        CHECK_GRADIENT([](const auto& x, const auto& y) { return ops::divide(x, y); }, a, b);
    }
}

TEST_CASE("a row, a column and one number, in widths around that of a register")
{
    for (const std::size_t N : {1u, 3u, 8u, 17u, 64u, 67u}) {
        CAPTURE(N);
        const auto x = random({3, N}, 1), column = random({3, 1}, 3);
        const auto row = random({N}, 2), one = random({1}, 4);
        const array<double, 0> factor(shape_of_rank<0>{}, 1.5);
        const auto plus = ops::add(x, row), times = ops::multiply(x, column), by = ops::divide(x, one),
                   scaled = ops::multiply(x, factor);
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t k = 0; k < N; ++k) {
                CHECK(plus(i, k) == x(i, k) + row(k));
                CHECK(times(i, k) == x(i, k) * column(i, 0));
                CHECK(by(i, k) == x(i, k) / one(0));
                CHECK(scaled(i, k) == x(i, k) * 1.5);
            }
        }
        CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::multiply(a, b); }, x, row);
        CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::multiply(a, b); }, x, column);
        CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::divide(a, b); }, x, one);
        CHECK_GRADIENT([](const auto& a, const auto& b) { return ops::multiply(a, b); }, x, factor);
    }
}

TEST_CASE("lanes beyond the end of a row are ignored: 0 / 0 there has no effect")
{
    const auto x = filled<double, 2>({1, 3}, 1.0);
    const array<double, 2> none{{0.0}};
    ad::tape<double> on;
    const auto v = on.parameter(none);
    on.backward(ops::dot(ops::multiply(x, v), filled<double, 2>({1, 3}, 1.0)));
    CHECK(on.gradient(v).data[0] == 3);
    // Divided by 0: only the three numbers are infinite.
    on.clear();
    const auto w = on.parameter(none);
    on.backward(ops::dot(ops::divide(x, w), filled<double, 2>({1, 3}, 1.0)));
    CHECK(on.gradient(w).data[0] == -std::numeric_limits<double>::infinity());
}

TEST_CASE("axes of length 0")
{
    support::check_empty([](const auto& a, const auto& b) { return ops::add(a, b); }, zeros<double>(0, 3),
                         random({3}, 1));
    support::check_empty([](const auto& a, const auto& b) { return ops::multiply(a, b); }, zeros<double>(2, 0),
                         random({2, 1}, 1));
    support::check_empty([](const auto& a) { return ops::permuted(a, 1, 0); }, zeros<double>(2, 0));
    support::check_empty([](const auto& a) { return ops::slice(a, 0, 1, 1); }, random({2, 3}, 1));
}

TEST_CASE("a second argument that cannot be broadcast is rejected")
{
    const auto x = random({2, 3}, 1);
    CHECK(message_of<shape_error>([&] { (void)ops::add(x, zeros<double>(2)); }) ==
          "add: the second argument is [2] but must be [3] (one number for each column of the first, [2,3])");
    CHECK(message_of<shape_error>([&] { (void)ops::divide(x, zeros<double>(3, 1)); }) ==
          "divide: the second argument is [3,1] but must be [2,3] (the shape of the first, or 1 for a repeated axis)");
    // Only the second argument is broadcast: a column minus a row is not silently a table.
    CHECK(message_of<shape_error>([&] { (void)ops::subtract(zeros<double>(4, 1), zeros<double>(4)); }) != "");
}

TEST_CASE("reshaped, with one size left open")
{
    const auto x = random({2, 3, 4}, 1);
    const auto y = ops::reshaped(x, 6, -1);
    REQUIRE(shape_of(y) == shape_of_rank<2>{6, 4});
    CHECK(y(5, 3) == x(1, 2, 3));
    CHECK(shape_of(ops::reshaped(x, -1)) == shape_of_rank<1>{24});
    CHECK(shape_of(ops::reshaped(random({3}, 1), -1, 1)) == shape_of_rank<2>{3, 1});
    CHECK_GRADIENT([](const auto& a) { return ops::reshaped(a, 4, -1); }, x);
    CHECK(message_of<shape_error>([&] { (void)ops::reshaped(x, 5, -1); }) ==
          "reshaped: [2,3,4] has 24 elements, but the product of the other sizes, 5, does not divide that number");
    CHECK(message_of<shape_error>([&] { (void)ops::reshaped(x, -1, -1); }) ==
          "reshaped: two sizes are -1; at most one can be computed from the others");
    CHECK(message_of<shape_error>([&] { (void)ops::reshaped(x, 5, 5); }) ==
          "reshaped: [2,3,4] as [5,5], which has a different number of elements");
}

TEST_CASE("permuted axes, and slices of an axis")
{
    const auto x = random({2, 3, 4}, 1);
    const auto y = ops::permuted(x, 2, 0, 1);
    const auto z = ops::permuted(x, 1, 0, 2);
    const auto part = ops::slice(x, 1, 1, 3);
    REQUIRE(shape_of(y) == shape_of_rank<3>{4, 2, 3});
    REQUIRE(shape_of(z) == shape_of_rank<3>{3, 2, 4});
    REQUIRE(shape_of(part) == shape_of_rank<3>{2, 2, 4});
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t j = 0; j < 3; ++j) {
            for (std::size_t k = 0; k < 4; ++k) {
                CHECK(y(k, i, j) == x(i, j, k));
                CHECK(z(j, i, k) == x(i, j, k));
                if (j > 0) CHECK(part(i, j - 1, k) == x(i, j, k));
            }
        }
    }
    CHECK(ops::permuted(array<double, 0>{2.5})() == 2.5);
    CHECK_GRADIENT([](const auto& a) { return ops::permuted(a, 2, 0, 1); }, x);
    CHECK_GRADIENT([](const auto& a) { return ops::slice(a, 0, 1, 2); }, x);
    CHECK_GRADIENT([](const auto& a) { return ops::slice(a, 2, 1, 3); }, x);
    CHECK(message_of<shape_error>([&] { (void)ops::permuted(x, 0, 1, 1); }) ==
          "permuted: the axes [0,1,1] of [2,3,4]; give each axis once, counted from 0");
    CHECK(message_of<shape_error>([&] { (void)ops::slice(x, 1, 2, 4); }) ==
          "slice: 2 to 4 of axis 1 of [2,3,4]; axes count from 0, and the end is at most the size of the axis");
    CHECK(message_of<shape_error>([&] { (void)ops::slice(x, 3, 0, 1); }) != "");
}
