// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <heed/core/parameters.hpp>
#include <heed/kernels/layer_norm.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>

/// Layer normalization.
namespace heed::inline HEED_TARGET::ops {

/// y = gain ⊙ (x - μ) / sqrt(σ² + ε) + bias, with the mean μ and the variance σ² over the last axis: x [...,N], gain
/// and bias [N] -> [...,N]. Ba et al. 2016, eq. 4. If all numbers of a row are equal, the result is the bias.
///
///     with d = gain ⊙ ∂y, x̂ = (x − μ) / sqrt(σ² + ε) and means over the last axis:
///     ∂x += (d − mean(d) − x̂ mean(d ⊙ x̂)) / sqrt(σ² + ε),  ∂gain += Σ_rows ∂y ⊙ x̂,  ∂bias += Σ_rows ∂y
struct layer_norm_op : operation<layer_norm_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, const auto& gain, const auto& bias, double epsilon)
    {
        const std::size_t N = x.shape.back();
        require_shape("layer_norm", "the gain", gain.shape, {N}, "as long as the last axis of x ", x.shape);
        require_shape("layer_norm", "the bias", bias.shape, {N}, "as long as the last axis of x ", x.shape);
        if (!(epsilon > 0)) {
            throw shape_error("layer_norm: epsilon is " + std::to_string(epsilon) +
                              " but must be above 0, such as 1e-5; otherwise equal numbers would be divided by 0");
        }
        return x.shape;
    }

    /// μ|1/sqrt(σ² + ε) of each row.
    static std::size_t saved(const auto& x, const auto&, const auto&, double) { return 2 * detail::rows_of(x.shape); }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 1> gain, in<T, 1> bias, double epsilon, out<T, R> y, T* moments)
    {
        if (x.size() != 0) kernels::layer_norm(rows(x, gain, bias, epsilon), moments, y.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, 1> gain, in<T, 1> bias, double epsilon, in<T, R>, in<T, R> d_y,
                         const T* moments, adjoint<T, R> d_x, adjoint<T, 1> d_gain, adjoint<T, 1> d_bias)
    {
        if (x.size() == 0) return;
        kernels::layer_norm_backward(rows(x, gain, bias, epsilon), moments, d_y.data, d_x.data, d_gain.data,
                                     d_bias.data);
    }

private:
    template <class T, std::size_t R>
    static kernels::layer_norm_rows<T> rows(in<T, R> x, in<T, 1> gain, in<T, 1> bias, double epsilon)
    {
        return {detail::rows_of(x.shape), x.shape[R - 1], x.data, gain.data, bias.data, static_cast<T>(epsilon)};
    }
};
inline constexpr layer_norm_op layer_norm{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::nn {

/// Layer normalization with a learned gain and bias: ops::layer_norm.
///
///     y = gain ⊙ (x − μ) / sqrt(σ² + ε) + bias           Ba et al. 2016, eq. 4
template <class Vector>
struct layer_norm {
    Vector gain;  // [N]
    Vector bias;  // [N]
    double epsilon = 1e-5;

    auto operator()(const tensor auto& x) const { return ops::layer_norm(x, gain, bias, epsilon); }  // [...,N]

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::layer_norm{visit("gain", self.gain), visit("bias", self.bias), self.epsilon};
    }
};

template <class Vector, class Vector2>
layer_norm(Vector, Vector2, double = 1e-5) -> layer_norm<joint_tensor<Vector, Vector2>>;

/// A new layer normalization, with gain 1 and bias 0.
template <class T>
auto make_layer_norm(std::size_t width)
{
    return layer_norm{filled<T, 1>({detail::allowed_rows(width)}, T(1)), zeros<T>(width)};
}

}  // namespace heed::inline HEED_TARGET::nn
