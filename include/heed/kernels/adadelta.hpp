// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/kernels/update.hpp>
#include <heed/simd/simd.hpp>

/// AdaDelta: steps in the units of the parameters, without a learning rate.
///
///     G = ρ G + (1 - ρ) g²,   Δ = √(D + ε) / √(G + ε) · g,   D = ρ D + (1 - ρ) Δ²,   θ = θ - rate · Δ
///
/// Zeiler 2012, algorithm 1; there the rate is 1. g is the given gradient times `scale`; G and D start as zeros.
namespace heed::kernels {

namespace detail {

template <class T>
struct adadelta_update {
    T rho, epsilon, rate, scale;

    void operator()(std::size_t n, const T* gradient, moments_of<T> moments, T* parameters) const
    {
        using namespace simd;
        each_register<T>(n, [&](std::size_t i, std::size_t count) {
            const auto get = [i, count](const T* x) { return load_first(x + i, count); };
            const auto put = [i, count](T* x, vec<T> v) { store_first(x + i, v, count); };
            const vec<T> g = get(gradient) * splat(scale), old = get(moments.second), fresh = splat(T(1) - rho);
            const vec<T> squares = fma(fresh * g, g, splat(rho) * get(moments.first));
            const vec<T> step = simd::sqrt((old + splat(epsilon)) / (squares + splat(epsilon))) * g;
            put(moments.first, squares);
            put(moments.second, fma(fresh * step, step, splat(rho) * old));
            put(parameters, fma(splat(-rate), step, get(parameters)));
        });
    }
};

}  // namespace detail

struct adadelta_settings {
    double rho = 0.95, epsilon = 1e-6, rate = 1;

    static constexpr const char* name = "adadelta";
    static constexpr std::size_t moments = 2;

    template <class T>
    detail::adadelta_update<T> update(std::size_t, T scale) const
    {
        return {static_cast<T>(rho), static_cast<T>(epsilon), static_cast<T>(rate), scale};
    }
};

}  // namespace heed::kernels
