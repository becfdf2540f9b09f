// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/products.hpp>
#include <heed/ops/recurrent.hpp>

/// A recurrent unit on the tape: the gradients of its weights wait, as those of all products with a parameter do.
namespace heed::ad {

/// h' = GRU(x, h)  ->  through blend, ∂(r ⊙ h) = ∂u_h U_hᵀ, gates, ∂h += ∂u_zr Uᵀ: see kernels/gru.hpp
template <tensor X, tensor S, tensor M>
auto twin(const ops::gru_op& operation, const X& inputs_, const S& hidden_, const M& U_, const M& U_h_,
          const ops::sentence_ends& ends)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<S>;
    tape<T>& on = tape_of(inputs_, hidden_, U_, U_h_);
    const auto shape = operation.shape(ops::detail::argument(inputs_), ops::detail::argument(hidden_),
                                       ops::detail::argument(U_), ops::detail::argument(U_h_), ends);
    const var<T, R> inputs = on_tape(on, inputs_), hidden = on_tape(on, hidden_);
    const var<T, 2> U = on_tape(on, U_), U_h = on_tape(on, U_h_);
    const std::size_t B = ops::detail::rows_of(shape), H = shape[R - 1];
    const bool wanted = inputs.wanted() || hidden.wanted() || U.wanted() || U_h.wanted();
    auto [next, out] = on.template make<R>(shape, wanted);
    T* const saved =
        on.memory().template array_of<T>(operation.saved(inputs.value(), hidden.value(), U.value(), U_h.value(), ends));
    operation.forward(inputs.value(), hidden.value(), U.value(), U_h.value(), ends, tensor_view<T, R>{out, shape},
                      saved);
    const kernels::gru_step<T> step{
        B, H, inputs.data(), 3 * H, hidden.data(), ends.real == nullptr ? nullptr : on.keep(ends.data(), B), ends.step};
    on.record(next, [&on, inputs, hidden, U, U_h, saved, step](const T* d_next) {
        const std::size_t rows = step.batch, width = step.width;
        const T* const reset_hidden = saved + 3 * rows * width;
        // ∂a_z|∂a_r|∂a_h: the gradient of the inputs and of the products alike. It becomes the inputs' adjoint
        // where that is still empty, and must stay as it is either way: weight gradients wait for it.
        const bool owned = inputs.wanted() && inputs.slot().adjoint == nullptr && inputs.slot().whole == nullptr;
        T* d_sums = owned ? on.accumulate(inputs.slot()).data : on.memory().template array_of<T>(3 * rows * width);
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
        if (owned) inputs.slot().lent = true;  // others that use the inputs, too, must leave d_sums as it is
        if (!owned && inputs.wanted()) kernels::add(3 * rows * width, on.adjoint(inputs), d_sums);
    });
    return next;
}

}  // namespace heed::ad
