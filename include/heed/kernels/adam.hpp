// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>

#include <heed/kernels/update.hpp>
#include <heed/simd/simd.hpp>

/// Adam, each parameter touched once.
///
///     m = β1 m + (1 - β1) g,    v = β2 v + (1 - β2) g²,    m̂ = m / (1 - β1^t),    v̂ = v / (1 - β2^t)
///     θ = θ - rate · m̂ / (√v̂ + ε)                          Kingma & Ba 2015, algorithm 1 ·
///
/// With decoupled weight decay λ the parameters shrink first: θ ← (1 - rate · λ) θ, Loshchilov & Hutter 2019, algorithm
/// 2 (AdamW), with the rate inside as in PyTorch.
///
/// g is the given gradient times `scale`, so that clipping by norm needs no pass of its own.
namespace heed::kernels {

namespace detail {

template <class T>
struct adam_update;

}  // namespace detail

struct adam_settings {
    double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

    static constexpr const char* name = "adam";
    static constexpr std::size_t moments = 2;

    /// The update of step t, counted from 1, with gradients times `scale`.
    template <class T>
    detail::adam_update<T> update(std::size_t t, T scale) const
    {
        return {*this, t, scale};
    }
};

namespace detail {

/// The update's factors that depend on the step alone, in double.
template <class T>
struct adam_update {
    T beta1, fresh1, beta2, fresh2, rate, unbias2, epsilon, scale, kept;

    adam_update(const adam_settings& settings, std::size_t t, T gradient_scale, double decay = 0)
        : beta1(static_cast<T>(settings.beta1)),
          fresh1(static_cast<T>(1 - settings.beta1)),
          beta2(static_cast<T>(settings.beta2)),
          fresh2(static_cast<T>(1 - settings.beta2)),
          rate(static_cast<T>(settings.rate / (1 - std::pow(settings.beta1, static_cast<double>(t))))),
          unbias2(static_cast<T>(1 / std::sqrt(1 - std::pow(settings.beta2, static_cast<double>(t))))),
          epsilon(static_cast<T>(settings.epsilon)),
          scale(gradient_scale),
          kept(static_cast<T>(1 - settings.rate * decay))
    {}

    void operator()(std::size_t n, const T* gradient, moments_of<T> moments, T* parameters) const
    {
        using namespace simd;
        T *const m = moments.first, *const v = moments.second;
        const auto at = [&](std::size_t i, auto get, auto put) {
            const vec<T> g = get(gradient + i) * splat(scale);
            const vec<T> first = fma(splat(fresh1), g, splat(beta1) * get(m + i));
            const vec<T> second = fma(splat(fresh2) * g, g, splat(beta2) * get(v + i));
            put(m + i, first);
            put(v + i, second);
            const vec<T> size = fma(simd::sqrt(second), splat(unbias2), splat(epsilon));
            put(parameters + i, splat(kept) * get(parameters + i) - splat(rate) * first / size);
        };
        std::size_t i = 0;
        for (; i + lanes<T> <= n; i += lanes<T>) {
            at(
                i, [](const T* x) { return load(x); }, [](T* y, vec<T> x) { store(y, x); });
        }
        if (i < n) {
            const std::size_t count = n - i;
            at(
                i, [count](const T* x) { return load(x, count); }, [count](T* y, vec<T> x) { store(y, x, count); });
        }
    }
};

}  // namespace detail

/// One step of Adam on n parameters. t counts the steps from 1; m and v start as zeros.
template <class T>
void adam(std::size_t n, const adam_settings& settings, std::size_t t, T scale, const T* gradient, T* m, T* v,
          T* parameters)
{
    update_all(n, detail::adam_update<T>(settings, t, scale), gradient, {m, v}, parameters);
}

/// One step of Adam on some rows of a table [N,width] of embeddings: row rows[i] for i < count, all different.
///
/// Lazy: the other rows are not touched. Plain Adam would keep moving them by their old moments and let these decay;
/// here both wait until the row is seen again, and the bias correction counts all steps.
template <class T, class Index>
void adam_rows(std::size_t count, const Index* rows, std::size_t width, const adam_settings& settings, std::size_t t,
               T scale, const T* gradient, gradient_rows layout, T* m, T* v, T* parameters)
{
    update_rows(count, rows, width, detail::adam_update<T>(settings, t, scale), gradient, layout, {m, v}, parameters);
}

}  // namespace heed::kernels
