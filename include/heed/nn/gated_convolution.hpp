// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/core/mask.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/gemm/weights.hpp>
#include <heed/kernels/gated_linear.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/windows.hpp>

/// Convolutions over the words of sentences.
namespace heed::inline HEED_TARGET::ops {

/// A filter over k neighboring steps, `before` of which come before the step itself:
///
///     y_t = b + Σ_{i<k} x_{t-before+i} W_i,  0 where there is no step     x [T,B,D], W = [W_0; …; W_{k-1}] [k·D,N]
///
/// -> [T,B,N]. With before = k-1, step t depends on no later step; with before = (k-1)/2, the filter is centered.
///
///     ∂x_{t-before+i} += ∂y_t W_iᵀ,  ∂W_i += Σ_t x_{t-before+i}ᵀ ∂y_t,  ∂b += Σ_t ∂y_t
struct convolve_steps_op : operation<convolve_steps_op> {
    static shape_of_rank<3> shape(const auto& x, const auto& W, const auto& b, std::size_t before)
    {
        const std::size_t D = x.shape[2], k = width(x, W);
        if (k == 0 || k * D != W.shape[0]) {
            throw shape_error("convolve_steps: x is " + shape_text(x.shape) + " and W is " + shape_text(W.shape) +
                              ", but W must have " + counted(D, "row") +
                              " for each step of the filter, and at least one step");
        }
        if (before >= k) {
            throw shape_error("convolve_steps: " + counted(before, "step") + " before the step itself, but W " +
                              shape_text(W.shape) + " is " + counted(k, "step") + " wide; give at most " +
                              std::to_string(k - 1));
        }
        require_shape("convolve_steps", "the bias", b.shape, {W.shape[1]}, "one number for each column of W ", W.shape);
        return {x.shape[0], x.shape[1], W.shape[1]};
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 2> W, in<T, 1> b, std::size_t before, out<T, 3> y)
    {
        const std::size_t D = x.shape[2], N = W.shape[1], rows = x.shape[0] * x.shape[1];
        for (std::size_t i = 0; i < rows; ++i) std::copy_n(b.data, N, y.data + i * N);
        each_distance(x, W, before, [=](std::size_t i, std::size_t from, std::size_t to, std::size_t count) {
            kernels::times_weights(count, N, D, x.data + from * D, W.data + i * D * N, true, y.data + to * N);
        });
    }

    template <class T>
    static void backward(in<T, 3> x, in<T, 2> W, in<T, 1>, std::size_t before, in<T, 3>, in<T, 3> d_y,
                         adjoint<T, 3> d_x, adjoint<T, 2> d_W, adjoint<T, 1> d_b)
    {
        const std::size_t D = x.shape[2], N = W.shape[1], rows = x.shape[0] * x.shape[1];
        each_distance(x, W, before, [=](std::size_t i, std::size_t from, std::size_t to, std::size_t count) {
            if (d_x) {
                blas::gemm(blas::op::plain, blas::op::transposed, count, D, N, d_y.data + to * N, W.data + i * D * N,
                           T(1), d_x.data + from * D);
            }
            if (d_W) {
                blas::gemm(blas::op::transposed, blas::op::plain, D, N, count, x.data + from * D, d_y.data + to * N,
                           T(1), d_W.data + i * D * N);
            }
        });
        if (d_b) kernels::add_columns(rows, N, d_b.data, d_y.data);
    }

private:
    static std::size_t width(const auto& x, const auto& W) { return x.shape[2] == 0 ? 0 : W.shape[0] / x.shape[2]; }

    /// Calls f(i, first row of x, first row of y, number of rows) for each W_i that applies to any step.
    template <class F>
    static void each_distance(const auto& x, const auto& W, std::size_t before, F&& f)
    {
        const std::size_t steps = x.shape[0], B = x.shape[1], k = width(x, W);
        for (std::size_t i = 0; i < k; ++i) {
            const std::size_t from = i > before ? i - before : 0, to = before > i ? before - i : 0;
            if (from + to < steps) f(i, from * B, to * B, (steps - from - to) * B);
        }
    }
};
inline constexpr convolve_steps_op convolve_steps{};

/// y = [window[:, N:]; x], a window that advances by one: window [B,n·N], x [B,N] -> [B,n·N].
/// Without columns (n = 0) it stays empty.
///
///     ∂window[:, N:] += ∂y[:, :(n-1)N],  ∂x += ∂y[:, (n-1)N:]
struct slide_op : operation<slide_op> {
    static shape_of_rank<2> shape(const auto& window, const auto& x)
    {
        const std::size_t width = window.shape[1], N = x.shape[1];
        if (N == 0 || width % N != 0) {
            throw shape_error("slide: x is " + shape_text(x.shape) + " and the window " + shape_text(window.shape) +
                              ", but the window's width must be a multiple of x's, and x must have a column");
        }
        require_shape("slide", "the window", window.shape, {x.shape[0], width}, "a row for each row of ", x.shape);
        return window.shape;
    }

    template <class T>
    static void forward(in<T, 2> window, in<T, 2> x, out<T, 2> y)
    {
        const std::size_t width = window.shape[1], N = x.shape[1];
        for (std::size_t b = 0; width > 0 && b < x.shape[0]; ++b) {
            T* const rest = std::copy_n(window.data + b * width + N, width - N, y.data + b * width);
            std::copy_n(x.data + b * N, N, rest);
        }
    }

