// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/parameters.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/layer_norm.hpp>

namespace heed::nn {

/// Layer normalisation with a learned gain and bias.
///
///     y = gain ⊙ (x - μ) / sqrt(σ² + ε) + bias        Ba et al. 2016, eq. 4; μ and σ² of the last axis of x
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

/// A new one, which only normalises: gain 1, bias 0.
template <class T>
auto make_layer_norm(std::size_t width)
{
    return layer_norm{filled<T, 1>({detail::allowed_rows(width)}, T(1)), zeros<T>(width)};
}

}  // namespace heed::nn
