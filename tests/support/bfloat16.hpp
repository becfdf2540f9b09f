// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>

/// Numbers of bfloat16, and how far rounding to them may take a result.
namespace support {

/// The largest relative error of rounding to 8 significant bits.
inline constexpr double bfloat16_rounding = 1.0 / 256;

/// x with 8 significant bits, ties to even; for x that is not subnormal.
inline float rounded_to_bfloat16(float x)
{
    if (x == 0 || !std::isfinite(x)) return x;
    int exponent = 0;
    const double fraction = std::frexp(static_cast<double>(x), &exponent);  // 0.5 <= |fraction| < 1
    return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

/// A number of an ideal computation, and how far the same computation in float may be from it: errors of operands, and
/// of rounding each result a few times.
struct bounded {
    static constexpr double float_rounding = 4.0 / (1 << 24);

    double value = 0, error = 0;

    bounded(double x = 0, double off = 0) : value(x), error(off) {}

    double magnitude() const { return std::fabs(value) + error; }

    friend bounded operator+(const bounded& a, const bounded& b)
    {
        return {a.value + b.value, a.error + b.error + float_rounding * (a.magnitude() + b.magnitude())};
    }
    friend bounded operator*(const bounded& a, const bounded& b)
    {
        const double off = std::fabs(a.value) * b.error + a.error * b.magnitude();
        return {a.value * b.value, off + float_rounding * a.magnitude() * b.magnitude()};
    }
    friend bounded operator-(const bounded& a, const bounded& b) { return a + b * bounded(-1); }
    friend bounded operator/(const bounded& a, const bounded& b)
    {
        const double is = a.value / b.value, rest = std::fabs(b.value) - b.error;
        const double off =
            rest > 0 ? (a.error + std::fabs(is) * b.error) / rest : std::numeric_limits<double>::infinity();
        return {is, off + float_rounding * std::fabs(is)};
    }
    bounded& operator+=(const bounded& more) { return *this = *this + more; }
};
inline bounded exp(const bounded& x)
{
    const double y = std::exp(x.value);
    return {y, y * (std::expm1(x.error) + bounded::float_rounding)};
}
/// A result that is rounded to bfloat16; one below the normal numbers may become 0.
inline bounded in_bfloat16(const bounded& x)
{
    return {x.value, x.error + bfloat16_rounding * x.magnitude() + 1.2e-38};
}

}  // namespace support
