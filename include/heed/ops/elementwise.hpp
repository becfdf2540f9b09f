// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <string>

#include <heed/kernels/rows.hpp>
#include <heed/kernels/simd.hpp>
#include <heed/ops/operation.hpp>

/// y_i = f(x_i) and y_i = f(a_i, b_i), and the same with b repeated for every position.
///
/// Each function states its value and its derivatives side by side, on vectors of lanes.
namespace heed::ops {

namespace functions {

// One argument: value(x), and slope(x, y, dy) = ∂y/∂x · dy.
struct tanh {
    template <class T, class V>
    static V value(V x)
    {
        return simd::tanh(x);
    }
    template <class T, class V>
    static V slope(V, V y, V dy)
    {
        return dy * (1 - y * y);
    }
};
struct sigmoid {
    template <class T, class V>
    static V value(V x)
    {
        return simd::sigmoid(x);
    }
    template <class T, class V>
    static V slope(V, V y, V dy)
    {
        return dy * y * (1 - y);
    }
};
struct exp {
    template <class T, class V>
    static V value(V x)
    {
        return simd::exp(x);
    }
    template <class T, class V>
    static V slope(V, V y, V dy)
    {
        return dy * y;
    }
};
struct log {
    template <class T, class V>
    static V value(V x)
    {
        return simd::log(x);
    }
    template <class T, class V>
    static V slope(V x, V, V dy)
    {
        return dy / x;
    }
};
struct relu {
    template <class T, class V>
    static V value(V x)
    {
        return simd::select(x > T(0), x, simd::splat<T>(0));
    }
    template <class T, class V>
    static V slope(V x, V, V dy)
    {
        return simd::select(x > T(0), dy, simd::splat<T>(0));
    }
};
struct square {
    template <class T, class V>
    static V value(V x)
    {
        return x * x;
    }
    template <class T, class V>
    static V slope(V x, V, V dy)
    {
        return dy * (x + x);
    }
};

// Two arguments: value(a, b), and slope_a, slope_b(a, b, y, dy).
struct add {
    template <class T, class V>
    static V value(V a, V b)
    {
        return a + b;
    }
    template <class T, class V>
    static V slope_a(V, V, V, V dy)
    {
        return dy;
    }
    template <class T, class V>
    static V slope_b(V, V, V, V dy)
    {
        return dy;
    }
};
/// tanh(a + b) in one pass: the hidden layer of additive scores, the largest temporary of a step.
struct tanh_of_sum {
    template <class T, class V>
    static V value(V a, V b)
    {
        return simd::tanh(a + b);
    }
    template <class T, class V>
    static V slope_a(V, V, V y, V dy)
    {
        return dy * (1 - y * y);
    }
    template <class T, class V>
    static V slope_b(V, V, V y, V dy)
    {
        return dy * (1 - y * y);
    }
};
struct subtract {
    template <class T, class V>
    static V value(V a, V b)
    {
        return a - b;
    }
    template <class T, class V>
    static V slope_a(V, V, V, V dy)
    {
        return dy;
    }
    template <class T, class V>
    static V slope_b(V, V, V, V dy)
    {
        return -dy;
    }
};
struct multiply {
    template <class T, class V>
    static V value(V a, V b)
    {
        return a * b;
    }
    template <class T, class V>
    static V slope_a(V, V b, V, V dy)
    {
        return dy * b;
    }
    template <class T, class V>
    static V slope_b(V a, V, V, V dy)
    {
        return dy * a;
    }
};

/// log(eᵃ + eᵇ), exact where one side is -inf. Every exponent is <= 0.
struct logaddexp {
    template <class T, class V>
    static V value(V a, V b)
    {
        const V high = simd::select(a > b, a, b), low = simd::select(a > b, b, a);
        const V sum = high + simd::log1p(simd::exp(low - high));
        const auto both = (a == b) & (high == -std::numeric_limits<T>::infinity());  // -inf - -inf is NaN
        return simd::select(both, high, sum);
    }
    template <class T, class V>
    static V slope_a(V a, V, V y, V dy)
    {
        return share<T>(a, y, dy);
    }
    template <class T, class V>
    static V slope_b(V, V b, V y, V dy)
    {
        return share<T>(b, y, dy);
    }

private:
    template <class T, class V>
    static V share(V part, V y, V dy)
    {
        const auto nothing = part == -std::numeric_limits<T>::infinity();
        return simd::select(nothing, simd::splat<T>(0), dy * simd::exp(part - y));
    }
};

/// e − L, and e itself where there is no history yet (L = -inf): temporal modulation (Sankaran et al. 2016, eq. 7) in
/// the log domain.
struct discount {
    template <class T, class V>
    static V value(V e, V L)
    {
        return simd::select(L == -std::numeric_limits<T>::infinity(), e, e - L);
    }
    template <class T, class V>
    static V slope_a(V, V, V, V dy)
    {
        return dy;
    }
    template <class T, class V>
    static V slope_b(V, V L, V, V dy)
    {
        return simd::select(L == -std::numeric_limits<T>::infinity(), simd::splat<T>(0), -dy);
    }
};

}  // namespace functions

/// y = f(x), elementwise                      ∂x += f'(x) ∂y
template <class F>
struct unary : operation<unary<F>> {
    static auto shape(const auto& x) { return x.shape; }

