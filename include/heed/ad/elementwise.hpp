// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/elementwise.hpp>

/// The taped twins of ops/elementwise.hpp.
namespace heed::ad {

/// y = f(x)  ->  ∂x += f'(x) ∂y
template <class F, class T, std::size_t N>
var<T, N> twin(const ops::unary<F>&, const var<T, N>& x)
{
    tape<T>& on = x.tape();
    auto [y, out] = on.template make<N>(x.shape(), x.wanted());
    simd::parallel_transform(
        x.size(), out, [](auto v) { return F::template value<T>(v); }, x.data());
    on.record(y, [&on, x, y = y](const T* d_y) {
        T* d_x = on.adjoint(x);
        simd::parallel_transform(
            x.size(), d_x, [](auto sum, auto v, auto w, auto d) { return sum + F::template slope<T>(v, w, d); },
            static_cast<const T*>(d_x), x.data(), y.data(), d_y);
    });
    return y;
}

/// y = f(a, b)  ->  ∂a += ∂f/∂a ∂y,  ∂b += ∂f/∂b ∂y
template <class F, tensor A, tensor B>
auto twin(const ops::binary<F>& operation, const A& a_, const B& b_)
{
    using T = element_of<A>;
    constexpr std::size_t N = rank_of<A>;
    tape<T>& on = tape_of(a_, b_);
    operation.check(shape_of(a_), shape_of(b_));
    const var<T, N> a = on_tape(on, a_), b = on_tape(on, b_);
    auto [y, out] = on.template make<N>(a.shape(), a.wanted() || b.wanted());
    simd::parallel_transform(
        a.size(), out, [](auto u, auto v) { return F::template value<T>(u, v); }, a.data(), b.data());
    on.record(y, [&on, a, b, y = y](const T* d_y) {
        if (T* d_a = on.wanted_adjoint(a)) {
            simd::parallel_transform(
                a.size(), d_a,
                [](auto sum, auto u, auto v, auto w, auto d) { return sum + F::template slope_a<T>(u, v, w, d); },
                static_cast<const T*>(d_a), a.data(), b.data(), y.data(), d_y);
        }
        if (T* d_b = on.wanted_adjoint(b)) {
            simd::parallel_transform(
                b.size(), d_b,
                [](auto sum, auto u, auto v, auto w, auto d) { return sum + F::template slope_b<T>(u, v, w, d); },
                static_cast<const T*>(d_b), a.data(), b.data(), y.data(), d_y);
        }
    });
    return y;
}

/// y[b,t,:] = f(a[b,t,:], b[b,:])  ->  ∂a as above, ∂b[b,:] += Σ_t ∂f/∂b ∂y[b,t,:]
template <class F, tensor A, tensor B>
auto twin(const ops::binary_each<F>& operation, const A& a_, const B& b_)
{
    using T = element_of<A>;
    tape<T>& on = tape_of(a_, b_);
    operation.check(shape_of(a_), shape_of(b_));
    const var<T, 3> a = on_tape(on, a_);
    const var<T, 2> b = on_tape(on, b_);
    auto [y, out] = on.template make<3>(a.shape(), a.wanted() || b.wanted());
    const std::size_t rows = a.shape()[0], positions = a.shape()[1], width = a.shape()[2];
    const std::size_t grain = 1 + 65536 / (positions * width + 1);
    parallel_for(rows, grain, [&, out = out](std::size_t first, std::size_t last, std::size_t) {
        for (std::size_t i = first * positions; i < last * positions; ++i) {
            simd::transform(
                width, out + i * width, [](auto u, auto v) { return F::template value<T>(u, v); }, a.data() + i * width,
                b.data() + i / positions * width);
        }
    });
    on.record(y, [&on, a, b, y = y, rows, positions, width, grain](const T* d_y) {
        T* d_a = on.wanted_adjoint(a);
        T* d_b = on.wanted_adjoint(b);
        parallel_for(rows, grain, [&](std::size_t first, std::size_t last, std::size_t) {
            for (std::size_t i = first * positions; i < last * positions; ++i) {
                const T *u = a.data() + i * width, *v = b.data() + i / positions * width;
                const T *w = y.data() + i * width, *d = d_y + i * width;
                if (d_a != nullptr) {
                    T* to = d_a + i * width;
                    simd::transform(
                        width, to,
                        [](auto sum, auto p, auto q, auto r, auto s) {
                            return sum + F::template slope_a<T>(p, q, r, s);
                        },
                        static_cast<const T*>(to), u, v, w, d);
                }
                if (d_b != nullptr) {
                    T* to = d_b + i / positions * width;
                    simd::transform(
                        width, to,
                        [](auto sum, auto p, auto q, auto r, auto s) {
                            return sum + F::template slope_b<T>(p, q, r, s);
                        },
                        static_cast<const T*>(to), u, v, w, d);
                }
            }
        });
    });
    return y;
}

/// y = factor · x  ->  ∂x += factor · ∂y
template <class T, std::size_t N>
var<T, N> twin(const ops::scale_op&, const var<T, N>& x, double by)
{
    tape<T>& on = x.tape();
    const T factor = static_cast<T>(by);
    auto [y, out] = on.template make<N>(x.shape(), x.wanted());
    simd::parallel_transform(
        x.size(), out, [factor](auto v) { return v * factor; }, x.data());
    on.record(y, [&on, x, factor](const T* d_y) { kernels::add_scaled(x.size(), on.adjoint(x), factor, d_y); });
    return y;
}

}  // namespace heed::ad
