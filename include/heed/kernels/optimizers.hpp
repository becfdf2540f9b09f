// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>

#include <heed/core/parallel.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// Updates of parameters by their gradients. g is the given gradient times `scale`, so that clipping by norm needs no
/// pass of its own; moments start as zeros.
///
///     SGD        θ = θ - rate · g
///     momentum   g = g + λ θ,   m = μ m + g,   θ = θ - rate · m,  or of Nesterov  θ - rate · (g + μ m)
///     Adam       m = β1 m + (1 - β1) g,    v = β2 v + (1 - β2) g²,    m̂ = m / (1 - β1^t),    v̂ = v / (1 - β2^t)
///                θ = θ - rate · m̂ / (√v̂ + ε)
///     AdaDelta   G = ρ G + (1 - ρ) g²,   Δ = √(D + ε) / √(G + ε) · g,   D = ρ D + (1 - ρ) Δ²,   θ = θ - rate · Δ
///
/// Momentum: Sutskever et al. 2013 in PyTorch's form, with weight decay λ. Adam: Kingma & Ba 2015, algorithm 1; with
/// decoupled weight decay λ the parameters shrink first, θ ← (1 - rate · λ) θ (AdamW, Loshchilov & Hutter 2019,
/// algorithm 2, with the rate inside as in PyTorch). AdaDelta: Zeiler 2012, algorithm 1; there the rate is 1.
namespace heed::kernels {

/// What an optimiser remembers of each number: up to two numbers. Null where it remembers less.
template <class T>
struct moments_of {
    T* first = nullptr;
    T* second = nullptr;

    moments_of from(std::size_t i) const
    {
        return {first == nullptr ? nullptr : first + i, second == nullptr ? nullptr : second + i};
    }
};

/// update(n, gradient, moments, parameters) on n parameters, shared by threads.
template <class T, class Update>
void update_all(std::size_t n, const Update& update, const T* gradient, moments_of<T> moments, T* parameters)
{
    parallel_for(
        n, std::size_t{1} << 14,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            update(end - begin, gradient + begin, moments.from(begin), parameters + begin);
        },
        simd::lanes<T>);
}

/// The place of the gradient of the i-th touched row: row i of a small table, or its own row in a full one.
enum class gradient_rows { packed, in_place };

/// The same for some rows of a table [N,width]: row rows[i] for i < count, all different. The others are not touched.
template <class T, class Index, class Update>
void update_rows(std::size_t count, const Index* rows, std::size_t width, const Update& update, const T* gradient,
                 gradient_rows layout, moments_of<T> moments, T* parameters)
{
    const std::size_t grain = width == 0 ? count : ((std::size_t{1} << 14) + width - 1) / width;
    detail::each_row(count, grain, [&](std::size_t i) {
        const std::size_t at = static_cast<std::size_t>(rows[i]) * width;
        update(width, gradient + (layout == gradient_rows::packed ? i * width : at), moments.from(at), parameters + at);
    });
}

/// Σ_i x_i², squared and summed in double.
template <class T>
double squared_norm(std::size_t n, const T* x)
{
    using namespace simd;
    constexpr std::size_t most = 16, least = std::size_t{1} << 15;
    double parts[most] = {};
    parallel_for(
        n, n / most + 1 > least ? n / most + 1 : least,
        [&](std::size_t begin, std::size_t end, std::size_t shard) {
            vec<double> sums[2] = {};
            std::size_t i = begin;
            for (; i + 2 * lanes<double> <= end; i += 2 * lanes<double>) {
                for (std::size_t part = 0; part < 2; ++part) {
                    typedef T source __attribute__((vector_size(lanes<double> * sizeof(T))));
                    source narrow;
                    std::memcpy(&narrow, x + i + part * lanes<double>, sizeof narrow);
                    const vec<double> wide = __builtin_convertvector(narrow, vec<double>);
                    sums[part] = simd::fma(wide, wide, sums[part]);
                }
            }
            double total = sum(sums[0] + sums[1]);
            for (; i < end; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
            parts[shard] = total;
        },
        simd::lanes<T>);
    double total = 0;
    for (const double part : parts) total += part;
    return total;
}

namespace detail {

template <class T>
struct sgd_update {
    T factor;

    void operator()(std::size_t n, const T* gradient, moments_of<T>, T* parameters) const
    {
        add_scaled(n, parameters, -factor, gradient);
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
        each_column<T>(0, n, [&](std::size_t i, auto get, auto put) {
            const vec<T> theta = get(parameters + i);
            const vec<T> g = fma(splat(decay), theta, get(gradient + i) * splat(scale));
            const vec<T> moved = fma(splat(momentum), get(m + i), g);
            put(m + i, moved);
            const vec<T> step = nesterov ? fma(splat(momentum), moved, g) : moved;
            put(parameters + i, fma(splat(-rate), step, theta));
        });
    }
};

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

template <class T>
struct adam_update;  // by adam_settings

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
        each_column<T>(0, n, [&](std::size_t i, auto get, auto put) {
            const vec<T> g = get(gradient + i) * splat(scale);
            const vec<T> first = fma(splat(fresh1), g, splat(beta1) * get(m + i));
            const vec<T> second = fma(splat(fresh2) * g, g, splat(beta2) * get(v + i));
            put(m + i, first);
            put(v + i, second);
            const vec<T> size = fma(simd::sqrt(second), splat(unbias2), splat(epsilon));
            put(parameters + i, splat(kept) * get(parameters + i) - splat(rate) * first / size);
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
