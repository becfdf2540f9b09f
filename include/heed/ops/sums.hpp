// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>

#include <heed/ops/rows.hpp>

/// Sums and scaled rows.
namespace heed::inline HEED_TARGET::ops {

/// y = Σ_n x[...,n]: [...,N] -> [...].      ∂x[...,n] += ∂y
struct sum_last_op : operation<sum_last_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        shape_of_rank<R - 1> y;
        std::copy_n(x.shape.begin(), R - 1, y.begin());
        return y;
    }

    template <class T, std::size_t R, std::size_t Q>
    static void forward(in<T, R> x, out<T, Q> y)
    {
        const std::size_t n = x.shape[R - 1];
        detail::each_row(y.size(), n, [=](std::size_t i) { y.data[i] = kernels::sum_of(n, x.data + i * n); });
    }

    template <class T, std::size_t R, std::size_t Q>
    static void backward(in<T, R> x, in<T, Q> y, in<T, Q> d_y, adjoint<T, R> d_x)
    {
        const std::size_t n = x.shape[R - 1];
        detail::each_row(y.size(), n, [=](std::size_t i) { kernels::add_constant(n, d_x.data + i * n, d_y.data[i]); });
    }
};
inline constexpr sum_last_op sum_last{};

/// y = Σ_i x_i c_i: x and c [...] -> []. c is usually constant: a loss that gives each element its own gradient.
///
///     ∂x_i += c_i ∂y,  ∂c_i += x_i ∂y
struct dot_op : operation<dot_op> {
    static shape_of_rank<0> shape(const auto& x, const auto& c)
    {
        require_shape("dot", "the constants", c.shape, x.shape, "one for each element");
        return {};
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, R> c, out<T, 0> y)
    {
        *y.data = kernels::dot(x.size(), x.data, c.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> c, in<T, 0>, in<T, 0> d_y, adjoint<T, R> d_x, adjoint<T, R> d_c)
    {
        if (d_x) kernels::add_scaled(x.size(), d_x.data, *d_y.data, c.data);
        if (d_c) kernels::add_scaled(c.size(), d_c.data, *d_y.data, x.data);
    }
};
inline constexpr dot_op dot{};

/// y[..., p·n + i] = g[..., p] x[..., p·n + i]: x [...,G·n], g [...,G]; each factor scales n elements of a row.
///
///     ∂x[..., p·n + i] += g[..., p] ∂y[..., p·n + i],  ∂g[..., p] += Σ_i x[..., p·n + i] ∂y[..., p·n + i]
struct multiply_parts_op : operation<multiply_parts_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, const auto& g)
    {
        auto must = x.shape;
        const std::size_t G = g.shape.back(), N = x.shape.back();
        must.back() = G;
        require_shape("multiply_parts", "the factors", g.shape, must, "one row for each row of ", x.shape);
        if (G == 0 || N % G != 0)
            detail::refuse("multiply_parts: ", g.shape, " factors for ", x.shape,
                           "; the last axis of the factors must divide that of x");
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, R> g, out<T, R> y)
    {
        const std::size_t n = x.shape[R - 1] / g.shape[R - 1];
        for (std::size_t i = 0, parts = g.size(); i < parts; ++i)
            for (std::size_t k = i * n; k < (i + 1) * n; ++k) y.data[k] = g.data[i] * x.data[k];
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> g, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x, adjoint<T, R> d_g)
    {
        const std::size_t n = x.shape[R - 1] / g.shape[R - 1];
        for (std::size_t i = 0, parts = g.size(); i < parts; ++i) {
            if (d_x) kernels::add_scaled(n, d_x.data + i * n, g.data[i], d_y.data + i * n);
            if (d_g) d_g.data[i] += kernels::dot(n, d_y.data + i * n, x.data + i * n);
        }
    }
};
inline constexpr multiply_parts_op multiply_parts{};

}  // namespace heed::inline HEED_TARGET::ops
