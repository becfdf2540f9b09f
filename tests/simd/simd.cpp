// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include <heed/simd/simd.hpp>

#include <support/approx.hpp>

namespace {

using namespace heed;

/// How many units in the last place of T lie between a result and the truth.
template <class T>
double ulps(T got, long double want)
{
    if (std::isnan(got) || std::isinf(got) || std::isinf(static_cast<T>(want))) {
        return got == static_cast<T>(want) ? 0 : 1e9;
    }
    int exponent = 0;
    std::frexp(want, &exponent);
    const int last = std::max(exponent - std::numeric_limits<T>::digits,
                              std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits);
    return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / std::ldexp(1.0L, last));
}

template <class T, class F, class Exact>
double worst(T low, T high, F f, Exact exact, bool logarithmic = false)
{
    constexpr std::size_t n = 100001;
    std::vector<T> x(n), y(n);
    for (std::size_t i = 0; i < n; ++i) {
        const T at = low + (high - low) * static_cast<T>(i) / static_cast<T>(n - 1);
        x[i] = logarithmic ? std::exp(at) : at;
    }
    simd::transform(n, y.data(), f, x.data());
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) most = std::max(most, ulps(y[i], exact(static_cast<long double>(x[i]))));
    return most;
}

template <class F, class T>
T one(F f, T x)
{
    T y = 0;
    simd::transform(1, &y, f, &x);
    return y;
}

const auto exp_ = [](auto x) { return simd::exp(x); };
const auto tanh_ = [](auto x) { return simd::tanh(x); };
const auto log_ = [](auto x) { return simd::log(x); };
const auto log1p_ = [](auto x) { return simd::log1p(x); };
const auto sin_ = [](auto x) { return simd::sin(x); };
const auto cos_ = [](auto x) { return simd::cos(x); };
const auto normal_cdf_ = [](auto x) { return simd::normal_cdf(x); };
const auto sigmoid_ = [](auto x) { return simd::sigmoid(x); };

}  // namespace

