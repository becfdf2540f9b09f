// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/products.hpp>
#include <heed/ops/recurrent.hpp>

/// The taped twins of ops/recurrent.hpp.
namespace heed::ad {

/// y = base + x W  ->  ∂base += ∂y,  ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y
template <tensor Y, tensor X, tensor M>
auto twin(const ops::linear_onto_op& operation, const Y& base_, const X& x_, const M& W_)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<X>;
    tape<T>& on = tape_of(base_, x_, W_);
    operation.check(shape_of(base_), shape_of(x_), shape_of(W_));
    const var<T, R> base = on_tape(on, base_), x = on_tape(on, x_);
    const var<T, 2> W = on_tape(on, W_);
    const std::size_t K = W.shape()[0], N = W.shape()[1], rows = N == 0 ? 0 : base.size() / N;
    auto [y, out] = on.template make<R>(base.shape(), base.wanted() || x.wanted() || W.wanted());
    std::copy_n(base.data(), base.size(), out);
    blas::gemm(blas::op::plain, blas::op::plain, rows, N, K, x.data(), W.data(), T(1), out);
    on.record(y, [&on, base, x, W, rows, K, N](const T* d_y) {
        if (T* d_base = on.wanted_adjoint(base)) kernels::add(base.size(), d_base, d_y);
        product_back(on, rows, K, N, x.slot(), W.slot(), d_y);
    });
    return y;
}

/// y[b,:] = x  ->  ∂x += Σ_b ∂y[b,:]
template <class T>
var<T, 2> twin(const ops::repeat_op&, const var<T, 1>& x, std::size_t batch)
{
    tape<T>& on = x.tape();
    const std::size_t n = x.size();
    auto [y, out] = on.template make<2>({batch, n}, x.wanted());
    for (std::size_t b = 0; b < batch; ++b) std::copy_n(x.data(), n, out + b * n);
    on.record(y, [&on, x, batch, n](const T* d_y) { kernels::add_columns(batch, n, on.adjoint(x), d_y); });
    return y;
}

/// h' = GRU(x, h)  ->  through blend, ∂(r ⊙ h) = ∂u_h U_hᵀ, gates, ∂h += ∂u_zr Uᵀ: see kernels/gru.hpp
template <tensor X, tensor S, tensor M>
auto twin(const ops::gru_op& operation, const X& inputs_, const S& hidden_, const M& U_, const M& U_h_,
          const ops::sentence_ends& ends)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<S>;
    tape<T>& on = tape_of(inputs_, hidden_, U_, U_h_);
    operation.check(shape_of(inputs_), shape_of(hidden_), shape_of(U_), shape_of(U_h_), ends);
    const var<T, R> inputs = on_tape(on, inputs_), hidden = on_tape(on, hidden_);
    const var<T, 2> U = on_tape(on, U_), U_h = on_tape(on, U_h_);
    const std::size_t B = operation.rows_of(hidden.shape()), H = hidden.shape()[R - 1];
    const bool wanted = inputs.wanted() || hidden.wanted() || U.wanted() || U_h.wanted();
    auto [next, out] = on.template make<R>(hidden.shape(), wanted);
    T* saved = on.memory().template array_of<T>(3 * B * H);
    T* reset_hidden = on.memory().template array_of<T>(B * H);
    const kernels::gru_step<T> step{
        B, H, inputs.data(), 3 * H, hidden.data(), ends.real == nullptr ? nullptr : on.keep(ends.data(), B), ends.step};
    {
        const auto before = on.memory().mark();
        T* recurrent = on.memory().template array_of<T>(2 * B * H);
        operation.compute(step, U.data(), U_h.data(), recurrent, saved, reset_hidden, out);
        on.memory().release(before);
    }
    on.record(next, [&on, inputs, hidden, U, U_h, saved, reset_hidden, step](const T* d_next) {
        const std::size_t rows = step.batch, width = step.width;
        // ∂a_z|∂a_r|∂a_h: the gradient of the inputs and of the products alike. It becomes the inputs' adjoint
        // where that is still empty, and must stay as it is either way: weight gradients wait for it.
        const bool owned = inputs.wanted() && inputs.slot().adjoint == nullptr && inputs.slot().whole == nullptr;
        T* d_sums = owned ? on.accumulate(inputs.slot()).data : on.memory().template array_of<T>(3 * rows * width);
        T* d_hidden = on.wanted_adjoint(hidden);
        kernels::gru_blend_backward(step, saved, d_next, d_sums, 3 * width, d_hidden);
        T* d_reset = on.memory().template array_of<T>(rows * width);
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

/// y_i = max(x_2i, x_2i+1)  ->  ∂x of the greater one += ∂y_i; of the first one if they are equal
template <class T, std::size_t R>
var<T, R> twin(const ops::maxout_op& operation, const var<T, R>& x)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<R>(operation.result_shape(x.shape()), x.wanted());
    for (std::size_t i = 0; i < y.size(); ++i) out[i] = std::max(x.data()[2 * i], x.data()[2 * i + 1]);
    on.record(y, [&on, x, y = y](const T* d_y) {
        T* d_x = on.adjoint(x);
        const T* from = x.data();
        for (std::size_t i = 0; i < y.size(); ++i) {
            const bool second = from[2 * i + 1] > from[2 * i];
            d_x[2 * i] += second ? T(0) : d_y[i];
            d_x[2 * i + 1] += second ? d_y[i] : T(0);
        }
    });
    return y;
}

}  // namespace heed::ad
