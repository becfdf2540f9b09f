// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include <heed/core/errors.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// Differences of pairs of heads.
namespace heed::ops {

/// λ = exp(q1 · k1) − exp(q2 · k2) + first: four vectors [d] -> [1].
///
///     ∂q1 += exp(q1 · k1) ∂λ k1, ∂k1 likewise;  ∂q2 −= exp(q2 · k2) ∂λ k2, ∂k2 likewise
struct difference_factor_op : operation<difference_factor_op> {
    static shape_of_rank<1> shape(const auto& q1, const auto& k1, const auto& q2, const auto& k2, double)
    {
        const char* const must = "as long as the first vector";
        require_shape("difference_factor", "k1", k1.shape, q1.shape, must);
        require_shape("difference_factor", "q2", q2.shape, q1.shape, must);
        require_shape("difference_factor", "k2", k2.shape, q1.shape, must);
        return {1};
    }

    template <class T>
    static void forward(in<T, 1> q1, in<T, 1> k1, in<T, 1> q2, in<T, 1> k2, double first, out<T, 1> y)
    {
        const std::size_t d = q1.shape[0];
        using std::exp;
        y.data[0] =
            exp(kernels::dot(d, q1.data, k1.data)) - exp(kernels::dot(d, q2.data, k2.data)) + static_cast<T>(first);
    }

    template <class T>
    static void backward(in<T, 1> q1, in<T, 1> k1, in<T, 1> q2, in<T, 1> k2, double, in<T, 1>, in<T, 1> d_y,
                         adjoint<T, 1> d_q1, adjoint<T, 1> d_k1, adjoint<T, 1> d_q2, adjoint<T, 1> d_k2)
    {
        const std::size_t d = q1.shape[0];
        using std::exp;
        const T one = d_y.data[0] * exp(kernels::dot(d, q1.data, k1.data)),
                two = -d_y.data[0] * exp(kernels::dot(d, q2.data, k2.data));
        if (d_q1) kernels::add_scaled(d, d_q1.data, one, k1.data);
        if (d_k1) kernels::add_scaled(d, d_k1.data, one, q1.data);
        if (d_q2) kernels::add_scaled(d, d_q2.data, two, k2.data);
        if (d_k2) kernels::add_scaled(d, d_k2.data, two, q2.data);
    }
};
inline constexpr difference_factor_op difference_factor{};

/// y_h = x_{2h} − λ x_{2h+1}, parts of `width` numbers in pairs: x [...,2·n·width], λ [1] -> [...,n·width].
///
///     ∂x_{2h} += ∂y_h,  ∂x_{2h+1} −= λ ∂y_h,  ∂λ −= Σ x_{2h+1} · ∂y_h
struct differences_op : operation<differences_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, const auto& factor, std::size_t width)
    {
        require_shape("differences", "the factor", factor.shape, shape_of_rank<1>{1}, "one number");
        auto y = x.shape;
        if (width == 0 || y.back() % (2 * width) != 0) {
            throw shape_error("differences: pairs of parts of " + std::to_string(width) + " numbers in " +
                              shape_text(y) + "; the last axis must be a multiple of twice that");
        }
        y.back() /= 2;
        return y;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 1> factor, std::size_t width, out<T, R> y)
    {
        for (std::size_t i = 0, n = y.size(); i < n; ++i) {
            const std::size_t from = i / width * 2 * width + i % width;
            y.data[i] = x.data[from] - factor.data[0] * x.data[from + width];
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, 1> factor, std::size_t width, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x,
                         adjoint<T, 1> d_factor)
    {
        for (std::size_t at = 0, n = y.size(); at < n; at += width) {
            const T* const d = d_y.data + at;
            const std::size_t one = 2 * at, two = one + width;
            if (d_x) kernels::add(width, d_x.data + one, d);
            if (d_x) kernels::add_scaled(width, d_x.data + two, -factor.data[0], d);
            if (d_factor) d_factor.data[0] -= kernels::dot(width, x.data + two, d);
        }
    }
};
inline constexpr differences_op differences{};

}  // namespace heed::ops
