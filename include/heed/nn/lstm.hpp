// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/gru.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>

namespace heed::inline HEED_TARGET::nn {

/// Long short-term memory.
///
///     i = σ(W_i x + U_i h + b_i),  f = σ(W_f x + U_f h + b_f),  o = σ(W_o x + U_o h + b_o)
///     g = tanh(W_g x + U_g h + b_g)
///     c' = f ⊙ c + i ⊙ g,  h' = o ⊙ tanh(c')
///
/// Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000, and without peephole connections. The
/// gates are stored in the order i|f|o|g; PyTorch's order is i|f|g|o. The state is an ops::lstm_state.
template <class Matrix, class Vector>
struct lstm {
    Matrix W;  // [X,4H], for i|f|o|g
    Vector b;  // [4H]
    Matrix U;  // [H,4H]

    auto project(const tensor auto& x) const { return ops::linear(x, W, b); }  // [...,X] -> [...,4H]

    /// One step: projected [B,4H] and the state (h and c, [B,H] each) -> the next state. A sentence that has ended
    /// keeps its state.
    auto step(const tensor auto& projected, const auto& state, const ops::sentence_ends& ends = {}) const
    {
        return ops::lstm(projected, state.hidden, state.cell, U, ends);
    }

    /// The state with output h [B,H] and cell 0.
    auto begin(tensor auto h) const
    {
        auto nothing = constant_like(h, shape_of(h), 0.0);
        return ops::lstm_state{std::move(h), std::move(nothing)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::lstm{visit("W", self.W), visit("b", self.b), visit("U", self.U)};
    }
};

template <class Matrix, class Vector, class Matrix2>
lstm(Matrix, Vector, Matrix2) -> lstm<joint_tensor<Matrix, Matrix2>, Vector>;

/// A new cell with inputs of size `input` and states of size `hidden`.
///
/// `recurrent` draws U_i, U_f, U_o and U_g one by one, each [H,H], as for nn::make_gru; by default, glorot draws them
/// as one matrix [H,4H]. `forget` is the initial bias of the forget gate: with 1, the cell keeps most of its contents
/// at the start of training (Jozefowicz et al. 2015).
template <class T>
auto make_lstm(random_source& random, std::size_t input, std::size_t hidden, initializer<T> recurrent = nullptr,
               double forget = 1)
{
    auto b = zeros<T>(4 * hidden);
    std::fill_n(b.data() + hidden, hidden, static_cast<T>(forget));
    const initializers<T> init{random, recurrent};
    return lstm{init.glorot(input, 4 * hidden), std::move(b), init.recurrent(4, hidden)};
}

}  // namespace heed::inline HEED_TARGET::nn
