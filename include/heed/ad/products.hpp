// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/products.hpp>

/// The taped twins of ops/products.hpp.
namespace heed::ad {

/// ∂W += xᵀ ∂y for y = x W, with x [rows,K] and ∂y [rows,N] in rows of d_y_stride elements.
/// For a parameter W this waits until all its uses are known, see waiting_product; d_y must stay as it is until then.
template <class T>
void weight_back(tape<T>& on, std::size_t rows, std::size_t K, std::size_t N, const T* x, slot<T>& W, const T* d_y,
                 std::size_t d_y_stride)
{
    if (!W.wanted) return;
    if (W.leaf) {
        auto* use = on.memory().template array_of<waiting_product<T>>(1);
        *use = {x, d_y, rows, d_y_stride, W.products};
        W.products = use;
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
    const auto shape = operation.result_shape(shape_of(x_), shape_of(W_));
    (operation.check_bias(shape_of(W_), shape_of(b_)), ...);
    const var<T, R> x = on_tape(on, x_);
    const var<T, 2> W = on_tape(on, W_);
    const std::size_t K = W.shape()[0], N = W.shape()[1];
    std::size_t rows = 1;
    for (std::size_t axis = 0; axis + 1 < R; ++axis) rows *= shape[axis];
    if constexpr (sizeof...(V) == 0) {
        auto [y, out] = on.template make<R>(shape, x.wanted() || W.wanted());
        operation.template compute<T>(rows, K, N, x.data(), W.data(), nullptr, out);
        on.record(y, [&on, x, W, rows, K, N](const T* d_y) { product_back(on, rows, K, N, x.slot(), W.slot(), d_y); });
        return y;
    } else {
        const var<T, 1> b = on_tape(on, b_...);
        auto [y, out] = on.template make<R>(shape, x.wanted() || W.wanted() || b.wanted());
        operation.compute(rows, K, N, x.data(), W.data(), b.data(), out);
        on.record(y, [&on, x, W, b, rows, K, N](const T* d_y) {
            product_back(on, rows, K, N, x.slot(), W.slot(), d_y);
            if (T* d_b = on.wanted_adjoint(b)) kernels::add_columns(rows, N, d_b, d_y);
        });
        return y;
    }
}

/// y[r] = x[r,:] · v  ->  ∂x[r,:] += ∂y[r] v,  ∂v += Σ_r ∂y[r] x[r,:]
template <tensor X, tensor V>
auto twin(const ops::matvec_op& operation, const X& x_, const V& v_)
{
    using T = element_of<X>;
    tape<T>& on = tape_of(x_, v_);
    const auto shape = operation.result_shape(shape_of(x_), shape_of(v_));
    const var<T, 3> x = on_tape(on, x_);
    const var<T, 1> v = on_tape(on, v_);
    auto [y, out] = on.template make<2>(shape, x.wanted() || v.wanted());
    const std::size_t rows = y.size(), n = v.size();
    for (std::size_t r = 0; r < rows; ++r) out[r] = kernels::dot(n, x.data() + r * n, v.data());
    on.record(y, [&on, x, v, rows, n](const T* d_y) {
        T* d_x = on.wanted_adjoint(x);
        T* d_v = on.wanted_adjoint(v);
        for (std::size_t r = 0; r < rows; ++r) {
            if (d_y[r] == T(0)) continue;  // a masked position: whatever is there stays there
            if (d_x != nullptr) kernels::add_scaled(n, d_x + r * n, d_y[r], v.data());
            if (d_v != nullptr) kernels::add_scaled(n, d_v, d_y[r], x.data() + r * n);
        }
    });
    return y;
}

/// y[b,t] = q[b,:] · k[b,t,:]  ->  ∂q[b,:] += Σ_t ∂y[b,t] k[b,t,:],  ∂k[b,t,:] += ∂y[b,t] q[b,:]
template <tensor Q, tensor K>
auto twin(const ops::dot_each_op& operation, const Q& q_, const K& k_)
{
    using T = element_of<Q>;
    tape<T>& on = tape_of(q_, k_);
    const auto shape = operation.result_shape(shape_of(q_), shape_of(k_));
    const var<T, 2> q = on_tape(on, q_);
    const var<T, 3> k = on_tape(on, k_);
    auto [y, out] = on.template make<2>(shape, q.wanted() || k.wanted());
    const std::size_t rows = y.size(), positions = shape[1], n = q.shape()[1];
    for (std::size_t r = 0; r < rows; ++r) out[r] = kernels::dot(n, q.data() + r / positions * n, k.data() + r * n);
    on.record(y, [&on, q, k, rows, positions, n](const T* d_y) {
        T* d_q = on.wanted_adjoint(q);
        T* d_k = on.wanted_adjoint(k);
        for (std::size_t r = 0; r < rows; ++r) {
            if (d_y[r] == T(0)) continue;
            if (d_q != nullptr) kernels::add_scaled(n, d_q + r / positions * n, d_y[r], k.data() + r * n);
            if (d_k != nullptr) kernels::add_scaled(n, d_k + r * n, d_y[r], q.data() + r / positions * n);
        }
    });
    return y;
}

/// c[b,:] = Σ_t α[b,t] h[b,t,:]  ->  ∂α[b,t] += ∂c[b,:] · h[b,t,:],  ∂h[b,t,:] += α[b,t] ∂c[b,:]
template <tensor W, tensor H>
auto twin(const ops::weighted_sum_op& operation, const W& weights_, const H& values_)
{
    using T = element_of<H>;
    tape<T>& on = tape_of(weights_, values_);
    const auto shape = operation.result_shape(shape_of(weights_), shape_of(values_));
    const var<T, 2> weights = on_tape(on, weights_);
    const var<T, 3> values = on_tape(on, values_);
    auto [context, out] = on.template make<2>(shape, weights.wanted() || values.wanted());
    operation.compute(values.shape(), weights.data(), values.data(), out);
    on.record(context, [&on, weights, values](const T* d_c) {
        T* d_w = on.wanted_adjoint(weights);
        T* d_h = on.wanted_adjoint(values);
        const auto [B, positions, D] = values.shape();
        for (std::size_t r = 0; r < B * positions; ++r) {
            const T* d = d_c + r / positions * D;
            if (d_w != nullptr) d_w[r] += kernels::dot(D, d, values.data() + r * D);
            if (d_h != nullptr && weights.data()[r] != T(0)) {
                kernels::add_scaled(D, d_h + r * D, weights.data()[r], d);
            }
        }
    });
    return context;
}

/// c[b,d] = Σ_t α[b,t,d] h[b,t,d]  ->  ∂α[b,t,d] += ∂c[b,d] h[b,t,d],  ∂h[b,t,d] += ∂c[b,d] α[b,t,d]
template <tensor W, tensor H>
auto twin(const ops::elementwise_sum_op& operation, const W& weights_, const H& values_)
{
    using T = element_of<H>;
    tape<T>& on = tape_of(weights_, values_);
    const auto shape = operation.result_shape(shape_of(weights_), shape_of(values_));
    const var<T, 3> weights = on_tape(on, weights_), values = on_tape(on, values_);
    auto [context, out] = on.template make<2>(shape, weights.wanted() || values.wanted());
    operation.compute(values.shape(), weights.data(), values.data(), out);
    on.record(context, [&on, weights, values](const T* d_c) {
        T* d_w = on.wanted_adjoint(weights);
        T* d_h = on.wanted_adjoint(values);
        const auto [B, positions, D] = values.shape();
        const auto product = [](auto sum, auto d, auto x) { return sum + d * x; };
        for (std::size_t r = 0; r < B * positions; ++r) {
            const T* d = d_c + r / positions * D;
            if (d_w != nullptr) {
                simd::transform(D, d_w + r * D, product, static_cast<const T*>(d_w + r * D), d, values.data() + r * D);
            }
            if (d_h != nullptr) {
                simd::transform(D, d_h + r * D, product, static_cast<const T*>(d_h + r * D), d, weights.data() + r * D);
            }
        }
    });
    return context;
}

}  // namespace heed::ad
