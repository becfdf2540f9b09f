// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/parameters.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/factory.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>

namespace heed::inline HEED_TARGET::nn {

/// Two layers, applied to each position.
///
///     FFN(x) = f(x W_1 + b_1) W_2 + b_2           Vaswani et al. 2017, eq. 2
///
/// f is ops::relu, as in the paper, or another elementwise operation: ops::gelu, ops::gelu_erf, ops::silu.
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

/// Two layers, applied to each position, the first one gated.
///
///     FFN(x) = (f(x W_1) ⊙ x W_3) W_2              Shazeer 2020 ("GLU Variants Improve Transformer"), eq. 6
///
/// SwiGLU with ops::silu, GEGLU with ops::gelu_erf, ReGLU with ops::relu. No bias. The paper's W is W_1 here and its V
/// is W_3, as in LLaMA. The paper reduces F to two thirds of its size without a gate.
template <class Matrix, class Activation>
struct gated_feed_forward {
    Matrix W_1;  // [D,F], of the gate
    Matrix W_2;  // [F,D]
    Matrix W_3;  // [D,F]
    HEED_NO_UNIQUE_ADDRESS Activation activation;

    auto operator()(const tensor auto& x, const nn::dropout& drop = {}) const  // [...,D]
    {
        const auto gate = activation(ops::linear(x, W_1));
        return ops::linear(drop(ops::multiply_alike(gate, ops::linear(x, W_3))), W_2);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::gated_feed_forward{visit("W_1", self.W_1), visit("W_2", self.W_2), visit("W_3", self.W_3),
                                      self.activation};
    }
};

template <class Matrix, class Matrix2, class Matrix3, class Activation>
gated_feed_forward(Matrix, Matrix2, Matrix3, Activation)
    -> gated_feed_forward<joint_tensor<Matrix, Matrix2, Matrix3>, Activation>;

/// New layers from `width` to `hidden` and back to `width`, with this activation.
template <class T, class Activation>
auto make_feed_forward(random_source& random, std::size_t width, std::size_t hidden, Activation activation)
{
    return feed_forward{glorot<T>(random, width, hidden), zeros<T>(hidden), glorot<T>(random, hidden, width),
                        zeros<T>(width), std::move(activation)};
}

/// Makes feed_forward with this activation: `feed_forward_factory{ops::gelu}`.
template <class Activation = std::remove_const_t<decltype(ops::relu)>>
struct feed_forward_factory {
    Activation activation{};

    template <class T>
    auto operator()(const initializers<T>& init, const layer_sizes& n) const
    {
        return make_feed_forward<T>(init.random, n.width, n.hidden, activation);
    }
};
template <class Activation = std::remove_const_t<decltype(ops::relu)>>
feed_forward_factory(Activation = {}) -> feed_forward_factory<Activation>;

/// Makes gated_feed_forward: SwiGLU by default; `gated_feed_forward_factory{ops::gelu_erf}` makes GEGLU.
template <class Activation = std::remove_const_t<decltype(ops::silu)>>
struct gated_feed_forward_factory {
    Activation activation{};

    auto operator()(const auto& init, const layer_sizes& n) const
    {
        auto W_1 = init.glorot(n.width, n.hidden), W_3 = init.glorot(n.width, n.hidden);
        return gated_feed_forward{std::move(W_1), init.glorot(n.hidden, n.width), std::move(W_3), activation};
    }
};
template <class Activation = std::remove_const_t<decltype(ops::silu)>>
gated_feed_forward_factory(Activation = {}) -> gated_feed_forward_factory<Activation>;

}  // namespace heed::inline HEED_TARGET::nn
