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
        bool joined = true;  // in memory the uses may follow each other
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
template <tensor X, tensor M, tensor... V>
    requires(sizeof...(V) <= 1)
auto twin(const ops::linear_op& operation, const X& x_, const M& W_, const V&... b_)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<X>;
    tape<T>& on = tape_of(x_, W_, b_...);
    const auto shape =
        operation.shape(ops::detail::argument(x_), ops::detail::argument(W_), ops::detail::argument(b_)...);
    const var<T, R> x = on_tape(on, x_);
    const var<T, 2> W = on_tape(on, W_);
    const std::size_t rows = ops::detail::rows_of(shape), K = W.shape()[0], N = W.shape()[1];
    if constexpr (sizeof...(V) == 0) {
        auto [y, out] = on.template make<R>(shape, x.wanted() || W.wanted());
        operation.forward(x.value(), W.value(), tensor_view<T, R>{out, shape});
        on.record(y, [&on, x, W, rows, K, N](const T* d_y) { product_back(on, rows, K, N, x.slot(), W.slot(), d_y); });
        return y;
    } else {
        const var<T, 1> b = on_tape(on, b_...);
        auto [y, out] = on.template make<R>(shape, x.wanted() || W.wanted() || b.wanted());
        operation.forward(x.value(), W.value(), b.value(), tensor_view<T, R>{out, shape});
        on.record(y, [&on, x, W, b, rows, K, N](const T* d_y) {
            product_back(on, rows, K, N, x.slot(), W.slot(), d_y);
            if (T* d_b = on.wanted_adjoint(b)) kernels::add_columns(rows, N, d_b, d_y);
        });
        return y;
    }
}

/// y = base + x W  ->  ∂base += ∂y,  ∂x += ∂y Wᵀ,  ∂W += xᵀ ∂y
template <tensor Y, tensor X, tensor M>
auto twin(const ops::linear_onto_op& operation, const Y& base_, const X& x_, const M& W_)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<X>;
    tape<T>& on = tape_of(base_, x_, W_);
    const auto shape =
        operation.shape(ops::detail::argument(base_), ops::detail::argument(x_), ops::detail::argument(W_));
    const var<T, R> base = on_tape(on, base_), x = on_tape(on, x_);
    const var<T, 2> W = on_tape(on, W_);
    const std::size_t rows = ops::detail::rows_of(shape), K = W.shape()[0], N = W.shape()[1];
    auto [y, out] = on.template make<R>(shape, base.wanted() || x.wanted() || W.wanted());
    operation.forward(base.value(), x.value(), W.value(), tensor_view<T, R>{out, shape});
    on.record(y, [&on, base, x, W, rows, K, N](const T* d_y) {
        if (T* d_base = on.wanted_adjoint(base)) kernels::add(base.size(), d_base, d_y);
        product_back(on, rows, K, N, x.slot(), W.slot(), d_y);
    });
    return y;
}

}  // namespace heed::ad
