// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <heed/core/parameters.hpp>
#include <heed/nn/gru.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>

namespace heed::nn {

/// Gated recurrent unit whose reset gate acts after the product, as in cuDNN and PyTorch's nn.GRU, whose weights it can
/// take (seq2seq/torch.hpp).
///
///     z  = σ(W_z x + U_z h + b_z),  r = σ(W_r x + U_r h + b_r)
///     h̃  = tanh(W_h x + b_h + r ⊙ (U_h h + c_h))
///     h' = (1 − z) ⊙ h + z ⊙ h̃               NVIDIA cuDNN, CUDNN_GRU; Cho et al. 2014, first version on arXiv
///
/// The candidate has a second bias, c_h, inside of the gate; those of z and r would only add up. Deviation: z is the
/// share of the candidate, as in nn::gru; cuDNN's is that of the old state (docs/gru.md). One product with the state
/// per step, where nn::gru has two, one after the other.
template <class Matrix, class Vector>
struct gru_reset_after {
    Matrix W;    // [X,3H], for z|r|h
    Vector b;    // [3H]
    Matrix U;    // [H,3H], for z|r|h
    Vector c_h;  // [H]

    auto project(const tensor auto& x) const { return ops::linear(x, W, b); }  // [...,X] -> [...,3H]

    /// projected [B,3H], h [B,H] -> [B,H]. A sentence that has ended keeps its state.
    auto step(const tensor auto& projected, const tensor auto& h, const ops::sentence_ends& ends = {}) const
    {
        return ops::gru_reset_after(projected, h, U, c_h, ends);
    }

    /// The state whose output is h [B,H]: h itself.
    auto begin(tensor auto h) const { return h; }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::gru_reset_after{visit("W", self.W), visit("b", self.b), visit("U", self.U), visit("c_h", self.c_h)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Vector2>
gru_reset_after(Matrix, Vector, Matrix2, Vector2)
    -> gru_reset_after<joint_tensor<Matrix, Matrix2>, joint_tensor<Vector, Vector2>>;

/// A new unit from inputs of size `input` to states of size `hidden`. `recurrent` draws U_z, U_r and U_h one by one,
/// each [H,H], as for nn::make_gru; without it they are drawn by glorot as one matrix [H,3H].
template <class T>
auto make_gru_reset_after(random_source& random, std::size_t input, std::size_t hidden,
                          initializer<T> recurrent = nullptr)
{
    return gru_reset_after{glorot<T>(random, input, 3 * hidden), zeros<T>(3 * hidden),
                           detail::recurrent_gates<T>(random, 3, hidden, recurrent), zeros<T>(hidden)};
}

/// Makes these units, for encoders and decoders that are made new (nn/cells.hpp).
struct new_gru_reset_after {
    template <class T>
    auto make(random_source& random, std::size_t input, std::size_t hidden, initializer<T> recurrent) const
    {
        return make_gru_reset_after<T>(random, input, hidden, recurrent);
    }
};

}  // namespace heed::nn
