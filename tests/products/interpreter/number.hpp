// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

/// A number with its exact derivatives along two directions.
namespace interpreter {

/// A value, its derivatives along the directions u and w, and the mixed second derivative.
struct number {
    double value = 0, u = 0, w = 0, uw = 0;

    number() = default;
    number(double x) : value(x) {}  // NOLINT: a constant
    number(double x, double along_u, double along_w, double mixed) : value(x), u(along_u), w(along_w), uw(mixed) {}
};

/// f(x), from f and its two derivatives at x.
inline number apply(const number& x, double f, double first, double second)
{
    return {f, first * x.u, first * x.w, first * x.uw + second * x.u * x.w};
}

inline number operator+(const number& a, const number& b)
{
    return {a.value + b.value, a.u + b.u, a.w + b.w, a.uw + b.uw};
}
inline number operator-(const number& a) { return {-a.value, -a.u, -a.w, -a.uw}; }
inline number operator-(const number& a, const number& b) { return a + -b; }
inline number operator*(const number& a, const number& b)
{
    return {a.value * b.value, a.u * b.value + a.value * b.u, a.w * b.value + a.value * b.w,
            a.uw * b.value + a.u * b.w + a.w * b.u + a.value * b.uw};
}
inline number operator/(const number& a, const number& b)
{
    const double y = a.value / b.value, u = (a.u - y * b.u) / b.value, w = (a.w - y * b.w) / b.value;
    return {y, u, w, (a.uw - u * b.w - w * b.u - y * b.uw) / b.value};
}
inline number& operator+=(number& a, const number& b) { return a = a + b; }
inline number& operator*=(number& a, const number& b) { return a = a * b; }

inline number exp(const number& x)
{
    const double y = std::exp(x.value);
    return apply(x, y, y, y);
}
inline number log(const number& x) { return apply(x, std::log(x.value), 1 / x.value, -1 / (x.value * x.value)); }
inline number sqrt(const number& x)
{
    const double y = std::sqrt(x.value);
    return apply(x, y, 1 / (2 * y), -1 / (4 * y * y * y));
}
inline number tanh(const number& x)
{
    const double y = std::tanh(x.value);
    return apply(x, y, 1 - y * y, -2 * y * (1 - y * y));
}
inline number sigmoid(const number& x)
{
    const double y = 1 / (1 + std::exp(-x.value));
    return apply(x, y, y * (1 - y), y * (1 - y) * (1 - 2 * y));
}
/// x^p for a base above 0.
inline number pow(const number& x, const number& p) { return exp(p * log(x)); }

}  // namespace interpreter
