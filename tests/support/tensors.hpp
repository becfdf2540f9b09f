// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>

/// Tensors for tests, and comparisons.
namespace support {

using heed::array;
using heed::shape_of;  // ad's overload is found by argument-dependent lookup
using heed::shape_of_rank;
using heed::view_of;

/// Normal numbers times `scale`; the same stream gives the same numbers.
template <class T = double, std::size_t N>
array<T, N> random(const shape_of_rank<N>& shape, std::uint64_t stream, double scale = 1)
{
    array<T, N> x(shape);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x.data()[i] = static_cast<T>(scale * heed::normal(heed::mix(stream), i));
    }
    return x;
}
template <class T = double, std::size_t N>
array<T, N> random(const std::size_t (&extents)[N], std::uint64_t stream, double scale = 1)
{
    shape_of_rank<N> shape;
    for (std::size_t axis = 0; axis < N; ++axis) shape[axis] = extents[axis];
    return random<T>(shape, stream, scale);
}

/// Constants for a loss that weighs every entry differently: symmetric constants would hide errors.
template <class T = double, std::size_t N>
array<T, N> uneven(const shape_of_rank<N>& shape)
{
    array<T, N> c(shape);
    for (std::size_t i = 0; i < c.size(); ++i) {
        const double k = static_cast<double>(i);
        c.data()[i] = static_cast<T>(std::sin(1 + 1.7 * k) + 0.1 * k / static_cast<double>(c.size()));
    }
    return c;
}

/// The same numbers with another element type.
template <class To, class From, std::size_t N>
array<To, N> converted(const array<From, N>& x)
{
    array<To, N> y(x.shape());
    for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = static_cast<To>(x.data()[i]);
    return y;
}

/// Compares shapes and every bit.
template <class A, class B>
bool same_bits(const A& a, const B& b)
{
    if (shape_of(a) != shape_of(b)) return false;
    const auto u = view_of(a), v = view_of(b);
    return u.size() == 0 || std::memcmp(u.data, v.data, u.size() * sizeof(*u.data)) == 0;
}

/// The maximum |a - b| / (1 + |b|); infinite if shapes differ or only one number is NaN.
template <class A, class B>
double distance(const A& a, const B& b)
{
    if (shape_of(a) != shape_of(b)) return std::numeric_limits<double>::infinity();
    const auto u = view_of(a);
    const auto v = view_of(b);
    double worst = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
        const double x = static_cast<double>(u.data[i]), y = static_cast<double>(v.data[i]);
        if (x == y) continue;
        const double off = std::abs(x - y) / (1 + std::abs(y));
        worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
    }
    return worst;
}

template <class X>
bool all_finite(const X& x)
{
    const auto v = view_of(x);
    for (std::size_t i = 0; i < v.size(); ++i) {
        if (!std::isfinite(v.data[i])) return false;
    }
    return true;
}

/// The message of the exception that f() throws; empty if it does not throw this type.
template <class Error, class F>
std::string message_of(F&& f)
{
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    } catch (...) {
        return "something else was thrown";
    }
    return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The number in a tensor without axes, such as a loss.
double number(const auto& loss)
{
    static_assert(heed::rank_of<decltype(loss)> == 0);
    return static_cast<double>(heed::view_of(loss).data[0]);
}

}  // namespace support
