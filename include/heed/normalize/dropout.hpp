// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <heed/core/random.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/sampling.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y_j = r k_j α_j, where k_j is 0 with probability p, else 1, and r = 1 / (1 − p): α [B,T] or [B,T,D] -> the shape of
/// α. With `renormalize` r = Σ α / Σ k α, which preserves the sum of a row (0 if all of its weights are dropped).
///
///     ∂α_j += r k_j ∂y_j; with `renormalize` and m = Σ_i k_i α_i ∂y_i / Σ_i k_i α_i:
///     ∂α_j += m + r k_j (∂y_j − m)
struct dropout_weights_op : row_operation<dropout_weights_op> {
    static constexpr const char* name = "dropout_weights";

    template <class T, std::size_t R>
    static void forward(in<T, R> weights, const lengths_view& real, double p, std::uint64_t stream, bool renormalize,
                        out<T, R> y)
    {
        const detail::row_plan plan(weights.shape, real);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            const drawn<T> row(plan, b, n, p, stream, renormalize, weights.data + at, memory);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                y.data[at + i] = row.keep[i] != 0 ? weights.data[at + i] * row.r[d] : T(0);
            });
            plan.clear_padding(n, y.data + at);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> weights, const lengths_view& real, double p, std::uint64_t stream, bool renormalize,
                         in<T, R>, in<T, R> d_y, adjoint<T, R> d_weights)
    {
        const detail::row_plan plan(weights.shape, real);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            const T *const a = weights.data + at, *const d = d_y.data + at;
            T* const d_a = d_weights.data + at;
            const drawn<T> row(plan, b, n, p, stream, renormalize, a, memory);
            if (!renormalize) {
                plan.each_element(
                    n, [&](std::size_t i, std::size_t k) { d_a[i] += row.keep[i] != 0 ? row.r[k] * d[i] : T(0); });
                return;
            }
            auto* const pulled = plan.zeros<in_double<T>>(memory);
            plan.each_element(n, [&](std::size_t i, std::size_t k) {
                if (row.keep[i] != 0) pulled[k] += static_cast<in_double<T>>(a[i] * d[i]);
            });
            plan.each_element(n, [&](std::size_t i, std::size_t k) {
                if (!(row.kept[k] > T(0))) return;  // all dropped: 0 for any weights
                const T mean = static_cast<T>(pulled[k]) / row.kept[k];
                d_a[i] += row.keep[i] != 0 ? mean + row.r[k] * (d[i] - mean) : mean;
            });
        });
    }

private:
    /// The random draws of a row and their factors, the same in forward and backward.
    template <class T>
    struct drawn {
        std::uint8_t* keep;  // [n,D] k
        T* r;                // [D]
        T* kept;             // [D] Σ k α, if required

        drawn(const detail::row_plan& plan, std::size_t b, std::size_t n, double p, std::uint64_t stream,
              bool renormalize, const T* weights, scratch& memory)
            : keep(memory.take<std::uint8_t>(n * plan.width)), r(plan.zeros<T>(memory)), kept(plan.zeros<T>(memory))
        {
            const std::size_t width = plan.width;
            const std::uint64_t row = plan.stream_of(stream, b);
            for (std::size_t i = 0; i < n * width; ++i) keep[i] = uniform(row, i) < p ? 0 : 1;
            if (!renormalize) {
                std::fill_n(r, width, static_cast<T>(1 / (1 - p)));
                return;
            }
            auto *const all = plan.zeros<in_double<T>>(memory), *const some = plan.zeros<in_double<T>>(memory);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                all[d] += static_cast<in_double<T>>(weights[i]);
                some[d] += static_cast<in_double<T>>(keep[i] != 0 ? weights[i] : T(0));
            });
            for (std::size_t d = 0; d < width; ++d) r[d] = static_cast<T>(all[d]), kept[d] = static_cast<T>(some[d]);
            for (std::size_t d = 0; d < width; ++d) r[d] = kept[d] > T(0) ? r[d] / kept[d] : T(0);
        }
    };
};
inline constexpr dropout_weights_op dropout_weights{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Options of `dropout`, by name: `{.at_inference = true}`.
struct dropout_options {
    bool renormalize = false;   // preserves the sum of the weights
    bool at_inference = false;  // also without a tape
};

/// Dropout on the weights of any normalizer: the context omits some positions, at random.
///
///     c = combine(α'),  α'_j = k_j α_j / (1 − p),  k_j = 0 with probability p, else 1     Srivastava et al. 2014, §4
///     .renormalize:     α'_j = k_j α_j · Σ_i α_i / Σ_i k_i α_i, so that Σ α' = Σ α
///
///     normalize::dropout{0.1, seed}                            // over softmax
///     normalize::dropout{0.1, seed, normalize::softmax{}, {.renormalize = true}}
///
/// Weights that are returned, stored in a state or passed to coverage are those before dropout: only the context is
/// affected. If all weights of a row are dropped, its context is 0.
///
/// Dropout is active on the tape only, unless `options.at_inference` is set (Monte Carlo dropout, Gal & Ghahramani
/// 2016). The draws depend only on (seed, step, row, position, dimension): use a new seed for each batch. p outside
/// [0,1) throws heed::error.
template <class Inner>
struct dropout {
    double p = 0;
    std::uint64_t seed = 1;
    Inner inner{};
    dropout_options options{};

    using wraps = Inner;
    static constexpr normalizer_traits traits = traits_around_normalizer<Inner>([](normalizer_traits& own) {
        own.random = true;
        own.has_window = cuts_windows<Inner>;
    });

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const  // [B,T] or [B,T,D]
    {
        return weigh(inner, scores, state, at);
    }

    auto window(const auto& at, std::size_t positions) const { return inner.window(at, positions); }

    auto inner_in_window(const auto& found) const
    {
        return normalize::dropout{p, seed, inner.inner_in_window(found), options};
    }

    template <tensor Weights>
    Weights weights_for_combiner(const Weights& weights, const auto& at) const
    {
        if (!(p >= 0 && p < 1)) {
            throw error("normalize::dropout: p is " + std::to_string(p) +
                        " but must be at least 0 and below 1: the probability that a weight is dropped");
        }
        Weights kept = heed::combiner_weights(inner, weights, at);
        if (p == 0 || (plain_tensor<Weights> && !options.at_inference)) return kept;
        return ops::dropout_weights(kept, at.real, p, ops::stream_of(seed, at.step, ops::chance::weights),
                                    options.renormalize);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::dropout{self.p, self.seed, visit("inner", self.inner), self.options};
    }
};

template <class Inner = softmax>
dropout(double = 0, std::uint64_t = 1, Inner = {}, dropout_options = {}) -> dropout<Inner>;

}  // namespace heed::inline HEED_TARGET::normalize
