// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>

#include <heed/ad/operation.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/losses.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/recurrent.hpp>

/// Products with a parameter, with a deferred gradient: a recurrent weight gets one product for all time steps.
namespace heed::inline HEED_TARGET::ad {

/// The uses of a matrix W [K,N] in y = x W. Their terms of ∂W, xᵀ ∂y, are deferred until all uses are known.
template <class T>
struct waiting_products : deferred<T> {
    struct use {
        const T* x;    // [rows,K]
        const T* d_y;  // [rows,N], must not change until then
        std::size_t rows;
        std::size_t d_y_stride;  // stride of rows of d_y: N, or more if d_y is part of wider rows
        use* next;
    };

    std::size_t K, N;
    use* uses = nullptr;  // in reverse order

    waiting_products(std::size_t rows, std::size_t columns) : K(rows), N(columns) {}

    /// ∂W += Σ xᵀ ∂y, as one product.
    static void flush(tape<T>& on, slot<T>& s, deferred<T>& self)
    {
        const auto& waiting = static_cast<const waiting_products&>(self);
        const std::size_t K = waiting.K, N = waiting.N;
        const use* const uses = waiting.uses;
        if (s.size == 0) return;
        const auto into = on.accumulate(s);
        const arena::position before = on.memory().mark();
        std::size_t rows = 0;
        bool joined = true;  // can the uses be contiguous in memory?
        for (const use* p = uses; p != nullptr; p = p->next) {
            rows += p->rows;
            joined = joined && p->d_y_stride == N &&
                     (p->next == nullptr ||
                      (p->next->x + p->next->rows * K == p->x && p->next->d_y + p->next->rows * N == p->d_y));
        }
        const T* x = uses->x;
        const T* d_y = uses->d_y;
        if (joined) {
            for (const use* p = uses; p != nullptr; p = p->next) x = p->x, d_y = p->d_y;
        } else {
            T* all_x = on.memory().template array_of<T>(rows * K);
            T* all_d_y = on.memory().template array_of<T>(rows * N);
            x = all_x;
            d_y = all_d_y;
            for (const use* p = uses; p != nullptr; p = p->next) {
                all_x = std::copy_n(p->x, p->rows * K, all_x);
                for (std::size_t r = 0; r < p->rows; ++r) {
                    all_d_y = std::copy_n(p->d_y + r * p->d_y_stride, N, all_d_y);
                }
            }
        }
        blas::gemm(blas::op::transposed, blas::op::plain, K, N, rows, x, d_y, into.beta, into.data);
        on.memory().release(before);
    }
};

/// ∂W += xᵀ ∂y for y = x W, with x [rows,K] and ∂y [rows,N] in rows of d_y_stride elements.
template <class T>
void weight_back(tape<T>& on, std::size_t rows, std::size_t K, std::size_t N, const T* x, slot<T>& W, const T* d_y,
                 std::size_t d_y_stride)
{
    if (!W.wanted) return;
    if (W.leaf) {
        auto& waiting = on.template defer<waiting_products<T>>(W, K, N);
        using use = typename waiting_products<T>::use;
        waiting.uses = new (on.memory().allocate(sizeof(use))) use{x, d_y, rows, d_y_stride, waiting.uses};
    } else {
        const auto into = on.accumulate(W);
        blas::gemm(blas::op::transposed, blas::op::plain, K, N, rows, x, K, d_y, d_y_stride, into.beta, into.data, N);
    }
}

/// Backward of y = x W for rows of x:  ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y.
template <class T>
void product_back(tape<T>& on, std::size_t rows, std::size_t K, std::size_t N, slot<T>& x, slot<T>& W, const T* d_y)
{
    if (x.wanted) {
        const auto into = on.accumulate(x);
        blas::gemm(blas::op::plain, blas::op::transposed, rows, K, N, d_y, W.value, into.beta, into.data);
    }
    weight_back(on, rows, K, N, x.value, W, d_y, N);
}

/// y = x W (+ b)  ->  ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y,  ∂b += Σ_rows ∂y
template <class T, std::size_t R, class... Bias>
void go_back(const ops::linear_op&, tape<T>& on, const T* d_y, const var<T, R>& x, const var<T, 2>& W, const Bias&... b)
{
    const std::size_t rows = ops::detail::rows_of(x.shape()), K = W.shape()[0], N = W.shape()[1];
    product_back(on, rows, K, N, x.slot(), W.slot(), d_y);
    [[maybe_unused]] const auto add_to = [&](T* d_b) {
        if (d_b != nullptr) kernels::add_columns(rows, N, d_b, d_y);
    };
    (add_to(on.wanted_adjoint(b)), ...);
}

/// y = base + x W  ->  ∂base += ∂y,  ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y
template <class T, std::size_t R>
void go_back(const ops::addmm_op&, tape<T>& on, const T* d_y, const var<T, R>& base, const var<T, R>& x,
             const var<T, 2>& W)
{
    if (T* d_base = on.wanted_adjoint(base)) kernels::add(base.size(), d_base, d_y);
    product_back(on, ops::detail::rows_of(x.shape()), W.shape()[0], W.shape()[1], x.slot(), W.slot(), d_y);
}

/// loss = Σ_r weight_r (−log softmax(x_r W + b)[target_r])
///   ->  ∂logits = weight (softmax − q) ∂loss,  ∂x += ∂logits Wᵀ,  ∂W += xᵀ ∂logits,  ∂b += Σ_r ∂logits
/// The gradient of the logits overwrites them as soon as the loss is known.
template <class T>
var<T, 0> twin(const ops::cross_entropy_op& operation, const var<T, 3>& x, const var<T, 2>& W, const var<T, 1>& b,
               const ops::expected_words<T>& targets, double smoothing)
{
    tape<T>& on = x.tape();
    (void)on.mine(W);
    (void)on.mine(b);
    operation.shape(x.value(), W.value(), b.value(), targets.view(), smoothing);
    auto [loss, out] = on.template make<0>({}, detail::any_wanted(x, W, b));
    const std::size_t rows = targets.words.ids.size(), N = W.shape()[0], V = W.shape()[1];
    if (!loss.wanted()) {
        operation.forward(x.value(), W.value(), b.value(), targets.view(), smoothing, tensor_view<T, 0>{out, {}});
        return loss;
    }
    T* const logits = on.memory().template array_of<T>(rows * V);
    scratch here;
    T* const losses = here.take<T>(rows);
    ops::linear_op::forward(x.value(), W.value(), tensor_view<T, 3>{logits, {x.shape()[0], x.shape()[1], V}});
    *out = static_cast<T>(kernels::cross_entropy_in_place(rows, V, logits, targets.words.ids.data(),
                                                          targets.weights.data(), static_cast<T>(smoothing), losses,
                                                          b.data()));
    on.record(loss, [&on, x, W, b, logits, rows, N, V](const T* d_loss) {
        if (*d_loss != T(1)) {
            const T factor = *d_loss;
            simd::parallel_transform(
                rows * V, logits, [factor](auto g) { return g * factor; }, static_cast<const T*>(logits));
        }
        product_back<T>(on, rows, N, V, x.slot(), W.slot(), logits);
        if (T* d_b = on.wanted_adjoint(b)) {
            parallel_for(
                V, std::size_t{1} << 10,
                [&](std::size_t first, std::size_t last, std::size_t) {
                    kernels::add_in_blocks(rows, last - first, d_b + first,
                                           [=](std::size_t begin, std::size_t end, T* to) {
                                               for (std::size_t r = begin; r < end; ++r)
                                                   kernels::add(last - first, to, logits + r * V + first);
                                           });
                },
                16);
        }
    });
    return loss;
}

/// Cross-entropy of dual numbers with weights that are plain numbers.
template <dual_element T>
var<T, 0> twin(const ops::cross_entropy_op& operation, const var<T, 3>& x, const var<T, 2>& W, const var<T, 1>& b,
               const ops::expected_words<plain_number<T>>& targets, double smoothing)
{
    return twin(operation, x, W, b,
                ops::expected_words<T>{targets.words, {targets.weights.begin(), targets.weights.end()}}, smoothing);
}

/// Which sentences have ended; stored for the backward pass.
struct kept_ends {
    const std::size_t* lengths;  // [B], or null
    std::size_t step;
};
kept_ends kept(auto& on, const ops::sentence_ends& ends)
{
    return {ends.real == nullptr ? nullptr : on.keep(ends.data(), ends.real->batch()), ends.step};
}

namespace detail {

/// Memory for ∂a of all gates, the gradient of both the inputs and the products. It becomes the inputs' adjoint if that
/// is empty. Either way it must not change: deferred weight gradients read it.
template <class T, std::size_t R>
struct gate_gradient {
    tape<T>& on;
    const var<T, R>& inputs;
    bool owned = inputs.wanted() && inputs.slot().adjoint == nullptr && inputs.slot().whole == nullptr;
    T* data = owned ? on.accumulate(inputs.slot()).data : on.memory().template array_of<T>(inputs.size());

