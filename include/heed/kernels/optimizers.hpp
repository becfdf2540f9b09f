// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>

#include <heed/core/compiled.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/simd.hpp>

/// Parameter updates. g is the given gradient times `scale`, so that clipping by norm needs no separate pass; moments
/// are initialized to zero.
///
///     SGD        θ = θ - rate · g
///     momentum   g = g + λ θ,   m = μ m + g,   θ = θ - rate · m,  or Nesterov  θ - rate · (g + μ m)
///     Adam       m = β1 m + (1 - β1) g,    v = β2 v + (1 - β2) g²,    m̂ = m / (1 - β1^t),    v̂ = v / (1 - β2^t)
///                θ = θ - rate · m̂ / (√v̂ + ε)
///     AdaDelta   G = ρ G + (1 - ρ) g²,   Δ = √(D + ε) / √(G + ε) · g,   D = ρ D + (1 - ρ) Δ²,   θ = θ - rate · Δ
///
/// Momentum: Sutskever et al. 2013 in PyTorch's form, with weight decay λ. Adam: Kingma & Ba 2015, algorithm 1; with
/// decoupled weight decay λ the parameters shrink first, θ ← (1 - rate · λ) θ (AdamW, Loshchilov & Hutter 2019,
/// algorithm 2, with the rate inside as in PyTorch). AdaDelta: Zeiler 2012, algorithm 1; there the rate is 1.
namespace heed::inline HEED_TARGET::kernels {

/// An optimizer's state for each parameter: up to two numbers. Null if it keeps fewer.
template <class T>
struct moments_of {
    T* first = nullptr;
    T* second = nullptr;

    moments_of from(std::size_t i) const { return {detail::behind(first, i), detail::behind(second, i)}; }
};

/// update(n, gradient, moments, parameters) on n parameters, in parallel.
template <class T, class Update>
void update_all(std::size_t n, const Update& update, const T* gradient, moments_of<T> moments, T* parameters)
{
    parallel_for(
        n, std::size_t{1} << 14,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            const simd::without_subnormals quick;
            update(end - begin, gradient + begin, moments.from(begin), parameters + begin);
        },
        simd::lanes<T>);
}

/// Where the gradient of the i-th updated row is: row i of a small table, or the row's index in a full one.
enum class gradient_rows { packed, in_place };

/// update_all for some rows of a table [N,width]: row rows[i] for i < count, all different. The others are unchanged.
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

/// m holds the momentum, initialized to zero.
template <class T>
struct momentum_update {
    T rate, momentum, decay, scale;
    bool nesterov;

    void operator()(std::size_t n, const T* gradient, moments_of<T> past, T* parameters) const
    {
        using namespace simd;
        T* const m = past.first;
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

}  // namespace detail

/// Adam's factors in a step.
template <class T>
struct adam_factors {
    T scale, keep1, fresh1, keep2, fresh2, speed, unbias2, least, kept;
};

/// A step of Adam for n parameters.
template <class T>
void adam_update(const adam_factors<T>& by, std::size_t n, const T* gradient, moments_of<T> past, T* parameters)
{
    using namespace simd;
    T *const m = past.first, *const v = past.second;
    detail::each_column<T>(0, n, [&](std::size_t i, auto get, auto put) {
        const vec<T> g = get(gradient + i) * splat(by.scale);
        const vec<T> first = fma(splat(by.fresh1), g, splat(by.keep1) * get(m + i));
        const vec<T> second = fma(splat(by.fresh2) * g, g, splat(by.keep2) * get(v + i));
        put(m + i, first);
        put(v + i, second);
        const vec<T> size = fma(simd::sqrt(second), splat(by.unbias2), splat(by.least));
        put(parameters + i, splat(by.kept) * get(parameters + i) - splat(by.speed) * first / size);
    });
}

/// AdaDelta's factors.
template <class T>
struct adadelta_factors {
    T scale, keep, least, speed;
};

/// A step of AdaDelta for n parameters.
template <class T>
void adadelta_update(const adadelta_factors<T>& by, std::size_t n, const T* gradient, moments_of<T> past, T* parameters)
{
    using namespace simd;
    T *const G = past.first, *const D = past.second;
    detail::each_column<T>(0, n, [&](std::size_t i, auto get, auto put) {
        const vec<T> g = get(gradient + i) * splat(by.scale), old = get(D + i), fresh = splat(T(1) - by.keep);
        const vec<T> squares = fma(fresh * g, g, splat(by.keep) * get(G + i));
        const vec<T> step = simd::sqrt((old + splat(by.least)) / (squares + splat(by.least))) * g;
        put(G + i, squares);
        put(D + i, fma(fresh * step, step, splat(by.keep) * old));
        put(parameters + i, fma(splat(-by.speed), step, get(parameters + i)));
    });
}

// Compiled into heed::compiled.
// clang-format off
#define HEED_KERNELS_OF_OPTIMIZERS(X, T) \
    X(T, squared_norm, double, squared_norm, (std::size_t n, const T* x), (n, x)) \
    X(T, adam_update, void, adam_update, (const adam_factors<T>& by, std::size_t n, const T* gradient, moments_of<T> past, T* parameters), (by, n, gradient, past, parameters)) \
    X(T, adadelta_update, void, adadelta_update, (const adadelta_factors<T>& by, std::size_t n, const T* gradient, moments_of<T> past, T* parameters), (by, n, gradient, past, parameters))
// clang-format on
HEED_COMPILED_KERNELS(HEED_KERNELS_OF_OPTIMIZERS)

struct sgd_settings {
    double rate = 1;

    static constexpr const char* name = "sgd";
    static constexpr std::size_t moments = 0;

    template <class T>
    auto update(std::size_t, T scale) const
    {
        return [factor = static_cast<T>(rate) * scale](std::size_t n, const T* gradient, moments_of<T>, T* parameters) {
            add_scaled(n, parameters, -factor, gradient);
        };
    }
};

struct adam_settings {
    double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

    static constexpr const char* name = "adam";
    static constexpr std::size_t moments = 2;

    /// The update of step t, counted from 1, with gradients times `scale`. Its factors are computed in double.
    template <class T>
    auto update(std::size_t t, T scale, double decay = 0) const
    {
        const auto power = [t](double beta) { return std::pow(beta, static_cast<double>(t)); };
        const adam_factors<T> by{scale,
                                 static_cast<T>(beta1),
                                 static_cast<T>(1 - beta1),
                                 static_cast<T>(beta2),
                                 static_cast<T>(1 - beta2),
                                 static_cast<T>(rate / (1 - power(beta1))),
                                 static_cast<T>(1 / std::sqrt(1 - power(beta2))),
                                 static_cast<T>(epsilon),
                                 static_cast<T>(1 - rate * decay)};
        return [by](std::size_t n, const T* gradient, moments_of<T> past, T* parameters) {
            adam_update(by, n, gradient, past, parameters);
        };
    }
};

struct adadelta_settings {
    double rho = 0.95, epsilon = 1e-6, rate = 1;

    static constexpr const char* name = "adadelta";
    static constexpr std::size_t moments = 2;

    template <class T>
    auto update(std::size_t, T scale) const
    {
        const adadelta_factors<T> by{scale, static_cast<T>(rho), static_cast<T>(epsilon), static_cast<T>(rate)};
        return [by](std::size_t n, const T* gradient, moments_of<T> past, T* parameters) {
            adadelta_update(by, n, gradient, past, parameters);
        };
    }
};

}  // namespace heed::inline HEED_TARGET::kernels
