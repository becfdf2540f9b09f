// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/products.hpp>

/// Products with a parameter, whose gradient waits: a recurrent weight gets one product for all time steps instead of
/// one per step.
namespace heed::ad {

/// The uses of a matrix W [K,N] in y = x W. What each adds to ∂W, xᵀ ∂y, waits until all of them are known.
template <class T>
struct waiting_products : deferred<T> {
    struct use {
        const T* x;    // [rows,K]
        const T* d_y;  // [rows,N], which must stay as it is until then
        std::size_t rows;
        std::size_t d_y_stride;  // from a row of d_y to the next: N, or more where d_y is a part of wider rows
        use* next;
    };

    std::size_t K, N;
    use* uses = nullptr;  // the last one first

    waiting_products(std::size_t rows, std::size_t columns) : K(rows), N(columns) {}

    /// ∂W += Σ xᵀ ∂y, as one product.
    static void settle(tape<T>& on, slot<T>& s, deferred<T>& self)
    {
        const auto& waiting = static_cast<const waiting_products&>(self);
        const std::size_t K = waiting.K, N = waiting.N;
        const use* const uses = waiting.uses;
        if (s.size == 0) return;
        const auto into = on.accumulate(s);
        const arena::position before = on.memory().mark();
        std::size_t rows = 0;
        bool joined = true;  // the uses may be contiguous in memory
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
        auto* use = on.memory().template array_of<typename waiting_products<T>::use>(1);
        *use = {x, d_y, rows, d_y_stride, waiting.uses};
        waiting.uses = use;
    } else {
        const auto into = on.accumulate(W);
        blas::gemm(blas::op::transposed, blas::op::plain, K, N, rows, x, K, d_y, d_y_stride, into.beta, into.data, N);
    }
}

/// Going back through y = x W for rows of x:  ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y.
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
void go_back(const ops::linear_onto_op&, tape<T>& on, const T* d_y, const var<T, R>& base, const var<T, R>& x,
             const var<T, 2>& W)
{
    if (T* d_base = on.wanted_adjoint(base)) kernels::add(base.size(), d_base, d_y);
    product_back(on, ops::detail::rows_of(x.shape()), W.shape()[0], W.shape()[1], x.slot(), W.slot(), d_y);
}

}  // namespace heed::ad
