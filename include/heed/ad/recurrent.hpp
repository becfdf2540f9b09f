// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>

#include <heed/ad/products.hpp>
#include <heed/ops/recurrent.hpp>

/// A recurrent unit on the tape: the gradients of its weights wait, as those of all products with a parameter do.
namespace heed::ad {

/// Which sentences are over, as the way back needs it.
struct kept_ends {
    const std::size_t* lengths;  // [B], or null
    std::size_t step;
};
template <class T>
kept_ends kept(tape<T>& on, const ops::sentence_ends& ends)
{
    return {ends.real == nullptr ? nullptr : on.keep(ends.data(), ends.real->batch()), ends.step};
}

namespace detail {

/// Memory for ∂a of all gates, the gradient of the inputs and of the products alike. It becomes the inputs' adjoint
/// where that is still empty, and must stay as it is either way: weight gradients wait for it.
template <class T, std::size_t R>
class gate_gradient {
public:
    gate_gradient(tape<T>& on, const var<T, R>& inputs)
        : on_(on),
          inputs_(inputs),
          owned_(inputs.wanted() && inputs.slot().adjoint == nullptr && inputs.slot().whole == nullptr),
          data_(owned_ ? on.accumulate(inputs.slot()).data : on.memory().template array_of<T>(inputs.size()))
    {}

    T* data() const { return data_; }

    /// Once it is complete.
    void pass_on() const
    {
        if (owned_) {
            inputs_.slot().lent = true;  // others that use the inputs, too, must leave it as it is
        } else if (inputs_.wanted()) {
            kernels::add(inputs_.size(), on_.adjoint(inputs_), static_cast<const T*>(data_));
        }
    }

private:
    tape<T>& on_;
    const var<T, R>& inputs_;
    bool owned_;
    T* data_;
};

}  // namespace detail

/// h' = GRU(x, h)  ->  through blend, ∂(r ⊙ h) = ∂u_h U_hᵀ, gates, ∂h += ∂u_zr Uᵀ: see kernels/gru.hpp
template <class T, std::size_t R>
void go_back(const ops::gru_op&, tape<T>& on, const T* d_next, const T* saved, const var<T, R>& inputs,
             const var<T, R>& hidden, const var<T, 2>& U, const var<T, 2>& U_h, const kept_ends& ends)
{
    const std::size_t rows = ops::detail::rows_of(hidden.shape()), width = hidden.shape()[R - 1];
    const kernels::gru_step<T> step{rows, width, inputs.data(), 3 * width, hidden.data(), ends.lengths, ends.step};
    const T* const reset_hidden = saved + 3 * rows * width;
    const detail::gate_gradient<T, R> sums(on, inputs);  // ∂a_z|∂a_r|∂a_h
    T* const d_sums = sums.data();
    T* d_hidden = on.wanted_adjoint(hidden);
    kernels::gru_blend_backward(step, saved, d_next, d_sums, 3 * width, d_hidden);
    scratch here;
    T* const d_reset = here.take<T>(rows * width);
    blas::gemm(blas::op::plain, blas::op::transposed, rows, width, width, static_cast<const T*>(d_sums + 2 * width),
               3 * width, U_h.data(), width, T(0), d_reset, width);
    kernels::gru_gates_backward(step, saved, d_reset, d_sums, 3 * width, d_hidden);
    if (d_hidden != nullptr) {
        blas::gemm(blas::op::plain, blas::op::transposed, rows, width, 2 * width, static_cast<const T*>(d_sums),
                   3 * width, U.data(), 2 * width, T(1), d_hidden, width);
    }
    weight_back<T>(on, rows, width, 2 * width, step.hidden, U.slot(), d_sums, 3 * width);
    weight_back<T>(on, rows, width, width, reset_hidden, U_h.slot(), d_sums + 2 * width, 3 * width);
    sums.pass_on();
}

/// h' = GRU(x, h), its reset gate after the product  ->  gates, ∂h += ∂u Uᵀ: see kernels/gru_reset_after.hpp
template <class T, std::size_t R>
void go_back(const ops::gru_reset_after_op&, tape<T>& on, const T* d_next, const T* saved, const var<T, R>& inputs,
             const var<T, R>& hidden, const var<T, 2>& U, const var<T, 1>& c, const kept_ends& ends)
{
    const std::size_t rows = ops::detail::rows_of(hidden.shape()), width = hidden.shape()[R - 1];
    const kernels::gru_step<T> step{rows, width, inputs.data(), 3 * width, hidden.data(), ends.lengths, ends.step};
    const detail::gate_gradient<T, R> sums(on, inputs);  // ∂a_z|∂a_r|∂a_h
    // ∂a_z|∂a_r|∂p, which the weights' gradient waits with, too.
    T* const d_products = on.memory().template array_of<T>(rows * 3 * width);
    T* const d_hidden = on.wanted_adjoint(hidden);
    kernels::gru_reset_after_backward(step, saved, d_next, sums.data(), d_products, d_hidden);
    if (d_hidden != nullptr) {
        blas::gemm(blas::op::plain, blas::op::transposed, rows, width, 3 * width, static_cast<const T*>(d_products),
                   U.data(), T(1), d_hidden);
    }
    weight_back<T>(on, rows, width, 3 * width, step.hidden, U.slot(), d_products, 3 * width);
    if (T* const d_c = on.wanted_adjoint(c)) {
        for (std::size_t i = 0; i < rows; ++i) kernels::add(width, d_c, d_products + (3 * i + 2) * width);
    }
    sums.pass_on();
}

/// h', c' = LSTM(x, h, c)  ->  gates, ∂h += ∂a Uᵀ: see kernels/lstm.hpp
template <class T, std::size_t R>
void go_back(const ops::lstm_op&, tape<T>& on, const std::tuple<var<T, R>, var<T, R>>& results, const T* saved,
             const var<T, R>& inputs, const var<T, R>& hidden, const var<T, R>& cell, const var<T, 2>& U,
             const kept_ends& ends)
{
    const std::size_t rows = ops::detail::rows_of(hidden.shape()), width = hidden.shape()[R - 1];
    const kernels::lstm_step<T> step{rows, width, inputs.data(), hidden.data(), cell.data(), ends.lengths, ends.step};
    const detail::gate_gradient<T, R> sums(on, inputs);  // ∂a_i|∂a_f|∂a_o|∂a_g
    T* const d_sums = sums.data();
    T* const d_hidden = on.wanted_adjoint(hidden);
    kernels::lstm_backward(step, saved, on.reached(std::get<0>(results)), on.reached(std::get<1>(results)), d_sums,
                           d_hidden, on.wanted_adjoint(cell));
    if (d_hidden != nullptr) {
        blas::gemm(blas::op::plain, blas::op::transposed, rows, width, 4 * width, static_cast<const T*>(d_sums),
                   U.data(), T(1), d_hidden);
    }
    weight_back<T>(on, rows, width, 4 * width, step.hidden, U.slot(), d_sums, 4 * width);
    sums.pass_on();
}

}  // namespace heed::ad
