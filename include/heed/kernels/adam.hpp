// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>

#include <heed/core/parallel.hpp>
#include <heed/kernels/simd.hpp>

/// Adam, each parameter touched once.
///
///     m = β1 m + (1 - β1) g,    v = β2 v + (1 - β2) g²,    m̂ = m / (1 - β1^t),    v̂ = v / (1 - β2^t)
///     θ = θ - rate · m̂ / (√v̂ + ε)                          Kingma & Ba 2015, algorithm 1 ·
///
/// g is the given gradient times `scale`, so that clipping by norm needs no pass of its own.
namespace heed::kernels {

struct adam_settings {
    double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

namespace detail {

/// The update's factors that depend on the step alone, in double.
template <class T>
struct adam_update {
    T beta1, fresh1, beta2, fresh2, rate, unbias2, epsilon, scale;

    adam_update(const adam_settings& settings, std::size_t t, T gradient_scale)
        : beta1(static_cast<T>(settings.beta1)),
          fresh1(static_cast<T>(1 - settings.beta1)),
          beta2(static_cast<T>(settings.beta2)),
          fresh2(static_cast<T>(1 - settings.beta2)),
          rate(static_cast<T>(settings.rate / (1 - std::pow(settings.beta1, static_cast<double>(t))))),
          unbias2(static_cast<T>(1 / std::sqrt(1 - std::pow(settings.beta2, static_cast<double>(t))))),
          epsilon(static_cast<T>(settings.epsilon)),
          scale(gradient_scale)
    {}

    void operator()(std::size_t n, const T* gradient, T* m, T* v, T* parameters) const
    {
        using namespace simd;
        const auto at = [&](std::size_t i, auto get, auto put) {
            const vec<T> g = get(gradient + i) * splat(scale);
            const vec<T> first = fma(splat(fresh1), g, splat(beta1) * get(m + i));
            const vec<T> second = fma(splat(fresh2) * g, g, splat(beta2) * get(v + i));
            put(m + i, first);
            put(v + i, second);
            const vec<T> size = fma(simd::sqrt(second), splat(unbias2), splat(epsilon));
            put(parameters + i, get(parameters + i) - splat(rate) * first / size);
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
    const detail::adam_update<T> update(settings, t, scale);
    parallel_for(
        n, std::size_t{1} << 14,
        [&](std::size_t begin, std::size_t end, std::size_t) {
            update(end - begin, gradient + begin, m + begin, v + begin, parameters + begin);
        },
        simd::lanes<T>);
}

/// The place of the gradient of the i-th touched row: row i of a small table, or its own row in a full one.
enum class gradient_rows { packed, in_place };

/// One step of Adam on some rows of a table [N,width] of embeddings: row rows[i] for i < count, all different.
///
/// Lazy: the other rows are not touched. Plain Adam would keep moving them by their old moments and let these decay;
/// here both wait until the row is seen again, and the bias correction counts all steps.
template <class T, class Index>
void adam_rows(std::size_t count, const Index* rows, std::size_t width, const adam_settings& settings, std::size_t t,
               T scale, const T* gradient, gradient_rows layout, T* m, T* v, T* parameters)
{
    const detail::adam_update<T> update(settings, t, scale);
    const std::size_t grain = width == 0 ? count : ((std::size_t{1} << 14) + width - 1) / width;
    parallel_for(count, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t at = static_cast<std::size_t>(rows[i]) * width;
            update(width, gradient + (layout == gradient_rows::packed ? i * width : at), m + at, v + at,
                   parameters + at);
        }
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

}  // namespace heed::kernels
