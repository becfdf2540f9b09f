// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/sampling.hpp>

/// The taped twins of ops/sampling.hpp.
namespace heed::ad {

/// A choice has no derivative.
template <class T, std::size_t R>
var<T, R> twin(const ops::greatest_op& operation, const var<T, R>& e, const lengths& real)
{
    real.require("greatest", e.shape()[0], e.shape()[1]);
    auto [y, out] = e.tape().template make<R>(e.shape(), false);
    operation.template compute<T>(e.shape(), real.data(), e.data(), out);
    return y;
}

/// Nor has a chance.
template <class T, std::size_t R>
var<T, R> twin(const ops::sample_op& operation, const var<T, R>& e, const lengths& real, std::uint64_t stream)
{
    real.require("sample", e.shape()[0], e.shape()[1]);
    auto [y, out] = e.tape().template make<R>(e.shape(), false);
    operation.template compute<T>(e.shape(), real.data(), stream, e.data(), out);
    return y;
}

/// y_j = log p_j where drawn, p = softmax(e)  ->  ∂e_k += [k drawn] ∂y_k − p_k Σ_{j drawn} ∂y_j
template <tensor E, tensor D>
auto twin(const ops::log_probability_op& operation, const E& e_, const D& drawn_, const lengths& real)
{
    using T = element_of<E>;
    constexpr std::size_t R = rank_of<E>;
    tape<T>& on = tape_of(e_, drawn_);
    operation.check(shape_of(e_), shape_of(drawn_), real);
    const var<T, R> e = on_tape(on, e_), drawn = on_tape(on, drawn_);
    auto [y, out] = on.template make<R>(e.shape(), e.wanted());
    T* p = on.memory().template array_of<T>(e.size());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    operation.template compute<T>(e.shape(), kept, e.data(), drawn.data(), p, out);
    on.record(y, [&on, e, drawn, p, kept](const T* d_y) {
        T* d_e = on.adjoint(e);
        const ops::detail::row_plan plan(e.shape(), kept);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            T* sum = memory.take<T>(plan.width);
            std::fill_n(sum, plan.width, T(0));
            const auto each = [&](auto&& f) {
                for (std::size_t t = 0; t < n; ++t) {
                    for (std::size_t d = 0; d < plan.width; ++d) f(at + t * plan.width + d, d);
                }
            };
            each([&](std::size_t i, std::size_t d) { sum[d] += drawn.data()[i] != T(0) ? d_y[i] : T(0); });
            each([&](std::size_t i, std::size_t d) {
                d_e[i] += (drawn.data()[i] != T(0) ? d_y[i] : T(0)) - p[i] * sum[d];
            });
        });
    });
    return y;
}

/// y_j = e_j − e_m + noise, e_m the greatest  ->  ∂e_j += ∂y_j − [j = m] Σ_k ∂y_k; nothing where e_j is -inf
template <class T, std::size_t R>
var<T, R> twin(const ops::perturb_op& operation, const var<T, R>& e, const lengths& real, std::uint64_t stream,
               double strength)
{
    tape<T>& on = e.tape();
    real.require("perturb", e.shape()[0], e.shape()[1]);
    auto [y, out] = on.template make<R>(e.shape(), e.wanted());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    const std::size_t width = ops::detail::row_plan(e.shape(), kept).width;
    auto* greatest = on.memory().template array_of<std::size_t>(e.shape()[0] * width);
    operation.template compute<T>(e.shape(), kept, stream, strength, e.data(), out, greatest);
    on.record(y, [&on, e, kept, greatest](const T* d_y) {
        T* d_e = on.adjoint(e);
        const ops::detail::row_plan plan(e.shape(), kept);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            T* sum = memory.take<T>(plan.width);
            std::fill_n(sum, plan.width, T(0));
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t d = 0; d < plan.width; ++d) {
                    const std::size_t i = at + t * plan.width + d;
                    if (e.data()[i] == -std::numeric_limits<T>::infinity()) continue;
                    d_e[i] += d_y[i];
                    sum[d] += d_y[i];
                }
            }
            for (std::size_t d = 0; d < plan.width; ++d) {
                const std::size_t m = greatest[b * plan.width + d];
                if (m < n) d_e[at + m * plan.width + d] -= sum[d];
            }
        });
    });
    return y;
}

/// y = value  ->  ∂soft += ∂y
template <tensor X, tensor Y>
auto twin(const ops::straight_through_op& operation, const X& value_, const Y& soft_)
{
    using T = element_of<X>;
    constexpr std::size_t R = rank_of<X>;
    tape<T>& on = tape_of(value_, soft_);
    operation.check(shape_of(value_), shape_of(soft_));
    const var<T, R> soft = on_tape(on, soft_);
    auto [y, out] = on.template make<R>(soft.shape(), soft.wanted());
    std::copy_n(view_of(value_).data, soft.size(), out);
    on.record(y, [&on, soft](const T* d_y) { kernels::add(soft.size(), on.adjoint(soft), d_y); });
    return y;
}

/// y_j = r k_j α_j  ->  ∂α_j += r k_j ∂y_j; to renormalise, r = Σ α / Σ k α and K = Σ k α:
///                      ∂α_j += r k_j ∂y_j + (1 − r k_j) / K · Σ_i k_i α_i ∂y_i
template <class T, std::size_t R>
var<T, R> twin(const ops::thin_op& operation, const var<T, R>& weights, const lengths& real, double p,
               std::uint64_t stream, bool renormalise)
{
    tape<T>& on = weights.tape();
    real.require("thin", weights.shape()[0], weights.shape()[1]);
    auto [y, out] = on.template make<R>(weights.shape(), weights.wanted());
    const std::size_t* kept = on.keep(real.data(), real.batch());
    auto* keep = on.memory().template array_of<std::uint8_t>(weights.size());
    T* scale =
        on.memory().template array_of<T>(weights.shape()[0] * ops::detail::row_plan(weights.shape(), kept).width);
    operation.template compute<T>(weights.shape(), kept, p, stream, renormalise, weights.data(), out, keep, scale);
    on.record(y, [&on, weights, kept, keep, scale, renormalise](const T* d_y) {
        const T* a = weights.data();
        T* d_a = on.adjoint(weights);
        const ops::detail::row_plan plan(weights.shape(), kept);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            const T* r = scale + b * plan.width;
            T *sum = memory.take<T>(plan.width), *pulled = memory.take<T>(plan.width);
            std::fill_n(sum, plan.width, T(0));
            std::fill_n(pulled, plan.width, T(0));
            const auto each = [&](auto&& f) {
                for (std::size_t t = 0; t < n; ++t) {
                    for (std::size_t d = 0; d < plan.width; ++d) f(at + t * plan.width + d, d);
                }
            };
            if (!renormalise) {
                each([&](std::size_t i, std::size_t d) { d_a[i] += keep[i] != 0 ? r[d] * d_y[i] : T(0); });
                return;
            }
            each([&](std::size_t i, std::size_t d) {
                if (keep[i] == 0) return;
                sum[d] += a[i];
                pulled[d] += a[i] * d_y[i];
            });
            each([&](std::size_t i, std::size_t d) {
                if (!(sum[d] > T(0))) return;  // all dropped: 0 whatever the weights are
                const T mean = pulled[d] / sum[d];
                d_a[i] += keep[i] != 0 ? mean + r[d] * (d_y[i] - mean) : mean;
            });
        });
    });
    return y;
}

}  // namespace heed::ad
