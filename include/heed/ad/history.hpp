// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/history.hpp>

/// The taped twins of ops/history.hpp.
namespace heed::ad {

/// y = e − β L  ->  ∂e += ∂y,  ∂L −= β ∂y where there is a history
template <tensor E, tensor H>
auto twin(const ops::discount_by_op& operation, const E& e_, const H& L_, double strength)
{
    using T = element_of<E>;
    constexpr std::size_t N = rank_of<E>;
    tape<T>& on = tape_of(e_, L_);
    operation.check(shape_of(e_), shape_of(L_));
    const var<T, N> e = on_tape(on, e_), L = on_tape(on, L_);
    const ops::functions::discount_by<T> f{static_cast<T>(strength)};
    auto [y, out] = on.template make<N>(e.shape(), e.wanted() || L.wanted());
    simd::parallel_transform(
        y.size(), out, [f](auto u, auto v) { return f.value(u, v); }, e.data(), L.data());
    on.record(y, [&on, e, L, y = y, f](const T* d_y) {
        if (T* d_e = on.wanted_adjoint(e)) kernels::add(y.size(), d_e, d_y);
        if (T* d_L = on.wanted_adjoint(L)) {
            simd::parallel_transform(
                y.size(), d_L, [f](auto sum, auto v, auto d) { return sum + f.slope_history(v, d); },
                static_cast<const T*>(d_L), L.data(), d_y);
        }
    });
    return y;
}

/// y = log(exp(L − δ) + exp(e))  ->  ∂L += exp(L − δ − y) ∂y,  ∂e += exp(e − y) ∂y
template <tensor H, tensor E>
auto twin(const ops::fade_op& operation, const H& L_, const E& e_, double decay)
{
    using T = element_of<E>;
    constexpr std::size_t N = rank_of<E>;
    tape<T>& on = tape_of(L_, e_);
    operation.check(shape_of(L_), shape_of(e_));
    const var<T, N> L = on_tape(on, L_), e = on_tape(on, e_);
    const ops::functions::fade<T> f{static_cast<T>(decay)};
    auto [y, out] = on.template make<N>(e.shape(), e.wanted() || L.wanted());
    simd::parallel_transform(
        y.size(), out, [f](auto u, auto v) { return f.value(u, v); }, L.data(), e.data());
    on.record(y, [&on, e, L, y = y, f](const T* d_y) {
        if (T* d_L = on.wanted_adjoint(L)) {
            simd::parallel_transform(
                y.size(), d_L,
                [f](auto sum, auto u, auto v, auto w, auto d) { return sum + f.slope_history(u, v, w, d); },
                static_cast<const T*>(d_L), L.data(), e.data(), y.data(), d_y);
        }
        if (T* d_e = on.wanted_adjoint(e)) {
            simd::parallel_transform(
                y.size(), d_e,
                [f](auto sum, auto u, auto v, auto w, auto d) { return sum + f.slope_scores(u, v, w, d); },
                static_cast<const T*>(d_e), L.data(), e.data(), y.data(), d_y);
        }
    });
    return y;
}

/// y = e + w x  ->  ∂e += ∂y,  ∂w += Σ x ∂y,  ∂x += w ∂y
template <tensor E, tensor W, tensor X>
auto twin(const ops::add_weighted_op& operation, const E& e_, const W& w_, const X& x_)
{
    using T = element_of<E>;
    constexpr std::size_t N = rank_of<E>;
    tape<T>& on = tape_of(e_, w_, x_);
    operation.check(shape_of(e_), shape_of(w_), shape_of(x_));
    const var<T, N> e = on_tape(on, e_), x = on_tape(on, x_);
    const var<T, 1> w = on_tape(on, w_);
    auto [y, out] = on.template make<N>(e.shape(), e.wanted() || w.wanted() || x.wanted());
    simd::parallel_transform(
        y.size(), out, [by = w.data()[0]](auto u, auto v) { return u + by * v; }, e.data(), x.data());
    on.record(y, [&on, e, w, x, y = y](const T* d_y) {
        if (T* d_e = on.wanted_adjoint(e)) kernels::add(y.size(), d_e, d_y);
        if (T* d_w = on.wanted_adjoint(w)) *d_w += kernels::dot(y.size(), x.data(), d_y);
        if (T* d_x = on.wanted_adjoint(x)) kernels::add_scaled(y.size(), d_x, w.data()[0], d_y);
    });
    return y;
}

}  // namespace heed::ad