TEST_CASE_TEMPLATE("exp is exact to 2 ulp, and at the ends of its range", T, float, double)
{
    const auto exact = [](long double x) { return std::exp(x); };
    const T largest = std::log(std::numeric_limits<T>::max()),
            smallest = std::log(std::numeric_limits<T>::denorm_min());
    CHECK(worst<T>(smallest + 1, largest - T(0.001), exp_, exact) <= 2);
    CHECK(worst<T>(-1, 1, exp_, exact) <= 2);
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

TEST_CASE_TEMPLATE("tanh is exact to 5 ulp, odd, and reaches 1", T, float, double)
{
    const auto exact = [](long double x) { return std::tanh(x); };
    CHECK(worst<T>(-21, 21, tanh_, exact) <= 5);
    CHECK(worst<T>(-1, 1, tanh_, exact) <= 5);
    CHECK(worst<T>(-60, 2, tanh_, exact, true) <= 5);
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

TEST_CASE_TEMPLATE("log and log1p", T, float, double)
{
    CHECK(worst<T>(
              -80, 80, log_, [](long double x) { return std::log(x); }, true) <= 3);
    CHECK(worst<T>(T(0.5), 2, log_, [](long double x) { return std::log(x); }) <= 3);
    CHECK(worst<T>(
              -30, 3, log1p_, [](long double x) { return std::log1p(x); }, true) <= 4);
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

TEST_CASE_TEMPLATE("the cumulative normal distribution is exact to 1 ulp of 1, and its tail to a few", T, float, double)
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

TEST_CASE_TEMPLATE("sin and cos are exact to 2.5 ulp, at any distance, and beside their zeros", T, float, double)
{
    const auto exact_sin = [](long double x) { return std::sin(x); };
    const auto exact_cos = [](long double x) { return std::cos(x); };
    for (const T far : {T(0.1), T(2), T(30), T(5000), T(9.9e4), T(1.2e6)}) {  // the last ones computed lane by lane
        CHECK(worst<T>(-far, far, sin_, exact_sin) <= 2.5);
        CHECK(worst<T>(-far, far, cos_, exact_cos) <= 2.5);
    }
    CHECK(worst<T>(-60, 0, sin_, exact_sin, true) <= 2.5);
    double most = 0, largest = 0;
    for (int k = 0; k < (sizeof(T) == 4 ? 63000 : 630000); k += k < 1000 ? 1 : 97) {  // around multiples of π / 2
        T x[simd::lanes<T>];
        x[0] = static_cast<T>(k * 1.5707963267948966L);
        for (std::size_t i = 0; i < simd::lanes<T> / 2; ++i) x[0] = std::nextafter(x[0], T(-1));
        for (std::size_t i = 1; i < simd::lanes<T>; ++i) x[i] = std::nextafter(x[i - 1], T(1e9));
        const simd::vec<T> sines = simd::sin(simd::load(x)), cosines = simd::cos(simd::load(x));
        for (std::size_t i = 0; i < simd::lanes<T>; ++i) {
            most = std::max({most, ulps(T(sines[i]), exact_sin(x[i])), ulps(T(cosines[i]), exact_cos(x[i]))});
            largest = std::max({largest, std::abs(double(sines[i])), std::abs(double(cosines[i]))});
        }
    }
    CHECK(most <= 2.5);
    CHECK(largest == 1);
    for (T x = T(1e-6); x < T(1e7); x *= T(1.003)) {
        REQUIRE(one(sin_, -x) == -one(sin_, x));
        REQUIRE(one(cos_, -x) == one(cos_, x));
    }
    CHECK(one(sin_, T(0)) == 0);
    CHECK(std::signbit(one(sin_, T(-0.0))));
    CHECK_FALSE(std::signbit(one(sin_, T(0))));
    CHECK(one(cos_, T(0)) == 1);
    CHECK(one(cos_, T(-0.0)) == 1);
    CHECK(one(sin_, std::numeric_limits<T>::denorm_min()) == std::numeric_limits<T>::denorm_min());
    CHECK(ulps(one(sin_, std::numeric_limits<T>::max()), exact_sin(std::numeric_limits<T>::max())) <= 1);
    CHECK(ulps(one(cos_, std::numeric_limits<T>::max()), exact_cos(std::numeric_limits<T>::max())) <= 1);
    for (const T x : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN()}) {
        CHECK(std::isnan(one(sin_, x)));
        CHECK(std::isnan(one(cos_, x)));
    }
}

TEST_CASE_TEMPLATE("sigmoid stays within its range", T, float, double)
{
    CHECK(worst<T>(-80, 80, sigmoid_, [](long double x) { return 1 / (1 + std::exp(-x)); }) <= 4);
    const T infinity = std::numeric_limits<T>::infinity();
    CHECK(one(sigmoid_, T(0)) == T(0.5));
    CHECK(one(sigmoid_, infinity) == 1);
    CHECK(one(sigmoid_, -infinity) == 0);
    CHECK(one(sigmoid_, T(1e4)) == 1);
    CHECK(one(sigmoid_, T(-1e4)) == 0);
    CHECK(std::isnan(one(sigmoid_, std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("parts of a register: memory beyond them is neither read nor written", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    for (std::size_t count = 0; count < n; ++count) {
        // Exactly `count` elements on the heap: the address sanitizer notices one too many.
        std::vector<T> x(count, T(3));
        const simd::vec<T> v = simd::load(x.data(), count);
        for (std::size_t i = 0; i < n; ++i) CHECK(v[i] == (i < count ? T(3) : T(0)));
        simd::store(x.data(), v + T(1), count);
        for (const T element : x) CHECK(element == 4);
        const simd::vec<T> filled = simd::fill_behind<T>(v, count, T(-7));
        for (std::size_t i = 0; i < n; ++i) CHECK(filled[i] == (i < count ? T(3) : T(-7)));
    }
}

TEST_CASE_TEMPLATE("sum, max and select look at every lane", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    for (std::size_t lane = 0; lane < n; ++lane) {
        simd::vec<T> v = simd::splat(T(1));
        v[lane] = 5;
        CHECK(simd::sum(v) == static_cast<T>(n + 4));
        CHECK(simd::max(v) == 5);
        CHECK(simd::max(-v) == (n == 1 ? -5 : -1));
    }
    simd::vec<T> four[4] = {};
    for (std::size_t lane = 0; lane < n; ++lane) {
        for (std::size_t i = 0; i < 4; ++i) four[i][lane] = static_cast<T>((i + 1) * (lane * lane + 3));
    }
    T sums[4];
    simd::sums(four[0], four[1], four[2], four[3], sums);
    for (std::size_t i = 0; i < 4; ++i) CHECK(sums[i] == simd::sum(four[i]));  // whole numbers: in any order
    simd::vec<T> x{}, nan = simd::splat(std::numeric_limits<T>::quiet_NaN());
    x[0] = 1;
    const simd::vec<T> chosen = simd::select(x > simd::splat(T(0)), simd::splat(T(2)), nan);
    CHECK(chosen[0] == 2);
    CHECK(std::isnan(chosen[1]));
    CHECK(std::signbit(simd::splat(T(-0.0))[0]));
    CHECK(simd::sqrt(simd::splat(T(9)))[n - 1] == 3);
}

TEST_CASE_TEMPLATE("an element's result does not depend on where it stands", T, float, double)
{
    constexpr std::size_t n = 257;
    std::vector<T> x(n), all(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = T(0.37) * static_cast<T>(i) - T(40);
    const auto f = [](auto a, auto b) {
        return simd::exp(simd::tanh(a) * simd::sigmoid(b)) + simd::sin(b * a * a * a) - simd::cos(b * b * b);
    };  // some of the sines far away
    simd::transform(n, all.data(), f, x.data(), x.data());
    for (std::size_t first = 0; first < n; first += 7) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{3}, simd::lanes<T>}) {
            if (first + count > n) continue;
            std::vector<T> some(count);
            simd::transform(count, some.data(), f, x.data() + first, x.data() + first);
            REQUIRE(std::memcmp(some.data(), all.data() + first, count * sizeof(T)) == 0);
        }
    }
    std::vector<T> place = x;
    simd::transform(n, place.data(), f, place.data(), place.data());
    CHECK(place == all);
}

TEST_CASE_TEMPLATE("a square of registers becomes its transpose", T, float, double)
{
    constexpr std::size_t n = simd::lanes<T>;
    T x[n][n], y[n][n];
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) x[i][j] = static_cast<T>(n * i + j);
    simd::vec<T> rows[n];
    for (std::size_t i = 0; i < n; ++i) rows[i] = simd::load(x[i]);
    simd::transpose<T>(rows);
    for (std::size_t i = 0; i < n; ++i) simd::store(y[i], rows[i]);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) CHECK(y[i][j] == x[j][i]);
}

TEST_CASE("parallel_transform equals transform for every thread count")
{
    const std::size_t n = 200003;
    std::vector<float> x(n), expected(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000) * 0.01f - 5.0f;
    simd::transform(n, expected.data(), tanh_, x.data());
    for (const std::size_t threads : {1u, 2u, 3u}) {
        set_threads(threads);
        std::vector<float> y(n);
        simd::parallel_transform(n, y.data(), tanh_, x.data());
        CHECK(y == expected);
    }
    set_threads(1);
}