    template <class T>
    static void backward(in<T, 2> window, in<T, 2> x, in<T, 2>, in<T, 2> d_y, adjoint<T, 2> d_state, adjoint<T, 2> d_x)
    {
        const std::size_t width = window.shape[1], N = x.shape[1];
        for (std::size_t b = 0; width > 0 && b < x.shape[0]; ++b) {
            const T* const d = d_y.data + b * width;
            if (d_state) kernels::add(width - N, d_state.data + b * width + N, d);
            if (d_x) kernels::add(N, d_x.data + b * N, d + width - N);
        }
    }
};
inline constexpr slide_op slide{};

/// y = a ⊙ σ(b), gated linear units: x [...,2N], the first half is a and the second b -> [...,N]. Dauphin et al. 2017;
/// Gehring et al. 2017, section 3.2.
///
///     ∂a += ∂y ⊙ σ(b),  ∂b += ∂y ⊙ a ⊙ σ(b) (1 - σ(b))
struct glu_op : operation<glu_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x)
    {
        return detail::half_of("glu", x.shape, "values, then the same number of gates");
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        const std::size_t N = y.shape[R - 1];
        detail::each_row(detail::rows_of(y.shape), N,
                         [=](std::size_t row) { kernels::gated_linear(N, x.data + row * 2 * N, y.data + row * N); });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        const std::size_t N = y.shape[R - 1];
        detail::each_row(detail::rows_of(y.shape), N, [=](std::size_t row) {
            const std::size_t at = row * 2 * N;
            kernels::gated_linear_backward(N, T(1), x.data + at, d_y.data + row * N, d_x.data + at);
        });
    }
};
inline constexpr glu_op glu{};

/// y = √½ (x + a ⊙ σ(b)), a residual connection around a gated linear unit of v = [a; b]: x [T,B,N], v [T,B,2N], the
/// lengths of the B sentences -> [T,B,N]. y is 0 after the end of a sentence. Gehring et al. 2017, sections 3.2
/// and 3.4.
///
///     with d = √½ ∂y, or 0 after the end:  ∂x += d,  ∂a += d ⊙ σ(b),  ∂b += d ⊙ a ⊙ σ(b) (1 - σ(b))
struct gated_residual_op : operation<gated_residual_op> {
    static constexpr double factor = 0.70710678118654752440;  // √½ keeps the variance of a sum of two terms

    static shape_of_rank<3> shape(const auto& x, const auto& v, const lengths_view& real)
    {
        require_shape("gated_residual", "v", v.shape, {x.shape[0], x.shape[1], 2 * x.shape[2]},
                      "values, then the same number of gates, for each row of x ", x.shape);
        real.require("gated_residual", x.shape[1], x.shape[0]);
        return x.shape;
    }

    template <class T>
    static void forward(in<T, 3> x, in<T, 3> v, const lengths_view& real, out<T, 3> y)
    {
        const std::size_t B = x.shape[1], N = x.shape[2];
        detail::each_row(detail::rows_of(y.shape), N, [=](std::size_t row) {
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
        detail::each_row(detail::rows_of(y.shape), N, [=](std::size_t row) {
            if (row / B >= real[row % B]) return;
            const T* const d = d_y.data + row * N;
            const std::size_t at = row * 2 * N;
            if (d_x) kernels::add_scaled(N, d_x.data + row * N, T(factor), d);
            if (d_v) kernels::gated_linear_backward(N, T(factor), v.data + at, d, d_v.data + at);
        });
    }
};
inline constexpr gated_residual_op gated_residual{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::nn {

/// A gated convolution over k neighboring words.
///
///     v_t = b + Σ_{i<k} x_{t-before+i} W_i,  GLU([v¹; v²]) = v¹ ⊙ σ(v²)     Gehring et al. 2017, section 3.2
///
/// Words before the first and after the last are zeros. Sentences are time-major, [T,B,D]. In an encoder, the filter
/// is centered (before = (k-1)/2, rounded down); in a decoder, it reads only earlier words (before = k-1).
template <class Matrix, class Vector>
struct gated_convolution {
    Matrix W;  // [k·D,2D], the rows of the earliest word first
    Vector b;  // [2D]

    /// D, the size of x and of the result.
    std::size_t size() const { return shape_of(W)[1] / 2; }

    /// k, the number of words that the filter reads.
    std::size_t width() const { return size() == 0 ? 0 : shape_of(W)[0] / size(); }

    /// An encoder block: √½ (input + GLU(v)), where v is the filter's output for x, and x is the input itself or the
    /// input after dropout. Both must be 0 after the end of each sentence; the result is 0 there, too.
    auto around(const tensor auto& input, const tensor auto& x, const lengths& real) const  // [T,B,D] each
    {
        return ops::gated_residual(input, ops::convolve_steps(x, W, b, (width() - 1) / 2), real);
    }

    /// GLU(v) of each word, computed from it and the words before it.
    auto back(const tensor auto& x) const  // [T,B,D]
    {
        return ops::glu(ops::convolve_steps(x, W, b, width() - 1));
    }

    /// Like `back`, one word at a time. `window` [R,(k-1)·D] holds the k-1 words before x [R,D]. It begins as zeros;
    /// the next word's window is ops::slide(window, x).
    auto step(const tensor auto& window, const tensor auto& x) const
    {
        return ops::glu(ops::linear(ops::concat(window, x), W, b));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::gated_convolution{visit("W", self.W), visit("b", self.b)};
    }
};

template <class Matrix, class Vector>
gated_convolution(Matrix, Vector) -> gated_convolution<Matrix, Vector>;

}  // namespace heed::inline HEED_TARGET::nn