    template <class T, std::size_t N>
    static void forward(in<T, N> x, out<T, N> y)
    {
        simd::parallel_transform(
            x.size(), y.data, [](auto v) { return F::template value<T>(v); }, x.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N> x, in<T, N> y, in<T, N> d_y, adjoint<T, N> d_x)
    {
        if (!d_x) return;
        simd::parallel_transform(
            x.size(), d_x.data, [](auto sum, auto v, auto w, auto d) { return sum + F::template slope<T>(v, w, d); },
            static_cast<const T*>(d_x.data), x.data, y.data, d_y.data);
    }
};

/// y = f(a, b), elementwise; a and b have the same shape.
///
///     ∂a += ∂f/∂a ∂y,  ∂b += ∂f/∂b ∂y
template <class F>
struct binary : operation<binary<F>> {
    const char* name;

    constexpr explicit binary(const char* word) : name(word) {}

    auto shape(const auto& a, const auto& b) const
    {
        static_assert(rank_of<decltype(a)> == rank_of<decltype(b)>,
                      "heed: an elementwise operation takes two tensors of the same rank");
        require_shape(name, "the second argument", b.shape, a.shape, "the shape of the first");
        return a.shape;
    }

    template <class T, std::size_t N>
    static void forward(in<T, N> a, in<T, N> b, out<T, N> y)
    {
        simd::parallel_transform(
            a.size(), y.data, [](auto u, auto v) { return F::template value<T>(u, v); }, a.data, b.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N> a, in<T, N> b, in<T, N> y, in<T, N> d_y, adjoint<T, N> d_a, adjoint<T, N> d_b)
    {
        if (d_a) {
            simd::parallel_transform(
                a.size(), d_a.data,
                [](auto sum, auto u, auto v, auto w, auto d) { return sum + F::template slope_a<T>(u, v, w, d); },
                static_cast<const T*>(d_a.data), a.data, b.data, y.data, d_y.data);
        }
        if (d_b) {
            simd::parallel_transform(
                a.size(), d_b.data,
                [](auto sum, auto u, auto v, auto w, auto d) { return sum + F::template slope_b<T>(u, v, w, d); },
                static_cast<const T*>(d_b.data), a.data, b.data, y.data, d_y.data);
        }
    }
};

/// y[b,t,:] = f(a[b,t,:], b[b,:]): the second argument [B,A] meets each position of the first [B,T,A].
///
///     ∂a as above,  ∂b[b,:] += Σ_t ∂f/∂b ∂y[b,t,:]
template <class F>
struct binary_each : operation<binary_each<F>> {
    const char* name;

    constexpr explicit binary_each(const char* word) : name(word) {}

