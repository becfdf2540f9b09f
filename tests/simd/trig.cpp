// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/trig.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/simd/simd.hpp>
#include <support/ulps.hpp>

namespace {

using namespace heed;
using namespace heed::test;

const auto sin_ = [](auto x) { return simd::sin(x); };
const auto cos_ = [](auto x) { return simd::cos(x); };

}  // namespace

TEST_CASE_TEMPLATE("sin and cos are accurate to 2.5 ulp, at any distance, and near their zeros", T, float, double)
{
    const auto exact_sin = [](long double x) { return std::sin(x); };
    const auto exact_cos = [](long double x) { return std::cos(x); };
    for (const T far :
         {T(0.1), T(2), T(30), T(5000), T(9.9e4), T(1.2e6)}) {  // the last values are computed lane by lane
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

TEST_CASE_TEMPLATE("sin and cos of special values", T, float, double)
{
    check_everywhere<T>(
        "sin", 2.5, [](auto x) { return simd::sin(x); }, [](T x) { return std::sin(x); });
    check_everywhere<T>(
        "cos", 2.5, [](auto x) { return simd::cos(x); }, [](T x) { return std::cos(x); });
}
