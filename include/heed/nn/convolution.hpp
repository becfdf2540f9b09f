// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>

#include <heed/core/parameters.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/patches.hpp>
#include <heed/ops/products.hpp>

namespace heed::nn {

/// A convolution of pictures, [B,H·W,C] -> [B,H'·W',N].
///
///     y(i,j) = Σ_{u,v,c} x(s i + u, s j + v, c) W[(u,v,c),:] + b      zeros beyond the edges; see ops::patches
template <class Matrix, class Vector>
struct convolution {
    Matrix W;                // [k·k·C,N]
    Vector b;                // [N]
    std::size_t width = 3;   // k, odd
    std::size_t stride = 1;  // s

    auto operator()(const tensor auto& pictures, const grid& size) const
    {
        return ops::linear(ops::patches(pictures, size, width, stride), W, b);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::convolution{visit("W", self.W), visit("b", self.b), self.width, self.stride};
    }
};
template <class Matrix, class Vector>
convolution(Matrix, Vector, std::size_t = 3, std::size_t = 1) -> convolution<Matrix, Vector>;

/// A new one for rectified units: W is normal with variance 2 / (k·k·C) (He et al. 2015, §2.2).
template <class T>
auto make_convolution(random_source& random, std::size_t channels, std::size_t maps, std::size_t width = 3,
                      std::size_t stride = 1)
{
    const std::size_t inputs = width * width * channels;
    return convolution{gaussian<T>(random, inputs, maps, std::sqrt(2.0 / static_cast<double>(inputs))), zeros<T>(maps),
                       width, stride};
}

}  // namespace heed::nn
