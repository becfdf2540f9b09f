// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/kernels/simd.hpp>
#include <heed/kernels/update.hpp>

/// Stochastic gradient descent.
///
///     θ = θ - rate · g                                      g: the given gradient times `scale`
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
