// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/dual_number.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

using namespace heed;

TEST_CASE("slopes match finite differences")
{
    const auto check = [](auto&& f, double x) {
        const dual_number<double> y = f(dual_number<double>(x, 1));
        const double h = 1e-6;
        CHECK(y.value == f(x));
        CHECK(y.slope == support::approx((f(x + h) - f(x - h)) / (2 * h), 1e-8));
    };
    using std::abs, std::cos, std::exp, std::expm1, std::log, std::log1p, std::sin, std::sqrt, std::tanh;
    for (const double x : {0.3, 1.7}) {
        check([](auto v) { return exp(v); }, x);
        check([](auto v) { return expm1(v); }, x);
        check([](auto v) { return log(v); }, x);
        check([](auto v) { return log1p(v); }, x);
        check([](auto v) { return sqrt(v); }, x);
        check([](auto v) { return tanh(v); }, x);
        check([](auto v) { return sin(v) * cos(v); }, x);
        check([](auto v) { return abs(-v) / (1 + v * v) - v; }, x);
    }
}

TEST_CASE("comparisons use values; equal numbers have equal slopes, unless they are infinite")
{
    using number = dual_number<double>;
    CHECK(number(1, 5) < number(2, -5));
    CHECK(number(1, 5) <= number(1, 7));
    CHECK_FALSE(number(0, 1) == number(0, 0));
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(number(-infinity, 1) == number(-infinity, 2));
    CHECK(std::numeric_limits<number>::infinity() == number(infinity, 0));
    CHECK(value_of(number(3, 4)) == 3);
    CHECK(value_of(3.0) == 3);
}

TEST_CASE("a number that underflows or is constant has a slope of 0, not NaN")
{
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(exp(dual_number<double>(-infinity, infinity)).slope == 0);
    CHECK(sqrt(dual_number<double>(0, 0)).slope == 0);
    CHECK(isnan(dual_number<double>(1, std::nan(""))));
    CHECK_FALSE(isfinite(dual_number<double>(1, infinity)));
    static_assert(dual_element<dual_number<float>> && !dual_element<float>);
    static_assert(std::is_same_v<plain_number<dual_number<float>>, float>);
    static_assert(std::is_same_v<in_double<dual_number<float>>, dual_number<double>>);
}

TEST_CASE("compound assignments")
{
    auto x = dual_number<double>(2, 1);
    x *= x;
    x += 1;
    x -= 2 * x;
    x /= -1;
    CHECK(x.value == 5);
    CHECK(x.slope == 4);
}
