// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/subnormals.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <limits>

namespace {

// Volatile, so that the processor multiplies, not the compiler.
volatile float least = std::numeric_limits<float>::min(), half = 0.5F, two = 2;
volatile double least_double = std::numeric_limits<double>::min();

float below() { return least * half; }

}  // namespace

TEST_CASE("subnormal numbers are 0 while a without_subnormals exists, and are restored after it")
{
    const float before = below();
    volatile float subnormal = before;
    REQUIRE(before > 0);
    {
        const heed::simd::without_subnormals quick;
#if defined(HEED_SIMD_HAS_MXCSR)
        CHECK(below() == 0);          // a result
        CHECK(subnormal * two == 0);  // an operand
        CHECK(least_double * 0.5 == 0);
        {
            const heed::simd::without_subnormals again;
            CHECK(below() == 0);
        }
        CHECK(below() == 0);
#endif
        CHECK(least * two > 0);
    }
    CHECK(below() == before);
    CHECK(subnormal * two == least);
}

TEST_CASE("exceptions that were raised in between stay raised")
{
    std::feclearexcept(FE_ALL_EXCEPT);
    {
        const heed::simd::without_subnormals quick;
        volatile float zero = 0, one = 1;
        volatile const float infinite = one / zero;
        (void)infinite;
    }
    CHECK(std::fetestexcept(FE_DIVBYZERO) != 0);
    std::feclearexcept(FE_ALL_EXCEPT);
}
