// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/kernels/rows.hpp>
#include <heed/kernels/sparse.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/softmax.hpp>

/// Weights other than softmax: sparse, each by itself, or at another temperature.
namespace heed::ops {

/// α_j = max(z_j − τ, 0)^power with τ such that Σ_j α_j = 1 over the positions of each row, see kernels/sparse.hpp:
/// e [B,T], or [B,T,D] with one τ per dimension.
///
///     ∂e_j += s_j (∂α_j − Σ_k s_k ∂α_k / Σ_k s_k), s of kernels/sparse.hpp
///
/// Beyond a row's length weights and gradients are 0.
template <int power>
struct sparse_weights_op : row_operation<sparse_weights_op<power>> {
    static constexpr const char* name = power == 1 ? "sparsemax" : "entmax15";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, out<T, R> weights)
    {
        kernels::sparse_weights<power>(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(), e.data,
                                       weights.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, in<T, R> weights, in<T, R> d_weights, adjoint<T, R> d_e)
    {
        kernels::sparse_weights_backward<power>(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(),
                                                weights.data, d_weights.data, d_e.data);
    }
};
/// α_j = max(e_j − τ, 0) with τ such that Σ_j α_j = 1 over the positions of each row: e [B,T], or [B,T,D] with one τ
/// per dimension. Martins and Astudillo 2016.
///
///     ∂e_j += ∂α_j − mean of ∂α over the positions of weight above 0, and 0 elsewhere
///
/// Beyond a row's length weights and gradients are 0.
inline constexpr sparse_weights_op<1> sparsemax{};
/// α_j = max(e_j / 2 − τ, 0)² with τ such that Σ_j α_j = 1 over the positions of each row: e [B,T], or [B,T,D] with one
/// τ per dimension. Peters et al. 2019, α = 1.5.
///
///     ∂e_j += s_j (∂α_j − Σ_k s_k ∂α_k / Σ_k s_k),  s = √α
///
/// Beyond a row's length weights and gradients are 0.
inline constexpr sparse_weights_op<2> entmax15{};

/// α = softmax(e) over the k greatest scores of each row (and those equal to the last of them), 0 elsewhere: e [B,T],
/// or [B,T,D] for each dimension alone.
///
///     ∂e_j += α_j (∂α_j − Σ_k α_k ∂α_k)
struct top_k_op : row_operation<top_k_op> {
    static constexpr const char* name = "top_k";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::size_t k, out<T, R> weights)
    {
        kernels::greatest_weights(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(), k, e.data,
                                  weights.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, std::size_t, in<T, R> weights, in<T, R> d_weights,
                         adjoint<T, R> d_e)
    {
        softmax_op::backward(e, real, weights, d_weights, d_e);
    }
};
inline constexpr top_k_op top_k{};

/// softmax with one more score, the sink, whose weight goes nowhere: e [B,T] or [B,T,D], sink [1].
///
///     α_j = exp(e_j) / (exp(s) + Σ_k exp(e_k))
///     ∂e_j += α_j (∂α_j − Σ_k α_k ∂α_k),  ∂s −= (1 − Σ_k α_k) Σ_k α_k ∂α_k
///
/// Beyond a row's length weights and gradients are 0.
struct softmax_with_sink_op : operation<softmax_with_sink_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& sink, const lengths_view& real)
    {
        require_shape("softmax_with_sink", "the sink", sink.shape, {1}, "one score");
        real.require("softmax_with_sink", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, 1> sink, const lengths_view& real, out<T, R> weights)
    {
        const auto column = [s = sink.data[0]](std::size_t n, const T* x, T* y, T*) {
            using std::exp;
            const T top = std::max(s, kernels::detail::max_of(n, x));
            const T base = top == -std::numeric_limits<T>::infinity() ? T(0) : top;
            bool known = base < std::numeric_limits<T>::infinity() && s == s;
            for (std::size_t j = 0; j < n; ++j) known = known && x[j] == x[j];  // no NaN
            if (!known) return kernels::detail::unknown_weights(n, x, y);
            T sum = exp(s - base);
            for (std::size_t j = 0; j < n; ++j) sum += y[j] = exp(x[j] - base);
            for (std::size_t j = 0; j < n; ++j) y[j] = sum == 0 ? T(0) : y[j] / sum;
        };
        kernels::detail::each_column_of_scores(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(), e.data,
                                               weights.data, column);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, 1>, const lengths_view& real, in<T, R> weights, in<T, R> d_weights,
                         adjoint<T, R> d_e, adjoint<T, 1> d_sink)
    {
        if (d_e) softmax_op::backward(e, real, weights, d_weights, d_e);
        if (!d_sink) return;
        const std::size_t width = detail::width_of(e.shape);
        for (std::size_t b = 0; b < e.shape[0]; ++b) {
            for (std::size_t d = 0; d < width; ++d) {
                T all = 0, pulled = 0;
                for (std::size_t t = 0; t < real[b]; ++t) {
                    const std::size_t at = (b * e.shape[1] + t) * width + d;
                    if (weights.data[at] == T(0)) continue;  // what comes back to it may be NaN
                    all += weights.data[at];
                    pulled += weights.data[at] * d_weights.data[at];
                }
                d_sink.data[0] -= (1 - all) * pulled;
            }
        }
    }
};
inline constexpr softmax_with_sink_op softmax_with_sink{};

