// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/registers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/simd/simd.hpp>
#include <support/approx.hpp>
#include <support/ulps.hpp>

// NaN, infinities, zeros and subnormal numbers in each lane of a register and in each position of a remainder, compared
// with the standard library's scalar functions, for every kind of register.

namespace {

using namespace heed;
using namespace heed::test;

const auto exp_ = [](auto x) { return simd::exp(x); };
const auto tanh_ = [](auto x) { return simd::tanh(x); };
const auto log_ = [](auto x) { return simd::log(x); };
const auto log1p_ = [](auto x) { return simd::log1p(x); };
const auto normal_cdf_ = [](auto x) { return simd::normal_cdf(x); };
const auto sigmoid_ = [](auto x) { return simd::sigmoid(x); };

}  // namespace

TEST_CASE_TEMPLATE("exp at the ends of its range", T, float, double)
{
    const T largest = std::log(std::numeric_limits<T>::max()),
            smallest = std::log(std::numeric_limits<T>::denorm_min());
    const T infinity = std::numeric_limits<T>::infinity();
    CHECK(one(exp_, T(0)) == 1);
    CHECK(one(exp_, T(-0.0)) == 1);
    CHECK(one(exp_, -infinity) == 0);
    CHECK(one(exp_, smallest - 1) == 0);
    CHECK(one(exp_, std::numeric_limits<T>::lowest()) == 0);
    CHECK(one(exp_, smallest + T(0.5)) > 0);
    CHECK(one(exp_, largest + T(0.5)) == infinity);
    CHECK(one(exp_, std::numeric_limits<T>::max()) == infinity);
    CHECK(one(exp_, infinity) == infinity);
    CHECK(std::isnan(one(exp_, std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("exp_of_nonpositive has the bits of exp, or 0 below the normal numbers", T, float, double)
{
    const auto exp_of_nonpositive = [](auto x) { return simd::exp_of_nonpositive(x); };
    const T infinity = std::numeric_limits<T>::infinity(), smallest = std::log(std::numeric_limits<T>::min());
    for (T x = 0; x > 2 * smallest; x -= T(0.0137)) {
        const T is = one(exp_of_nonpositive, x), must = one(exp_, x);
        CAPTURE(x);
        CHECK((is == must || (is == 0 && must < std::numeric_limits<T>::min() * T(1.001))));
    }
    CHECK(one(exp_of_nonpositive, T(-0.0)) == 1);
    CHECK(one(exp_of_nonpositive, smallest + T(0.001)) > 0);
    CHECK(one(exp_of_nonpositive, std::numeric_limits<T>::lowest()) == 0);
    CHECK(one(exp_of_nonpositive, -infinity) == 0);
    CHECK(std::isnan(one(exp_of_nonpositive, std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("tanh is odd, and reaches 1", T, float, double)
{
    const T infinity = std::numeric_limits<T>::infinity();
    for (const T x : {T(10), T(20), T(1e4), std::numeric_limits<T>::max(), infinity}) {
        if (x == T(10) && sizeof(T) == 8) continue;
        CHECK(one(tanh_, x) == 1);
        CHECK(one(tanh_, -x) == -1);
    }
    for (T x = T(1e-6); x < 10; x *= T(1.01)) REQUIRE(one(tanh_, -x) == -one(tanh_, x));
    CHECK(one(tanh_, T(0)) == 0);
    CHECK(std::signbit(one(tanh_, T(-0.0))));
    CHECK_FALSE(std::signbit(one(tanh_, T(0))));
    CHECK(one(tanh_, std::numeric_limits<T>::denorm_min()) == std::numeric_limits<T>::denorm_min());
    CHECK(std::isnan(one(tanh_, std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("log and log1p at the ends of their ranges", T, float, double)
{
    const T infinity = std::numeric_limits<T>::infinity(), tiny = std::numeric_limits<T>::denorm_min();
    CHECK(one(log_, T(1)) == 0);
    CHECK(one(log_, T(0)) == -infinity);
    CHECK(one(log_, infinity) == infinity);
    CHECK(one(log_, tiny) == support::approx(std::log(tiny)));
    CHECK(std::isnan(one(log_, T(-1))));
    CHECK(std::isnan(one(log_, std::numeric_limits<T>::quiet_NaN())));
    CHECK(one(log1p_, T(0)) == 0);
    CHECK(one(log1p_, tiny) == tiny);
}

TEST_CASE_TEMPLATE("the cumulative normal distribution is accurate to 1 ulp of 1, and its tail to a few ulp", T, float,
                   double)
{
    const auto exact = [](long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; };
    CHECK(worst<T>(-1, 9, normal_cdf_, exact) <= 4);
    CHECK(worst<T>(-3, -1, normal_cdf_, exact) <= 16);  // the exponent x²/2 is rounded, and the tail with it
    CHECK(worst<T>(-8, -3, normal_cdf_, exact) <= 60);
    constexpr std::size_t n = 100001;
    std::vector<T> x(n), y(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = T(-12) + T(24) * static_cast<T>(i) / static_cast<T>(n - 1);
    simd::transform(n, y.data(), normal_cdf_, x.data());
    long double most = 0;
    for (std::size_t i = 0; i < n; ++i)
        most = std::max(most, std::abs(exact(static_cast<long double>(x[i])) - static_cast<long double>(y[i])));
    CHECK(most <= std::numeric_limits<T>::epsilon());
    const T infinity = std::numeric_limits<T>::infinity();
    CHECK(one(normal_cdf_, T(0)) == T(0.5));
    for (const T far : {T(50), T(1e4), std::numeric_limits<T>::max(), infinity}) {
        CHECK(one(normal_cdf_, far) == 1);
        CHECK(one(normal_cdf_, -far) == 0);
    }
    CHECK(std::isnan(one(normal_cdf_, std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("sigmoid stays within its range", T, float, double)
{
    const T infinity = std::numeric_limits<T>::infinity();
    CHECK(one(sigmoid_, T(0)) == T(0.5));
    CHECK(one(sigmoid_, infinity) == 1);
    CHECK(one(sigmoid_, -infinity) == 0);
    CHECK(one(sigmoid_, T(1e4)) == 1);
    CHECK(one(sigmoid_, T(-1e4)) == 0);
    CHECK(std::isnan(one(sigmoid_, std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("partial registers: memory beyond them is neither read nor written", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    for (std::size_t count = 0; count < n; ++count) {
        // Exactly `count` elements on the heap, so that the address sanitizer detects overreads.
        std::vector<T> x(count, T(3));
        const simd::vec<T> v = simd::load(x.data(), count);
        for (std::size_t i = 0; i < n; ++i) CHECK(v[i] == (i < count ? T(3) : T(0)));
        simd::store(x.data(), v + T(1), count);
        for (const T element : x) CHECK(element == 4);
        const simd::vec<T> filled = simd::fill_behind<T>(v, count, T(-7));
        for (std::size_t i = 0; i < n; ++i) CHECK(filled[i] == (i < count ? T(3) : T(-7)));
    }
}

TEST_CASE_TEMPLATE("sum, max and select read every lane", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    for (std::size_t lane = 0; lane < n; ++lane) {
        simd::vec<T> v = simd::splat(T(1));
        v[lane] = 5;
        CHECK(simd::sum(v) == static_cast<T>(n + 4));
        CHECK(simd::max(v) == 5);
        CHECK(simd::max(-v) == (n == 1 ? -5 : -1));
    }
    simd::vec<T> x{}, nan = simd::splat(std::numeric_limits<T>::quiet_NaN());
    x[0] = 1;
    const simd::vec<T> chosen = simd::select(x > simd::splat(T(0)), simd::splat(T(2)), nan);
    CHECK(chosen[0] == 2);
    CHECK(std::isnan(chosen[1]));
    CHECK(std::signbit(simd::splat(T(-0.0))[0]));
    CHECK(simd::sqrt(simd::splat(T(9)))[n - 1] == 3);
}

TEST_CASE_TEMPLATE("functions of one number", T, float, double)
{
    const T nan = std::numeric_limits<T>::quiet_NaN();
    check_everywhere<T>(
        "exp", 2, [](auto x) { return simd::exp(x); }, [](T x) { return std::exp(x); });
    check_everywhere<T>(
        "tanh", 5, [](auto x) { return simd::tanh(x); }, [](T x) { return std::tanh(x); });
    check_everywhere<T>(
        "log", 3, [](auto x) { return simd::log(x); }, [nan](T x) { return x < 0 ? nan : std::log(x); });
    check_everywhere<T>(
        "log1p of the magnitude", 4,
        [](auto x) { return simd::log1p(simd::select(x <= simd::splat(T(0)), simd::splat(T(0)) - x, x)); },
        [](T x) { return std::log1p(x <= 0 ? T(0) - x : x); });
    check_everywhere<T>(
        "sigmoid", 4, [](auto x) { return simd::sigmoid(x); }, [](T x) { return 1 / (1 + std::exp(-x)); });
    check_everywhere<T>(
        "normal_cdf", 128, [](auto x) { return simd::normal_cdf(x); },
        [](T x) { return std::erfc(-x / std::sqrt(T(2))) / 2; });
    check_everywhere<T>(
        "sqrt", 0, [](auto x) { return simd::sqrt(x); }, [](T x) { return std::sqrt(x); });
    check_everywhere<T>(
        "load and store", 0, [](auto x) { return x; }, [](T x) { return x; });
    for (const T value : special_values<T>()) {
        for (std::size_t lane = 0; lane < simd::lanes<T>; ++lane) CHECK(agree(simd::splat(value)[lane], value));
    }
}

TEST_CASE_TEMPLATE("min, max, select and fma", T, float, double)
{
    for (const T b : special_values<T>()) {
        CAPTURE(b);
        check_everywhere<T>(
            "max", 0, [b](auto x) { return simd::max(x, simd::splat(b)); }, [b](T x) { return x > b ? x : b; });
        check_everywhere<T>(
            "min", 0, [b](auto x) { return simd::min(x, simd::splat(b)); }, [b](T x) { return x < b ? x : b; });
        check_everywhere<T>(
            "select", 0, [b](auto x) { return simd::select(x < simd::splat(T(0)), simd::splat(b), x); },
            [b](T x) { return x < 0 ? b : x; });
        check_everywhere<T>(
            "fma, times 1", 0, [b](auto x) { return simd::fma(x, simd::splat(T(1)), simd::splat(b)); },
            [b](T x) { return std::fma(x, T(1), b); });
    }
    check_everywhere<T>(
        "fma, times 0", 0, [](auto x) { return simd::fma(x, simd::splat(T(0)), simd::splat(T(1))); },
        [](T x) { return std::fma(x, T(0), T(1)); });
}

TEST_CASE_TEMPLATE("functions of a whole register read each lane", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    for (const T value : special_values<T>()) {
        for (std::size_t lane = 0; lane < n; ++lane) {
            CAPTURE(value);
            CAPTURE(lane);
            simd::vec<T> v = simd::splat(T(-3));
            v[lane] = value;
            CHECK(simd::any(v > simd::splat(T(-3))) == (value > T(-3)));
            CHECK(simd::any(v != v) == std::isnan(value));
            CHECK(simd::any(~(v <= simd::splat(T(0)))) == !(value <= 0));
            if (!std::isnan(value)) CHECK(simd::max(v) == (value > T(-3) ? value : T(-3)));
            simd::vec<T> zeros{};
            zeros[lane] = value;
            CHECK(agree(simd::sum(zeros) + T(1), value + T(1)));

            T memory[n];
            simd::store(memory, v);
            for (std::size_t count = 0; count < n; ++count) {
                const simd::vec<T> part = simd::load(memory, count), filled = simd::fill_behind<T>(v, count, T(7));
                CHECK(agree(part[lane], lane < count ? value : T(0)));
                CHECK(agree(filled[lane], lane < count ? value : T(7)));
                T to[n] = {};
                simd::store(to, v, count);
                CHECK(agree(to[lane], lane < count ? value : T(0)));
            }
        }
    }
}
