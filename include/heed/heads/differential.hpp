// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <string>

#include <heed/core/errors.hpp>
#include <heed/core/tensor.hpp>
#include <heed/kernels/dot.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/rms_norm.hpp>
#include <heed/ops/shape.hpp>

/// Differences of pairs of heads.
namespace heed::inline HEED_TARGET::ops {

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

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::per_head {

/// Heads in pairs that read the same values: the second of each is subtracted from the first, and each difference is
/// normalized alone (differential attention).
///
///     head_h = (softmax(Q1 K1ᵀ / √d) − λ softmax(Q2 K2ᵀ / √d)) V
///     λ = exp(λ_q1 · λ_k1) − exp(λ_q2 · λ_k2) + λ_init
///     MultiHead = Concat(…, (1 − λ_init) norm(head_h), …) W_O         Ye et al. 2024, section 2.1, eq. 1-3
///
///     const per_head::differential subtract{q1, k1, q2, k2, gain, 0.8};
///     multi_head attend{std::vector(2 * n, head), W_Q, W_K, W_V, W_O, subtract};
///
/// (softmax_1 − λ softmax_2) V = softmax_1 V − λ softmax_2 V: both are contexts of ordinary heads, in any of their
/// kernels. W_Q and W_K have columns for 2n heads, [q1 of head 0, q2 of head 0, q1 of head 1, …], W_V for n of width V,
/// and W_O has n·V rows. The norm is the root mean square of each head, with one gain [V] for all; as in the authors'
/// program it has no mean, ε = 1e-5, and comes before 1 − λ_init. All heads have one λ. The paper's V is 2d; its gain
/// begins as 1, and the vectors of λ are drawn from N(0, 0.1²).
///
/// `step` returns the weights of all 2n heads; `weights(of_heads)` are their differences.
template <class Vector>
struct differential {
    Vector lambda_q1, lambda_k1, lambda_q2, lambda_k2;  // [d]
    Vector gain;                                        // [V]
    double lambda_init = 0.8;
    double epsilon = 1e-5;

    static constexpr std::size_t heads_per_value = 2;

    auto operator()(const tensor auto& contexts, const auto&) const  // [...,2n·V] -> [...,n·V]
    {
        const auto heads = ops::differences(contexts, lambda(), shape_of(gain)[0]);
        return ops::scale(ops::rms_norm(heads, gain, epsilon), 1 - lambda_init);
    }

    auto lambda() const  // [1]
    {
        return ops::difference_factor(lambda_q1, lambda_k1, lambda_q2, lambda_k2, lambda_init);
    }

    /// The weights with which each pair of heads reads its values: of [B,2n,T], the differences [B,n,T].
    auto weights(const tensor auto& of_heads) const
    {
        const auto [B, n, T] = shape_of(of_heads);
        const auto rows = ops::differences(ops::reshaped(of_heads, shape_of_rank<2>{B, n * T}), lambda(), T);
        return ops::reshaped(rows, shape_of_rank<3>{B, n / 2, T});
    }

    /// The paper's λ_init of layer l, counted from 1.
    static double init_of_layer(std::size_t l) { return 0.8 - 0.6 * std::exp(-0.3 * (static_cast<double>(l) - 1)); }

    static auto parameters(auto& self, auto&& visit)
    {
        return per_head::differential{visit("lambda_q1", self.lambda_q1),
                                      visit("lambda_k1", self.lambda_k1),
                                      visit("lambda_q2", self.lambda_q2),
                                      visit("lambda_k2", self.lambda_k2),
                                      visit("gain", self.gain),
                                      self.lambda_init,
                                      self.epsilon};
    }
};

template <class Vector, class Vector2, class Vector3, class Vector4, class Vector5>
differential(Vector, Vector2, Vector3, Vector4, Vector5, double = 0.8, double = 1e-5)
    -> differential<joint_tensor<Vector, Vector2, Vector3, Vector4, Vector5>>;

}  // namespace heed::inline HEED_TARGET::per_head
