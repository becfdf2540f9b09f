// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/core/mask.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/gated_linear.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/operation.hpp>

/// Units that make one number of two: maxout (Goodfellow et al. 2013) and gated linear units (Dauphin et al. 2017).
namespace heed::ops {

namespace detail {

/// The shape with half as long a last axis. Throws shape_error if that has no half.
template <std::size_t R>
shape_of_rank<R> half_of(const char* where, shape_of_rank<R> shape, const char* because)
{
    if (shape[R - 1] % 2 != 0) {
        throw shape_error(std::string(where) + ": x is " + shape_text(shape) +
                          ", but its last axis must be even: " + because);
    }
    shape[R - 1] /= 2;
    return shape;
}

/// f(row) for each row of y; threads share the rows.
void each_wide_row(const auto& y, const auto& f)
{
    const std::size_t N = y.shape.back();
    parallel_for(N == 0 ? 0 : y.size() / N, kernels::detail::rows_a_shard(N),
                 [&](std::size_t begin, std::size_t end, std::size_t) {
                     for (std::size_t row = begin; row < end; ++row) f(row);
                 });
}

}  // namespace detail

/// y_i = max(x_2i, x_2i+1), the greater of each pair of neighbours: x [...,2N] -> [...,N]. Goodfellow et al. 2013;
/// Bahdanau et al. 2015, A.2.2.
///
///     ∂x of the greater one += ∂y_i; of the first one if they are equal
struct maxout_op : operation<maxout_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x) { return detail::half_of("maxout", x.shape, "pairs of neighbours"); }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) y.data[i] = std::max(x.data[2 * i], x.data[2 * i + 1]);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        for (std::size_t i = 0; i < y.size(); ++i) {
            const bool second = x.data[2 * i + 1] > x.data[2 * i];
            d_x.data[2 * i] += second ? T(0) : d_y.data[i];
            d_x.data[2 * i + 1] += second ? d_y.data[i] : T(0);
        }
    }
};
inline constexpr maxout_op maxout{};

/// y = a ⊙ σ(b), gated linear units: x [...,2N], a in its first half and b in its second -> [...,N]. Dauphin et al.
/// 2017; Gehring et al. 2017, section 3.2.
///
///     ∂a += ∂y ⊙ σ(b),  ∂b += ∂y ⊙ a ⊙ σ(b) (1 - σ(b))
struct glu_op : operation<glu_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x) { return detail::half_of("glu", x.shape, "values, then as many gates"); }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        const std::size_t N = y.shape[R - 1];
        detail::each_wide_row(
            y, [=](std::size_t row) { kernels::gated_linear(N, x.data + row * 2 * N, y.data + row * N); });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        const std::size_t N = y.shape[R - 1];
        detail::each_wide_row(y, [=](std::size_t row) {
            const std::size_t at = row * 2 * N;
            kernels::gated_linear_backward(N, T(1), x.data + at, d_y.data + row * N, d_x.data + at);
        });
    }
};
inline constexpr glu_op glu{};

/// y = √½ (x + a ⊙ σ(b)) before the end of each row, 0 from there on: a gated linear unit of v = [a; b] beside what it
/// was computed from. x [T,B,N], v [T,B,2N], the lengths of the B rows -> [T,B,N]. Gehring et al. 2017, sections 3.2
/// and 3.4.
///
///     before the end of each row, with d = √½ ∂y:  ∂x += d,  ∂a += d ⊙ σ(b),  ∂b += d ⊙ a ⊙ σ(b) (1 - σ(b))
struct gated_residual_op : operation<gated_residual_op> {
    static constexpr double factor = 0.70710678118654752440;  // √½ keeps the variance of a sum of two

    static shape_of_rank<3> shape(const auto& x, const auto& v, const lengths_view& real)
    {
        require_shape("gated_residual", "v", v.shape, {x.shape[0], x.shape[1], 2 * x.shape[2]},
                      "values, then as many gates, for each number of ", x.shape);
        real.require("gated_residual", x.shape[1], x.shape[0]);
        return x.shape;
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 3> v, const lengths_view& real, out<T, 3> y)
    {
        const std::size_t B = x.shape[1], N = x.shape[2];
        detail::each_wide_row(y, [=](std::size_t row) {
            if (row / B < real[row % B]) {
                kernels::gated_residual(N, T(factor), x.data + row * N, v.data + row * 2 * N, y.data + row * N);
            } else {
                std::fill_n(y.data + row * N, N, T(0));
            }
        });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 3> v, const lengths_view& real, in<T, 3> y, in<T, 3> d_y, adjoint<T, 3> d_x,
                         adjoint<T, 3> d_v)
    {
        const std::size_t B = x.shape[1], N = x.shape[2];
        detail::each_wide_row(y, [=](std::size_t row) {
            if (row / B >= real[row % B]) return;
            const T* const d = d_y.data + row * N;
            const std::size_t at = row * 2 * N;
            if (d_x) kernels::add_scaled(N, d_x.data + row * N, T(factor), d);
            if (d_v) kernels::gated_linear_backward(N, T(factor), v.data + at, d, d_v.data + at);
        });
    }
};
inline constexpr gated_residual_op gated_residual{};

}  // namespace heed::ops
