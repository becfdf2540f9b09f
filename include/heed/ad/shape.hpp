// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/shape.hpp>

/// The taped twins of ops/shape.hpp: what went somewhere comes back from there.
namespace heed::ad {

/// y = [a; b]  ->  ∂a += ∂y[…, :N],  ∂b += ∂y[…, N:]
template <tensor A, tensor B>
auto twin(const ops::concat_op& operation, const A& a_, const B& b_)
{
    using T = element_of<A>;
    constexpr std::size_t R = rank_of<A>;
    tape<T>& on = tape_of(a_, b_);
    const auto shape = operation.result_shape(shape_of(a_), shape_of(b_));
    const var<T, R> a = on_tape(on, a_), b = on_tape(on, b_);
    auto [y, out] = on.template make<R>(shape, a.wanted() || b.wanted());
    const std::size_t n = a.shape()[R - 1], m = b.shape()[R - 1], rows = n + m == 0 ? 0 : y.size() / (n + m);
    T* to = out;
    for (std::size_t row = 0; row < rows; ++row) {
        to = std::copy_n(a.data() + row * n, n, to);
        to = std::copy_n(b.data() + row * m, m, to);
    }
    on.record(y, [&on, a, b, n, m, rows](const T* d_y) {
        T* d_a = on.wanted_adjoint(a);
        T* d_b = on.wanted_adjoint(b);
        for (std::size_t row = 0; row < rows; ++row) {
            if (d_a != nullptr) kernels::add(n, d_a + row * n, d_y + row * (n + m));
            if (d_b != nullptr) kernels::add(m, d_b + row * m, d_y + row * (n + m) + n);
        }
    });
    return y;
}

/// y = x[:, s, :]  ->  ∂x[:, s, :] += ∂y
template <class T>
var<T, 2> twin(const ops::step_of_op& operation, const var<T, 3>& x, std::size_t s)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<2>(operation.result_shape(x.shape(), s), x.wanted());
    const auto [B, S, N] = x.shape();
    for (std::size_t b = 0; b < B; ++b) std::copy_n(x.data() + (b * S + s) * N, N, out + b * N);
    on.record(y, [&on, x, s](const T* d_y) {
        T* d_x = on.adjoint(x);
        const auto [rows, steps, n] = x.shape();
        for (std::size_t b = 0; b < rows; ++b) kernels::add(n, d_x + (b * steps + s) * n, d_y + b * n);
    });
    return y;
}

/// y = x[i]: shares values and adjoints with x.
template <class T, std::size_t R>
var<T, R - 1> twin(const ops::block_op& operation, const var<T, R>& x, std::size_t i)
{
    const auto shape = operation.result_shape(x.shape(), i);
    return x.tape().piece(x, i * tensor_view<const T, R - 1>{nullptr, shape}.size(), shape);
}

/// y = (x_0, x_1, …)  ->  ∂x_i += ∂y[i]
template <class T, std::size_t R>
var<T, R + 1> twin(const ops::stack_op& operation, const std::vector<var<T, R>>& parts)
{
    const auto shape = operation.result_shape(parts);
    tape<T>& on = parts.front().tape();
    bool wanted = false;
    for (const auto& part : parts) wanted = wanted || part.wanted();
    auto [y, out] = on.template make<R + 1>(shape, wanted);
    T* to = out;
    for (const auto& part : parts) to = std::copy_n(part.data(), part.size(), to);
    if (wanted) {
        const var<T, R>* kept = on.keep(parts.data(), parts.size());
        on.record(y, [&on, kept, count = parts.size()](const T* d_y) {
            for (std::size_t i = 0; i < count; ++i) {
                if (T* d_x = on.wanted_adjoint(kept[i])) kernels::add(kept[i].size(), d_x, d_y + i * kept[i].size());
            }
        });
    }
    return y;
}