    /// Passes the complete gradient to the inputs.
    void pass_on() const
    {
        if (owned) {
            inputs.slot().aliased = true;  // other uses of the inputs must not change it
        } else if (inputs.wanted()) {
            kernels::add(inputs.size(), on.adjoint(inputs), static_cast<const T*>(data));
        }
    }
};

}  // namespace detail

/// h' = GRU(x, h)  ->  blend, ∂(r ⊙ h) = ∂u_h U_hᵀ, gates, ∂h += ∂u_zr Uᵀ: see kernels/recurrent.hpp
template <class T, std::size_t R>
void go_back(const ops::gru_op&, tape<T>& on, const T* d_next, const T* saved, const var<T, R>& inputs,
             const var<T, R>& hidden, const var<T, 2>& U, const var<T, 2>& U_h, const kept_ends& ends)
{
    const std::size_t rows = ops::detail::rows_of(hidden.shape()), width = hidden.shape()[R - 1];
    const kernels::gru_step<T> step{rows, width, inputs.data(), 3 * width, hidden.data(), ends.lengths, ends.step};
    const T* const reset_hidden = saved + 3 * rows * width;
    const detail::gate_gradient<T, R> sums{on, inputs};  // ∂a_z|∂a_r|∂a_h
    T* const d_sums = sums.data;
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

/// h' = GRU(x, h), its reset gate after the product  ->  gates, ∂h += ∂u Uᵀ: see kernels/recurrent.hpp
template <class T, std::size_t R>
void go_back(const ops::gru_reset_after_op&, tape<T>& on, const T* d_next, const T* saved, const var<T, R>& inputs,
             const var<T, R>& hidden, const var<T, 2>& U, const var<T, 1>& c, const kept_ends& ends)
{
    const std::size_t rows = ops::detail::rows_of(hidden.shape()), width = hidden.shape()[R - 1];
    const kernels::gru_step<T> step{rows, width, inputs.data(), 3 * width, hidden.data(), ends.lengths, ends.step};
    const detail::gate_gradient<T, R> sums{on, inputs};  // ∂a_z|∂a_r|∂a_h
    // ∂a_z|∂a_r|∂p, also read by the deferred gradient of the weights.
    T* const d_products = on.memory().template array_of<T>(rows * 3 * width);
    kernels::gru_reset_after_backward(step, saved, d_next, sums.data, d_products, on.wanted_adjoint(hidden));
    product_back<T>(on, rows, width, 3 * width, hidden.slot(), U.slot(), d_products);
    if (T* const d_c = on.wanted_adjoint(c)) {
        for (std::size_t i = 0; i < rows; ++i) kernels::add(width, d_c, d_products + (3 * i + 2) * width);
    }
    sums.pass_on();
}

/// h', c' = LSTM(x, h, c)  ->  gates, ∂h += ∂a Uᵀ: see kernels/recurrent.hpp
template <class T, std::size_t R>
void go_back(const ops::lstm_op&, tape<T>& on, const std::tuple<var<T, R>, var<T, R>>& results, const T* saved,
             const var<T, R>& inputs, const var<T, R>& hidden, const var<T, R>& cell, const var<T, 2>& U,
             const kept_ends& ends)
{
    const std::size_t rows = ops::detail::rows_of(hidden.shape()), width = hidden.shape()[R - 1];
    const kernels::lstm_step<T> step{rows, width, inputs.data(), hidden.data(), cell.data(), ends.lengths, ends.step};
    const detail::gate_gradient<T, R> sums{on, inputs};  // ∂a_i|∂a_f|∂a_o|∂a_g
    kernels::lstm_backward(step, saved, on.reached(std::get<0>(results)), on.reached(std::get<1>(results)), sums.data,
                           on.wanted_adjoint(hidden), on.wanted_adjoint(cell));
    product_back<T>(on, rows, width, 4 * width, hidden.slot(), U.slot(), sums.data);
    sums.pass_on();
}

}  // namespace heed::inline HEED_TARGET::ad