    auto shape(const auto& a, const auto& b) const
    {
        static_assert(rank_of<decltype(a)> == 3 && rank_of<decltype(b)> == 2,
                      "heed: an ..._each operation takes [B,T,A] and [B,A]");
        require_shape(name, "the second argument", b.shape, shape_of_rank<2>{a.shape[0], a.shape[2]},
                      "one row for each row of the first, which is ", a.shape);
        return a.shape;
    }

    template <class T>
    static void forward(in<T, 3> a, in<T, 2> b, out<T, 3> y)
    {
        each_position(a.shape, [&](std::size_t width, std::size_t at, std::size_t row) {
            simd::transform(
                width, y.data + at, [](auto u, auto v) { return F::template value<T>(u, v); }, a.data + at,
                b.data + row);
        });
    }

    template <class T>
    static void backward(in<T, 3> a, in<T, 2> b, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_a, adjoint<T, 2> d_b)
    {
        each_position(a.shape, [&](std::size_t width, std::size_t at, std::size_t row) {
            if (d_a) {
                simd::transform(
                    width, d_a.data + at,
                    [](auto sum, auto u, auto v, auto w, auto d) { return sum + F::template slope_a<T>(u, v, w, d); },
                    static_cast<const T*>(d_a.data + at), a.data + at, b.data + row, y.data + at, d_y.data + at);
            }
            if (d_b) {
                simd::transform(
                    width, d_b.data + row,
                    [](auto sum, auto u, auto v, auto w, auto d) { return sum + F::template slope_b<T>(u, v, w, d); },
                    static_cast<const T*>(d_b.data + row), a.data + at, b.data + row, y.data + at, d_y.data + at);
            }
        });
    }

private:
    /// f(A, where the position begins in [B,T,A], where its row begins in [B,A]); rows are shared out among threads.
    template <class F_>
    static void each_position(const shape_of_rank<3>& shape, F_&& f)
    {
        const std::size_t B = shape[0], positions = shape[1], A = shape[2];
        parallel_for(B, 1 + 65536 / (positions * A + 1), [&](std::size_t first, std::size_t last, std::size_t) {
            for (std::size_t i = first * positions; i < last * positions; ++i) f(A, i * A, i / positions * A);
        });
    }
};

inline constexpr unary<functions::tanh> tanh{};
inline constexpr unary<functions::sigmoid> sigmoid{};
inline constexpr unary<functions::exp> exp{};
inline constexpr unary<functions::log> log{};
inline constexpr unary<functions::relu> relu{};
inline constexpr unary<functions::square> square{};

inline constexpr binary<functions::add> add{"add"};
inline constexpr binary<functions::subtract> subtract{"subtract"};
inline constexpr binary<functions::multiply> multiply{"multiply"};
inline constexpr binary<functions::logaddexp> logaddexp{"logaddexp"};
inline constexpr binary<functions::discount> discount{"discount"};

inline constexpr binary_each<functions::add> add_each{"add_each"};
inline constexpr binary_each<functions::tanh_of_sum> tanh_of_sum_each{"tanh_of_sum_each"};
inline constexpr binary_each<functions::subtract> subtract_each{"subtract_each"};
inline constexpr binary_each<functions::multiply> multiply_each{"multiply_each"};

/// y = factor · x                             ∂x += factor · ∂y
/// The factor is a double for every element type: a policy's text does not depend on it.
struct scale_op : operation<scale_op> {
    static auto shape(const auto& x, double) { return x.shape; }

    template <class T, std::size_t N>
    static void forward(in<T, N> x, double factor, out<T, N> y)
    {
        simd::parallel_transform(
            x.size(), y.data, [f = static_cast<T>(factor)](auto v) { return v * f; }, x.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N> x, double factor, in<T, N>, in<T, N> d_y, adjoint<T, N> d_x)
    {
        if (d_x) kernels::add_scaled(x.size(), d_x.data, static_cast<T>(factor), d_y.data);
    }
};
inline constexpr scale_op scale{};

}  // namespace heed::ops