/// y[b,s] = x[s,b]  ->  ∂x[s,b] += ∂y[b,s]
template <class T>
var<T, 3> twin(const ops::swap_axes_op& operation, const var<T, 3>& x)
{
    tape<T>& on = x.tape();
    const auto shape = x.shape();
    auto [y, out] = on.template make<3>({shape[1], shape[0], shape[2]}, x.wanted());
    operation.template each_row<T>(
        shape, [&, out = out](std::size_t from, std::size_t to) { std::copy_n(x.data() + from, shape[2], out + to); });
    on.record(y, [&on, x](const T* d_y) {
        T* d_x = on.adjoint(x);
        ops::swap_axes_op::each_row<T>(
            x.shape(), [&](std::size_t from, std::size_t to) { kernels::add(x.shape()[2], d_x + from, d_y + to); });
    });
    return y;
}

/// y = x within the lengths, else 0  ->  ∂x += ∂y there
template <class T, std::size_t R>
var<T, R> twin(const ops::clear_padding_op& operation, const var<T, R>& x, const lengths& real)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<R>(x.shape(), x.wanted());
    operation.compute(x.shape(), real, x.data(), out);
    const std::size_t* kept = on.keep(real.data(), real.batch());
    on.record(y, [&on, x, kept](const T* d_y) {
        T* d_x = on.adjoint(x);
        const std::size_t B = x.shape()[0], positions = x.shape()[1], width = R == 3 ? x.shape()[R - 1] : 1;
        for (std::size_t b = 0; b < B; ++b) {
            kernels::add(kept[b] * width, d_x + b * positions * width, d_y + b * positions * width);
        }
    });
    return y;
}

/// y = x before the end of each row, else 0  ->  ∂x += ∂y there
template <class T>
var<T, 3> twin(const ops::clear_ended_op& operation, const var<T, 3>& x, const lengths& real)
{
    tape<T>& on = x.tape();
    real.require("clear_ended", x.shape()[1], x.shape()[0]);
    auto [y, out] = on.template make<3>(x.shape(), x.wanted());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    operation.template compute<T>(x.shape(), kept, x.data(), out);
    on.record(y, [&on, x, kept](const T* d_y) {
        T* d_x = on.adjoint(x);
        const auto [steps, B, N] = x.shape();
        for (std::size_t row = 0; row < steps * B; ++row) {
            if (row / B < kept[row % B]) kernels::add(N, d_x + row * N, d_y + row * N);
        }
    });
    return y;
}

/// y = Σ_n x[…,n]  ->  ∂x[…,n] += ∂y
template <class T, std::size_t R>
var<T, R - 1> twin(const ops::sum_last_op& operation, const var<T, R>& x)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<R - 1>(operation.result_shape(x.shape()), x.wanted());
    const std::size_t n = x.shape()[R - 1];
    for (std::size_t i = 0; i < y.size(); ++i) {
        T sum = 0;
        for (std::size_t k = 0; k < n; ++k) sum += x.data()[i * n + k];
        out[i] = sum;
    }
    on.record(y, [&on, x, y = y, n](const T* d_y) {
        T* d_x = on.adjoint(x);
        for (std::size_t i = 0; i < y.size(); ++i) {
            for (std::size_t k = 0; k < n; ++k) d_x[i * n + k] += d_y[i];
        }
    });
    return y;
}

/// y = Σ_i x_i c_i  ->  ∂x_i += c_i ∂y
template <class T, std::size_t R, plain_tensor C>
var<T, 0> twin(const ops::inner_op&, const var<T, R>& x, const C& c)
{
    tape<T>& on = x.tape();
    require_shape("inner", "the constants", shape_of(c), x.shape(), "one for each element");
    auto [y, out] = on.template make<0>({}, x.wanted());
    const T* constants = on.keep(view_of(c).data, x.size());
    T sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x.data()[i] * constants[i];
    *out = sum;
    on.record(y, [&on, x, constants](const T* d_y) { kernels::add_scaled(x.size(), on.adjoint(x), *d_y, constants); });
    return y;
}

}  // namespace heed::ad
