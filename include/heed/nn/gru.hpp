// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/nn/factory.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>
#include <heed/ops/shape.hpp>

namespace heed::inline HEED_TARGET::nn {

/// Gated recurrent unit.
///
///     z  = σ(W_z x + U_z h + b_z),  r = σ(W_r x + U_r h + b_r)
///     h̃  = tanh(W_h x + U_h (r ⊙ h) + b_h)
///     h' = (1 − z) ⊙ h + z ⊙ h̃               Bahdanau et al. 2015, appendix A.1.1
///
/// In Cho et al. 2014, who introduced the unit, the roles of z and 1 − z are swapped. The reset gate acts on the state
/// before the product; in cuDNN it acts after. docs/learn/gru.md lists the conventions of other libraries and how to
/// convert their weights. Deviation: biases, which the paper omits from its equations.
template <class Matrix, class Vector>
struct gru {
    Matrix W;    // [X,3H], for z|r|h
    Vector b;    // [3H]
    Matrix U;    // [H,2H], for z|r
    Matrix U_h;  // [H,H]

    auto project(const tensor auto& x) const { return ops::linear(x, W, b); }  // [...,X] -> [...,3H]

    /// One step: projected [B,3H], h [B,H] -> the next h [B,H]. A sentence that has ended keeps its state.
    auto step(const tensor auto& projected, const tensor auto& h, const ops::sentence_ends& ends = {}) const
    {
        return ops::gru(projected, h, U, U_h, ends);
    }

    /// The state with output h [B,H]: h itself.
    auto begin(tensor auto h) const { return h; }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::gru{visit("W", self.W), visit("b", self.b), visit("U", self.U), visit("U_h", self.U_h)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Matrix3>
gru(Matrix, Vector, Matrix2, Matrix3) -> gru<joint_tensor<Matrix, Matrix2, Matrix3>, Vector>;

/// A new cell with inputs of size `input` and states of size `hidden`.
///
/// `recurrent` draws U_z, U_r and U_h one by one, each [H,H]: with nn::orthogonal<T>, they are initialized as in
/// Bahdanau et al. 2015 (appendix B.1). By default, glorot draws them, U_z and U_r as one matrix [H,2H].
template <class T>
auto make_gru(random_source& random, std::size_t input, std::size_t hidden, initializer<T> recurrent = nullptr)
{
    const initializers<T> init{random, recurrent};
    return gru{init.glorot(input, 3 * hidden), init.zeros(3 * hidden), init.recurrent(2, hidden),
               init.recurrent(1, hidden)};
}

/// Gated recurrent unit with the reset gate after the product, as in cuDNN and PyTorch's nn.GRU (seq2seq/torch.hpp).
///
///     z  = σ(W_z x + U_z h + b_z),  r = σ(W_r x + U_r h + b_r)
///     h̃  = tanh(W_h x + b_h + r ⊙ (U_h h + c_h))
///     h' = (1 − z) ⊙ h + z ⊙ h̃               NVIDIA cuDNN, CUDNN_GRU; Cho et al. 2014, first version on arXiv
///
/// The candidate has a second bias, c_h, inside the gate; second biases of z and r would be redundant. Deviation: z is
/// the share of the candidate, as in nn::gru; in cuDNN it is the share of the old state (docs/learn/gru.md). Each step
/// needs one product with the state, where nn::gru needs two in sequence.
template <class Matrix, class Vector>
struct gru_reset_after {
    Matrix W;    // [X,3H], for z|r|h
    Vector b;    // [3H]
    Matrix U;    // [H,3H], for z|r|h
    Vector c_h;  // [H]

    auto project(const tensor auto& x) const { return ops::linear(x, W, b); }  // [...,X] -> [...,3H]

    /// One step: projected [B,3H], h [B,H] -> the next h [B,H]. A sentence that has ended keeps its state.
    auto step(const tensor auto& projected, const tensor auto& h, const ops::sentence_ends& ends = {}) const
    {
        return ops::gru_reset_after(projected, h, U, c_h, ends);
    }

    /// The state with output h [B,H]: h itself.
    auto begin(tensor auto h) const { return h; }

    static auto parameters(auto& self, auto&& visit)
    {
        return nn::gru_reset_after{visit("W", self.W), visit("b", self.b), visit("U", self.U), visit("c_h", self.c_h)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Vector2>
gru_reset_after(Matrix, Vector, Matrix2, Vector2)
    -> gru_reset_after<joint_tensor<Matrix, Matrix2>, joint_tensor<Vector, Vector2>>;

/// A new cell with inputs of size `input` and states of size `hidden`. `recurrent` draws U_z, U_r and U_h one by one,
/// each [H,H], as for nn::make_gru; by default, glorot draws them as one matrix [H,3H].
template <class T>
auto make_gru_reset_after(random_source& random, std::size_t input, std::size_t hidden,
                          initializer<T> recurrent = nullptr)
{
    const initializers<T> init{random, recurrent};
    return gru_reset_after{init.glorot(input, 3 * hidden), init.zeros(3 * hidden), init.recurrent(3, hidden),
                           init.zeros(hidden)};
}

/// A learned state before the first word, the same for each sentence: [B,H].
template <class Vector>
struct trained_start {
    Vector value;  // [H]

    auto state(std::size_t batch, const tensor auto&) const { return ops::repeat(value, batch); }

    static auto parameters(auto& self, auto&& visit) { return nn::trained_start{visit("value", self.value)}; }
};

template <class Vector>
trained_start(Vector) -> trained_start<Vector>;

/// A zero state before the first word, [B,H].
struct zero_start {
    std::size_t hidden = 0;

    auto state(std::size_t batch, const tensor auto& beside) const
    {
        return constant_like(beside, shape_of_rank<2>{batch, hidden}, 0.0);
    }

    static auto parameters(auto& self, auto&&) { return nn::zero_start{self.hidden}; }
};

}  // namespace heed::inline HEED_TARGET::nn
