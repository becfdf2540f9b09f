// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <heed/core/random.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/sampling.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y_j = e_j − e_m + strength · g_j, where e_m is the maximum score of the row: e [B,T] or [B,T,D] -> the shape of e.
/// The noise is g_j = −log(−log u_j), u_j uniform in (0,1), for which argmax_j (e_j + g_j) is distributed as
/// softmax(e). e_m is subtracted first, so that the noise is not rounded away for large scores. A score of -inf is
/// unchanged.
///
///     ∂e_j += ∂y_j − [j = m] Σ_k ∂y_k, and 0 where e_j is -inf
struct add_gumbel_op : row_operation<add_gumbel_op> {
    static constexpr const char* name = "add_gumbel";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::uint64_t stream, double strength, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        const std::size_t width = plan.width;
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            const detail::greatest_of<T> most(n, width, e.data + at, memory);
            auto* const noise = memory.take<double>(n * width);
            gumbel(n * width, plan.stream_of(stream, b), strength, noise);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                const T score = e.data[at + i];
                const bool none = score == -std::numeric_limits<T>::infinity();  // -inf - -inf is NaN
                y.data[at + i] = none ? score : (score - most.top[d]) + static_cast<T>(noise[i]);
            });
            plan.clear_padding(n, y.data + at);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, std::uint64_t, double, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e)
    {
        const detail::row_plan plan(e.shape, real);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            auto* const sum = plan.zeros<in_double<T>>(memory);
            const detail::greatest_of<T> most(n, plan.width, e.data + at, memory);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                if (e.data[at + i] == -std::numeric_limits<T>::infinity()) return;
                d_e.data[at + i] += d_y.data[at + i];
                sum[d] += static_cast<in_double<T>>(d_y.data[at + i]);
            });
            for (std::size_t d = 0; d < plan.width; ++d) {
                if (most.where[d] < n) d_e.data[at + most.where[d] * plan.width + d] -= static_cast<T>(sum[d]);
            }
        });
    }

private:
    static void gumbel(std::size_t n, std::uint64_t row, double strength, double* noise)
    {
        if (strength == 0) return kernels::detail::zero(noise, n);
        for (std::size_t i = 0; i < n; ++i) {
            noise[i] = std::min(1 - uniform(row, i), 1 - 0x1p-53);  // 1 would be infinite noise
        }
        simd::transform(
            n, noise, [strength](simd::vec<double> u) { return strength * -simd::log(-simd::log(u)); },
            static_cast<const double*>(noise));
    }
};
inline constexpr add_gumbel_op add_gumbel{};

/// y = value in the forward pass, y = soft in the backward pass: value and soft [...] -> [...]. Bengio, Léonard and
/// Courville 2013.
///
///     ∂soft += ∂y                                                no gradient for the value
struct straight_through_op : operation<straight_through_op> {
    static auto shape(const auto& value, const auto& soft)
    {
        require_shape("straight_through", "the second argument", soft.shape, value.shape, "the shape of the first");
        return value.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> value, in<T, R>, out<T, R> y)
    {
        std::copy_n(value.data, y.size(), y.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R>, in<T, R>, in<T, R> y, in<T, R> d_y, adjoint<T, R>, adjoint<T, R> d_soft)
    {
        if (d_soft) kernels::add(y.size(), d_soft.data, d_y.data);
    }
};
inline constexpr straight_through_op straight_through{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Hard attention: one position drawn from softmax(e), trained with the gradient of a softmax with temperature.
///
///     g_j = −log(−log u_j),  u_j uniform in (0,1)
///     forward:  α = one-hot(argmax_j (e_j + g_j))                Jang, Gu & Poole 2017, eq. 1
///     backward: that of softmax((e + g) / τ)                     eq. 2; section 2.2, "straight-through"
///
/// With `straight_through = false` the forward weights are the soft weights, which are differentiable. The
/// straight-through gradient is biased, unlike that of `hard`, but has a lower variance. `greedy`, for a trained model,
/// adds no noise. The noise depends only on (seed, step, row, position, dimension): use a new seed for each batch.
/// Throws heed::error unless τ is a finite number above 0. No deviation.
struct gumbel {
    std::uint64_t seed = 1;
    double tau = 1;
    bool straight_through = true;
    bool greedy = false;

    static constexpr normalizer_traits traits{
        .shift_invariant = true, .random = true, .differentiable = false};  // false because of the default

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        if (!(tau > 0) || std::isinf(tau)) {
            throw error("normalize::gumbel: tau is " + std::to_string(tau) + " but must be a finite number above 0");
        }
        const auto noisy = ops::add_gumbel(at.visible(scores), at.real,
                                           ops::stream_of(seed, at.step, ops::chance::noise), greedy ? 0.0 : 1.0);
        auto soft = ops::softmax(ops::scale(noisy, 1 / tau), at.real);
        if (!straight_through) return soft;
        return ops::straight_through(ops::argmax(noisy, at.real), soft);
    }

    static auto parameters(auto& self, auto&&)
    {
        return normalize::gumbel{self.seed, self.tau, self.straight_through, self.greedy};
    }
};

}  // namespace heed::inline HEED_TARGET::normalize
