// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/mask.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/factory.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>
#include <heed/ops/shape.hpp>

namespace heed::inline HEED_TARGET::nn {

namespace detail {

/// Lengths [B] that select open sentences: `width` for a sentence that has not ended, 0 for one that has.
inline lengths numbers_of_open(const ops::sentence_ends& ends, std::size_t width)
{
    std::vector<std::size_t> numbers(ends.real->batch());
    for (std::size_t b = 0; b < numbers.size(); ++b) numbers[b] = ends.step < (*ends.real)[b] ? width : 0;
    return lengths(std::move(numbers));
}

}  // namespace detail

/// A recurrent layer without gates.
///
///     h' = f(W x + U h + b)                       Elman 1990; f = tanh, or ops::relu
///
/// Equals PyTorch's nn.RNN and ONNX's RNN; b is the sum of their two biases.
template <class Matrix, class Vector, class Activation = std::remove_const_t<decltype(ops::tanh)>>
struct rnn {
    Matrix W;  // [X,H]
    Vector b;  // [H]
    Matrix U;  // [H,H]
    HEED_NO_UNIQUE_ADDRESS Activation activation{};

    auto project(const tensor auto& x) const { return ops::linear(x, W, b); }  // [...,X] -> [...,H]

    /// One step: projected [B,H], h [B,H] -> the next h [B,H]. A sentence that has ended keeps its state.
    auto step(const tensor auto& projected, const tensor auto& h, const ops::sentence_ends& ends = {}) const
    {
        if (ends.real == nullptr) return activation(ops::addmm(projected, h, U));
        const lengths open = detail::numbers_of_open(ends, shape_of(U)[0]);
        return ops::join_positions(activation(ops::addmm(ops::clear_padding(projected, open), h, U)), h, open);
    }

    /// The state with output h [B,H]: h itself.
    auto begin(tensor auto h) const { return h; }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::rnn{visit("W", self.W), visit("b", self.b), visit("U", self.U), self.activation};
    }
};

template <class Matrix, class Vector, class Matrix2, class Activation = std::remove_const_t<decltype(ops::tanh)>>
rnn(Matrix, Vector, Matrix2, Activation = {}) -> rnn<joint_tensor<Matrix, Matrix2>, Vector, Activation>;

/// Makes recurrent layers with this activation: `rnn_factory{ops::relu}`. U is drawn as by nn::make_gru.
template <class Activation = std::remove_const_t<decltype(ops::tanh)>>
struct rnn_factory {
    Activation activation{};

    auto operator()(const auto& init, const cell_sizes& n) const
    {
        auto W = init.glorot(n.input, n.hidden);
        return rnn{std::move(W), init.zeros(n.hidden), init.recurrent(1, n.hidden), activation};
    }
};
template <class Activation = std::remove_const_t<decltype(ops::tanh)>>
rnn_factory(Activation = {}) -> rnn_factory<Activation>;

}  // namespace heed::inline HEED_TARGET::nn
