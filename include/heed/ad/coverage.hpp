// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/ops/coverage.hpp>

/// The taped twins of ops/coverage.hpp.
namespace heed::ad {

/// c' = GRU(y, α, c)  ->  see kernels::coverage_update_backward
template <tensor Y, tensor A, tensor W, tensor U, tensor C>
auto twin(const ops::coverage_gru_op& operation, const Y& word_, const A& weights_, const W& by_weight_,
          const U& products_, const C& coverage_)
{
    using T = element_of<C>;
    tape<T>& on = tape_of(word_, weights_, by_weight_, products_, coverage_);
    operation.check(shape_of(word_), shape_of(weights_), shape_of(by_weight_), shape_of(products_),
                    shape_of(coverage_));
    const var<T, 2> word = on_tape(on, word_), weights = on_tape(on, weights_);
    const var<T, 1> by_weight = on_tape(on, by_weight_);
    const var<T, 3> products = on_tape(on, products_), coverage = on_tape(on, coverage_);
    const auto [B, positions, N] = coverage.shape();
    const bool wanted =
        word.wanted() || weights.wanted() || by_weight.wanted() || products.wanted() || coverage.wanted();
    auto [next, out] = on.template make<3>(coverage.shape(), wanted);
    const kernels::coverage_step<T> step{
        B, positions, N, word.data(), weights.data(), by_weight.data(), products.data(), coverage.data()};
    {
        const auto before = on.memory().mark();
        kernels::coverage_update(step, on.memory().template array_of<T>(3 * B * N), out);
        on.memory().release(before);
    }
    on.record(next, [&on, word, weights, by_weight, products, coverage, step](const T* d_next) {
        const kernels::coverage_adjoints<T> into{on.wanted_adjoint(word), on.wanted_adjoint(weights),
                                                 on.wanted_adjoint(by_weight), on.wanted_adjoint(products),
                                                 on.wanted_adjoint(coverage)};
        const auto before = on.memory().mark();
        kernels::coverage_update_backward(step, d_next, into,
                                          on.memory().template array_of<T>(9 * step.batch * step.width));
        on.memory().release(before);
    });
    return next;
}

/// y[r,:] = k[r,:] + x[r] v  ->  ∂k += ∂y,  ∂x[r] += ∂y[r,:] · v,  ∂v += Σ_r x[r] ∂y[r,:]
template <tensor K, tensor X, tensor V>
auto twin(const ops::add_outer_op& operation, const K& keys_, const X& x_, const V& v_)
{
    using T = element_of<K>;
    tape<T>& on = tape_of(keys_, x_, v_);
    operation.check(shape_of(keys_), shape_of(x_), shape_of(v_));
    const var<T, 3> keys = on_tape(on, keys_);
    const var<T, 2> x = on_tape(on, x_);
    const var<T, 1> v = on_tape(on, v_);
    auto [y, out] = on.template make<3>(keys.shape(), keys.wanted() || x.wanted() || v.wanted());
    operation.compute(x.size(), v.size(), keys.data(), x.data(), v.data(), out);
    on.record(y, [&on, keys, x, v](const T* d_y) {
        const std::size_t n = v.size();
        if (T* d_k = on.wanted_adjoint(keys)) kernels::add(keys.size(), d_k, d_y);
        T* d_x = on.wanted_adjoint(x);
        T* d_v = on.wanted_adjoint(v);
        for (std::size_t r = 0; r < x.size(); ++r) {
            if (d_x != nullptr) d_x[r] += kernels::dot(n, d_y + r * n, v.data());
            if (d_v != nullptr) kernels::add_scaled(n, d_v, x.data()[r], d_y + r * n);
        }
    });
    return y;
}

/// y = C + α / Φ  ->  ∂C += ∂y,  ∂α += ∂y / Φ,  ∂Φ -= ∂y α / Φ²; where Φ counts as `least`, nothing for it
template <tensor C, tensor A, tensor F>
auto twin(const ops::add_share_op& operation, const C& coverage_, const A& weights_, const F& fertility_)
{
    using T = element_of<C>;
    tape<T>& on = tape_of(coverage_, weights_, fertility_);
    operation.check(shape_of(coverage_), shape_of(weights_), shape_of(fertility_));
    const var<T, 2> coverage = on_tape(on, coverage_), weights = on_tape(on, weights_),
                    fertility = on_tape(on, fertility_);
    auto [y, out] = on.template make<2>(coverage.shape(), coverage.wanted() || weights.wanted() || fertility.wanted());
    operation.compute(y.size(), coverage.data(), weights.data(), fertility.data(), out);
    on.record(y, [&on, coverage, weights, fertility, y = y](const T* d_y) {
        if (T* d_c = on.wanted_adjoint(coverage)) kernels::add(y.size(), d_c, d_y);
        T* d_w = on.wanted_adjoint(weights);
        T* d_f = on.wanted_adjoint(fertility);
        constexpr T least = T(ops::add_share_op::least);
        for (std::size_t i = 0; i < y.size(); ++i) {
            const T f = fertility.data()[i], by = std::max(f, least);
            if (d_w != nullptr) d_w[i] += d_y[i] / by;
            if (d_f != nullptr && f > least) d_f[i] -= d_y[i] * weights.data()[i] / (by * by);
        }
    });
    return y;
}

/// y[t,i] = x[t+i-k]  ->  ∂x[t+i-k] += ∂y[t,i]
template <class T>
var<T, 3> twin(const ops::neighbourhood_op& operation, const var<T, 2>& x, std::size_t reach)
{
    tape<T>& on = x.tape();
    const auto [B, positions] = x.shape();
    auto [y, out] = on.template make<3>({B, positions, 2 * reach + 1}, x.wanted());
    std::fill_n(out, y.size(), T(0));
    operation.each_position(x.shape(), reach, [&x, out = out](std::size_t from, std::size_t to, std::size_t n) {
        std::copy_n(x.data() + from, n, out + to);
    });
    on.record(y, [&on, x, reach](const T* d_y) {
        T* d_x = on.adjoint(x);
        ops::neighbourhood_op::each_position(x.shape(), reach, [&](std::size_t to, std::size_t from, std::size_t n) {
            kernels::add(n, d_x + to, d_y + from);
        });
    });
    return y;
}

/// y[t,n] = Σ_i F[n,i] x[t+i-k]  ->  ∂F[n,i] += Σ_t ∂y[t,n] x[t+i-k],  ∂x[t+i-k] += Σ_n ∂y[t,n] F[n,i]
template <tensor X, tensor M>
auto twin(const ops::convolve_op& operation, const X& x_, const M& filters_)
{
    using T = element_of<X>;
    tape<T>& on = tape_of(x_, filters_);
    operation.check(shape_of(filters_));
    const var<T, 2> x = on_tape(on, x_), filters = on_tape(on, filters_);
    const auto [B, positions] = x.shape();
    const auto [k, r] = filters.shape();
    auto [y, out] = on.template make<3>({B, positions, k}, x.wanted() || filters.wanted());
    {
        const auto before = on.memory().mark();
        operation.compute(x.shape(), filters.shape(), x.data(), filters.data(),
                          on.memory().template array_of<T>(positions + r - 1), out);
        on.memory().release(before);
    }
    on.record(y, [&on, x, filters, y = y](const T* d_y) {
        const auto [rows, T_, count] = y.shape();
        const std::size_t width = filters.shape()[1], padded = T_ + width - 1;
        T* d_x = on.wanted_adjoint(x);
        T* d_F = on.wanted_adjoint(filters);
        const auto before = on.memory().mark();
        T* around = on.memory().template array_of<T>(padded);
        T* d_around = on.memory().template array_of<T>(padded);
        for (std::size_t b = 0; b < rows; ++b) {
            ops::convolve_op::pad(T_, width / 2, x.data() + b * T_, around);
            std::fill_n(d_around, padded, T(0));
            for (std::size_t t = 0; t < T_; ++t) {
                for (std::size_t n = 0; n < count; ++n) {
                    const T d = d_y[(b * T_ + t) * count + n];
                    if (d_F != nullptr) kernels::add_scaled(width, d_F + n * width, d, around + t);
                    if (d_x != nullptr) kernels::add_scaled(width, d_around + t, d, filters.data() + n * width);
                }
            }
            if (d_x != nullptr) kernels::add(T_, d_x + b * T_, d_around + width / 2);
        }
        on.memory().release(before);
    });
    return y;
}

}  // namespace heed::ad
