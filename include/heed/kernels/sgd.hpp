// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/kernels/update.hpp>
#include <heed/simd/simd.hpp>

/// Stochastic gradient descent.
///
///     θ = θ - rate · g                                      g: the given gradient times `scale`
///
/// With momentum μ and weight decay λ, Sutskever et al. 2013 in PyTorch's form:
///
///     g = g + λ θ,   m = μ m + g,   θ = θ - rate · m,  or of Nesterov  θ - rate · (g + μ m)
namespace heed::kernels {

namespace detail {

template <class T>
struct sgd_update {
    T factor;

    void operator()(std::size_t n, const T* gradient, moments_of<T>, T* parameters) const
    {
        simd::transform(
            n, parameters,
            [this](simd::vec<T> theta, simd::vec<T> g) { return simd::fma(simd::splat(-factor), g, theta); },
            static_cast<const T*>(parameters), gradient);
    }
};

/// m holds the momentum; it starts as zeros.
template <class T>
struct momentum_update {
    T rate, momentum, decay, scale;
    bool nesterov;

    void operator()(std::size_t n, const T* gradient, moments_of<T> moments, T* parameters) const
    {
        using namespace simd;
        T* const m = moments.first;
        const auto at = [&](std::size_t i, auto get, auto put) {
            const vec<T> theta = get(parameters + i);
            const vec<T> g = fma(splat(decay), theta, get(gradient + i) * splat(scale));
            const vec<T> moved = fma(splat(momentum), get(m + i), g);
            put(m + i, moved);
            const vec<T> step = nesterov ? fma(splat(momentum), moved, g) : moved;
            put(parameters + i, fma(splat(-rate), step, theta));
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

struct sgd_settings {
    double rate = 1;

    static constexpr const char* name = "sgd";
    static constexpr std::size_t moments = 0;

    template <class T>
    detail::sgd_update<T> update(std::size_t, T scale) const
    {
        return {static_cast<T>(rate) * scale};
    }
};

}  // namespace heed::kernels
