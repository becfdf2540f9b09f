// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/sums.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

using namespace heed;
using support::random;

TEST_CASE("sum_last and inner match scalar sums")
{
    const auto x = random({3, 2, 4}, 1);
    CHECK(ops::sum_last(x)(2, 1) == support::approx(x(2, 1, 0) + x(2, 1, 1) + x(2, 1, 2) + x(2, 1, 3)));
    double sum = 0;
    const auto c = support::uneven(x.shape());
    for (std::size_t i = 0; i < x.size(); ++i) sum += x.data()[i] * c.data()[i];
    CHECK(ops::dot(x, c)() == support::approx(sum));
}

TEST_CASE("sum_last and inner: gradients")
{
    CHECK_GRADIENT([](const auto& x) { return ops::sum_last(x); }, random({2, 3, 4}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::sum_last(x); }, random({5}, 1));
    support::check_empty([](const auto& x) { return ops::sum_last(x); }, random({2, 0}, 1));
    CHECK_GRADIENT(
        [](const auto& x) {
            return ops::dot(x, support::uneven(shape_of_rank<2>{2, 3}));
        },
        random({2, 3}, 1));
    CHECK_GRADIENT([](const auto& x, const auto& c) { return ops::dot(x, c); }, random({2, 3}, 1), random({2, 3}, 2));
}

TEST_CASE("multiply_parts: a factor per row, and per slice of a row")
{
    const auto x = random({3, 6}, 1), of_rows = random({3, 1}, 2), of_parts = random({3, 2}, 3);
    const auto rows = ops::multiply_parts(x, of_rows), parts = ops::multiply_parts(x, of_parts);
    for (std::size_t b = 0; b < 3; ++b) {
        for (std::size_t i = 0; i < 6; ++i) {
            CHECK(rows(b, i) == of_rows(b, 0) * x(b, i));
            CHECK(parts(b, i) == of_parts(b, i / 3) * x(b, i));
        }
    }
    CHECK_GRADIENT([](const auto& a, const auto& g) { return ops::multiply_parts(a, g); }, x, of_rows);
    CHECK_GRADIENT([](const auto& a, const auto& g) { return ops::multiply_parts(a, g); }, x, of_parts);
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::multiply_parts(x, random({2, 2}, 4));
          }) == "multiply_parts: the factors are [2,2] but must be [3,2] (one row for each row of [3,6])");
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::multiply_parts(x, random({3, 4}, 4));
          }) == "multiply_parts: [3,4] factors for [3,6]; the last axis of the factors must divide that of x");
}
