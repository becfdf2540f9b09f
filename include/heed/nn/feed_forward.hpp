// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/core/parameters.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>

namespace heed::nn {

/// Two layers at each position, the same at all.
///
///     FFN(x) = f(x W_1 + b_1) W_2 + b_2           Vaswani et al. 2017, eq. 2
///
/// f is ops::relu, as in the paper, or another elementwise operation such as ops::gelu.
template <class Matrix, class Vector, class Activation>
struct feed_forward {
    Matrix W_1;  // [D,F]
    Vector b_1;  // [F]
    Matrix W_2;  // [F,D]
    Vector b_2;  // [D]
    HEED_NO_UNIQUE_ADDRESS Activation activation;

    auto operator()(const tensor auto& x, const nn::dropout& drop = {}) const  // [...,D]
    {
        return ops::linear(drop(activation(ops::linear(x, W_1, b_1))), W_2, b_2);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::feed_forward{visit("W_1", self.W_1), visit("b_1", self.b_1), visit("W_2", self.W_2),
                                visit("b_2", self.b_2), self.activation};
    }
};

template <class Matrix, class Vector, class Activation, class Matrix2, class Vector2>
feed_forward(Matrix, Vector, Matrix2, Vector2, Activation)
    -> feed_forward<joint_tensor<Matrix, Matrix2>, joint_tensor<Vector, Vector2>, Activation>;

/// New layers from `width` to `hidden` and back.
template <class T, class Activation>
auto make_feed_forward(random_source& random, std::size_t width, std::size_t hidden, Activation activation)
{
    auto W_1 = glorot<T>(random, width, hidden);
    return feed_forward{std::move(W_1), zeros<T>(hidden), glorot<T>(random, hidden, width), zeros<T>(width),
                        std::move(activation)};
}

}  // namespace heed::nn
