// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/convolution.hpp>

/// The taped twins of ops/convolution.hpp.
namespace heed::ad {

/// y_i = [x_{i-w+1}; …; x_i]  ->  ∂x_k += its part of each ∂y_i
template <class T>
var<T, 3> twin(const ops::unfold_op& operation, const var<T, 3>& x, std::size_t width)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<3>(operation.result_shape(x.shape(), width), x.wanted());
    std::fill_n(out, y.size(), T(0));
    operation.each_place(x.shape(), width, [&x, out = out](std::size_t from, std::size_t to, std::size_t n) {
        std::copy_n(x.data() + from, n, out + to);
    });
    on.record(y, [&on, x, width](const T* d_y) {
        T* d_x = on.adjoint(x);
        ops::unfold_op::each_place(x.shape(), width, [d_x, d_y](std::size_t to, std::size_t from, std::size_t n) {
            kernels::add(n, d_x + to, d_y + from);
        });
    });
    return y;
}

/// y_j = Σ_k a_k x_k  ->  ∂x_k += a_k ∂y_j,  ∂a_k += ∂y_j · x_k
template <tensor X, tensor A>
auto twin(const ops::pool_windows_op& operation, const X& x_, const A& a_, std::size_t width)
{
    using T = element_of<X>;
    tape<T>& on = tape_of(x_, a_);
    const auto shape = operation.result_shape(shape_of(x_), shape_of(a_), width);
    const var<T, 3> x = on_tape(on, x_);
    const var<T, 2> a = on_tape(on, a_);
    auto [y, out] = on.template make<3>(shape, x.wanted() || a.wanted());
    operation.compute(shape, width, x.data(), a.data(), out);
    on.record(y, [&on, x, a, y = y, width](const T* d_y) {
        T* d_x = on.wanted_adjoint(x);
        T* d_a = on.wanted_adjoint(a);
        const std::size_t D = x.shape()[2];
        ops::pool_windows_op::each_pair(y.shape(), width, [&](std::size_t j, std::size_t k) {
            if (d_x != nullptr) kernels::add_scaled(D, d_x + k * D, a.data()[k], d_y + j * D);
            if (d_a != nullptr) d_a[k] += kernels::dot(D, d_y + j * D, x.data() + k * D);
        });
    });
    return y;
}

/// y[b,t,s] = x[b,s,t]  ->  ∂x[b,s,t] += ∂y[b,t,s]
template <class T>
var<T, 3> twin(const ops::transpose_op& operation, const var<T, 3>& x)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<3>({x.shape()[0], x.shape()[2], x.shape()[1]}, x.wanted());
    operation.each_number(x.shape(), [&x, out = out](std::size_t from, std::size_t to) { out[to] = x.data()[from]; });
    on.record(y, [&on, x](const T* d_y) {
        T* d_x = on.adjoint(x);
        ops::transpose_op::each_number(x.shape(),
                                       [d_x, d_y](std::size_t to, std::size_t from) { d_x[to] += d_y[from]; });
    });
    return y;
}

}  // namespace heed::ad
