// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <heed/core/random.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/sampling.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y_j = e_j + sigma · g_j, g_j standard normal: e [B,T] or [B,T,D] -> the shape of e. A score of -inf is unchanged.
///
///     ∂e_j += ∂y_j
struct add_normal_op : row_operation<add_normal_op> {
    static constexpr const char* name = "add_normal";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::uint64_t stream, double sigma, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch&) {
            const std::uint64_t row = plan.stream_of(stream, b);
            for (std::size_t i = 0; i < n * plan.width; ++i) {
                y.data[at + i] = e.data[at + i] + static_cast<T>(sigma * normal(row, i));
            }
            plan.clear_padding(n, y.data + at);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, std::uint64_t, double, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e)
    {
        const detail::row_plan plan(e.shape, real);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch&) {
            kernels::add(n * plan.width, d_e.data + at, d_y.data + at);
        });
    }
};
inline constexpr add_normal_op add_normal{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Options of `noisy`, by name: `{.at_inference = true}`.
struct noisy_options {
    bool at_inference = false;  // also without a tape
};

/// Noise on the scores of any normalizer, during training.
///
///     α = inner(e + σ g),  g_j standard normal                Raffel et al. 2017, over `monotonic`, σ = 1
///
///     normalize::noisy{1.0, seed, normalize::monotonic{r}}
///
/// Under noise a sigmoid learns scores far from 0, so that a trained scan may stop where p ≥ 1/2. Noise is active on
/// the tape only, unless `options.at_inference` is set, and depends only on (seed, step, row, position, dimension): use
/// a new seed for each batch. The state of `inner` is updated with the noisy scores. Throws heed::error if σ is
/// negative or not finite.
template <class Inner>
struct noisy {
    double sigma = 1;
    std::uint64_t seed = 1;
    HEED_NO_UNIQUE_ADDRESS Inner inner;
    noisy_options options{};

    using wraps = Inner;
    static constexpr normalizer_traits traits = traits_around_normalizer<Inner>([](normalizer_traits& own) {
        own.random = true;
        own.has_window = cuts_windows<Inner>;
    });

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const  // [B,T] or [B,T,D]
    {
        return weigh(inner, shaken(scores, at), state, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& state, const auto& at) const
    {
        return next_of(inner, shaken(scores, at), weights, state, at);
    }

    auto window(const auto& at, std::size_t positions) const { return inner.window(at, positions); }

    auto inner_in_window(const auto& found) const
    {
        return normalize::noisy{sigma, seed, inner.inner_in_window(found), options};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::noisy{self.sigma, self.seed, visit("inner", self.inner), self.options};
    }

private:
    template <tensor Scores>
    Scores shaken(const Scores& scores, const auto& at) const
    {
        if (!(sigma >= 0) || std::isinf(sigma)) {
            throw error("normalize::noisy: sigma is " + std::to_string(sigma) +
                        " but must be a finite number, 0 or more: the standard deviation of the noise");
        }
        if (sigma == 0 || (plain_tensor<Scores> && !options.at_inference)) return scores;
        return ops::add_normal(scores, at.real, ops::stream_of(seed, at.step, ops::chance::normal_noise), sigma);
    }
};

template <class Inner>
noisy(double, std::uint64_t, Inner, noisy_options = {}) -> noisy<Inner>;

}  // namespace heed::inline HEED_TARGET::normalize