/// α_j = σ(e_j + bias), and 0 beyond a row's length and where e_j is -inf: e [B,T] or [B,T,D].
///
///     ∂e_j += α_j (1 − α_j) ∂α_j
struct sigmoid_weights_op : row_operation<sigmoid_weights_op> {
    static constexpr const char* name = "sigmoid_weights";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, double bias, out<T, R> weights)
    {
        detail::each_real_row(
            e.shape, real, [=, shift = static_cast<T>(bias)](std::size_t at, std::size_t n, std::size_t row) {
                simd::transform(
                    n, weights.data + at,
                    [shift](simd::vec<T> score) {
                        // 1 / (1 + exp(∞)) would depend on how exp treats infinity.
                        constexpr T none = -std::numeric_limits<T>::infinity();
                        return simd::select(score == none, simd::vec<T>{}, simd::sigmoid(score + shift));
                    },
                    e.data + at);
                kernels::detail::zero(weights.data + at + n, row - n);
            });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, double, in<T, R> weights, in<T, R> d_weights,
                         adjoint<T, R> d_e)
    {
        detail::each_real_row(e.shape, real, [=](std::size_t at, std::size_t n, std::size_t) {
            simd::transform(
                n, d_e.data + at,
                [](auto d, auto a, auto g) { return simd::select(a == T(0), d, d + a * (1 - a) * g); },
                static_cast<const T*>(d_e.data + at), weights.data + at, d_weights.data + at);
        });
    }
};
inline constexpr sigmoid_weights_op sigmoid_weights{};

/// y_j = factor · (e_j − c), c the greatest score of the row that may be seen: e [B,T], or [B,T,D] with one c per
/// dimension -> the shape of e. For normalizers whose weights do not change if a constant is added to all scores. Great
/// scores keep their differences, which factor · e_j would round away. seen: e, but -inf where it is hidden; hidden
/// scores may be NaN.
///
///     ∂e_j += factor · ∂y_j                                      nothing for `seen`
///
/// The gradient treats c as a constant: for such normalizers Σ_j ∂y_j is 0.
struct scale_from_greatest_op : operation<scale_from_greatest_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& seen, const lengths_view& real, double)
    {
        require_shape("scale_from_greatest", "what may be seen", seen.shape, e.shape, "the shape of the scores");
        real.require("scale_from_greatest", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, R> seen, const lengths_view& real, double factor, out<T, R> y)
    {
        constexpr T none = -std::numeric_limits<T>::infinity();
        const std::size_t width = detail::width_of(e.shape);
        detail::each_real_row(e.shape, real, [=](std::size_t at, std::size_t n, std::size_t row) {
            scratch memory;
            T* const top = memory.take<T>(width);
            std::fill_n(top, width, none);
            for (std::size_t i = at; i < at + n; i += width) {
                for (std::size_t d = 0; d < width; ++d) {
                    if (seen.data[i + d] != none && e.data[i + d] > top[d]) top[d] = e.data[i + d];
                }
            }
            for (std::size_t d = 0; d < width; ++d) top[d] = top[d] == none ? T(0) : top[d];
            for (std::size_t i = at; i < at + n; i += width) {
                simd::transform(
                    width, y.data + i, [f = static_cast<T>(factor)](auto u, auto c) { return f * (u - c); }, e.data + i,
                    static_cast<const T*>(top));
            }
            kernels::detail::zero(y.data + at + n, row - n);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, R>, const lengths_view& real, double factor, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e, adjoint<T, R>)
    {
        if (!d_e) return;
        detail::each_real_row(e.shape, real, [=](std::size_t at, std::size_t n, std::size_t) {
            kernels::add_scaled(n, d_e.data + at, static_cast<T>(factor), d_y.data + at);
        });
    }
};
inline constexpr scale_from_greatest_op scale_from_greatest{};

}  // namespace heed::ops
