// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/factory.hpp>
#include <heed/nn/rnn.hpp>
#include <heed/ops/broadcast.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>
#include <heed/ops/shape.hpp>

namespace heed::inline HEED_TARGET::nn {

/// Long short-term memory with peephole connections from the cell to the gates.
///
///     i = σ(W_i x + U_i h + p_i ⊙ c + b_i),  f = σ(W_f x + U_f h + p_f ⊙ c + b_f),  g = tanh(W_g x + U_g h + b_g)
///     c' = f ⊙ c + i ⊙ g
///     o = σ(W_o x + U_o h + p_o ⊙ c' + b_o),  h' = o ⊙ tanh(c')               Gers et al. 2002; Graves 2013, eq. 7-11
///
/// Equals ONNX's LSTM with P, which stores its gates as i|o|f|g; here they are i|f|o|g, as in nn::lstm. The state is an
/// ops::lstm_state.
template <class Matrix, class Vector>
struct peephole_lstm {
    Matrix W;    // [X,4H], for i|f|o|g
    Vector b;    // [4H]
    Matrix U;    // [H,4H]
    Vector p_i;  // [H]
    Vector p_f;  // [H]
    Vector p_o;  // [H]

    auto project(const tensor auto& x) const { return ops::linear(x, W, b); }  // [...,X] -> [...,4H]

    /// One step: projected [B,4H] and the state (h and c, [B,H] each) -> the next state. A sentence that has ended
    /// keeps its state.
    auto step(const tensor auto& projected, const auto& state, const ops::sentence_ends& ends = {}) const
    {
        if (ends.real == nullptr) return next(projected, state);
        const std::size_t H = shape_of(U)[0];
        const auto after = next(ops::clear_padding(projected, detail::numbers_of_open(ends, 4 * H)), state);
        const lengths open = detail::numbers_of_open(ends, H);
        return after.map([&](const auto& now, const auto& was) { return ops::join_positions(now, was, open); }, state);
    }

    /// The state with output h [B,H] and cell 0.
    auto begin(tensor auto h) const
    {
        auto nothing = constant_like(h, shape_of(h), 0.0);
        return ops::lstm_state{std::move(h), std::move(nothing)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::peephole_lstm{visit("W", self.W),     visit("b", self.b),     visit("U", self.U),
                                 visit("p_i", self.p_i), visit("p_f", self.p_f), visit("p_o", self.p_o)};
    }

private:
    auto next(const tensor auto& projected, const auto& state) const
    {
        const auto gates = ops::split_heads(ops::addmm(projected, state.hidden, U), 4);
        const auto gate = [&](std::size_t k, const auto& cell, const auto& p) {
            return ops::sigmoid(ops::add(gates[k], ops::multiply(cell, p)));
        };
        auto cell = ops::add(ops::multiply(gate(1, state.cell, p_f), state.cell),
                             ops::multiply(gate(0, state.cell, p_i), ops::tanh(gates[3])));
        auto hidden = ops::multiply(gate(2, cell, p_o), ops::tanh(cell));
        return ops::lstm_state{std::move(hidden), std::move(cell)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Vector2, class Vector3, class Vector4>
peephole_lstm(Matrix, Vector, Matrix2, Vector2, Vector3, Vector4)
    -> peephole_lstm<joint_tensor<Matrix, Matrix2>, joint_tensor<Vector, Vector2, Vector3, Vector4>>;

/// Makes peephole LSTMs: initially, p is 0 and the bias of the forget gate is 1; U is drawn as in nn::make_lstm.
struct peephole_lstm_factory {
    template <class T>
    auto operator()(const initializers<T>& init, const cell_sizes& n) const
    {
        const std::size_t H = n.hidden;
        auto W = init.glorot(n.input, 4 * H);
        auto b = init.zeros(4 * H);
        for (std::size_t k = H; k < 2 * H; ++k) b(k) = 1;
        return peephole_lstm{std::move(W),  std::move(b),  init.recurrent(4, H),
                             init.zeros(H), init.zeros(H), init.zeros(H)};
    }
};

}  // namespace heed::inline HEED_TARGET::nn
