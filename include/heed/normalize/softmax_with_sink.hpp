// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/kernels/sparse.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// softmax with an additional score, the sink; its weight is discarded: e [B,T] or [B,T,D], sink [1]; 0 beyond a
/// row's length.
///
///     α_j = exp(e_j) / (exp(s) + Σ_k exp(e_k))
///     ∂e_j += α_j (∂α_j − Σ_k α_k ∂α_k),  ∂s −= (1 − Σ_k α_k) Σ_k α_k ∂α_k
struct softmax_with_sink_op : operation<softmax_with_sink_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& sink, const lengths_view& real)
    {
        require_shape("softmax_with_sink", "the sink", sink.shape, {1}, "one score");
        real.require("softmax_with_sink", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, 1> sink, const lengths_view& real, out<T, R> weights)
    {
        const auto column = [s = sink.data[0]](std::size_t n, const T* x, T* y, T*) {
            using std::exp;
            const T top = std::max(s, kernels::detail::max_of(n, x));
            const T base = top == -std::numeric_limits<T>::infinity() ? T(0) : top;
            bool known = base < std::numeric_limits<T>::infinity() && s == s;
            for (std::size_t j = 0; j < n; ++j) known = known && x[j] == x[j];  // no NaN
            if (!known) return kernels::detail::unknown_weights(n, x, y);
            T sum = exp(s - base);
            for (std::size_t j = 0; j < n; ++j) sum += y[j] = exp(x[j] - base);
            for (std::size_t j = 0; j < n; ++j) y[j] = sum == 0 ? T(0) : y[j] / sum;
        };
        kernels::detail::each_column_of_scores(e.shape[0], e.shape[1], detail::width_of(e.shape), real.data(), e.data,
                                               weights.data, column);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, 1>, const lengths_view& real, in<T, R> weights, in<T, R> d_weights,
                         adjoint<T, R> d_e, adjoint<T, 1> d_sink)
    {
        if (d_e) softmax_op::backward(e, real, weights, d_weights, d_e);
        if (!d_sink) return;
        const std::size_t width = detail::width_of(e.shape);
        for (std::size_t b = 0; b < e.shape[0]; ++b) {
            for (std::size_t d = 0; d < width; ++d) {
                T all = 0, pulled = 0;
                for (std::size_t t = 0; t < real[b]; ++t) {
                    const std::size_t at = (b * e.shape[1] + t) * width + d;
                    if (weights.data[at] == T(0)) continue;  // ∂α may be NaN
                    all += weights.data[at];
                    pulled += weights.data[at] * d_weights.data[at];
                }
                d_sink.data[0] -= (1 - all) * pulled;
            }
        }
    }
};
inline constexpr softmax_with_sink_op softmax_with_sink{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Softmax with a sink, a learned score that takes part of the weight and contributes no value.
///
///     α_j = exp(e_j) / (exp(s) + Σ_k exp(e_k))        s = 0: "softmax off by one", Miller 2023
///
///     normalize::softmax_with_sink{array<float, 1>{0}}     s is learned; ad::lift makes it a parameter like any other
///
/// s is one number per attention, and so per head of a multi_head. Weights sum to 1 minus the weight of the sink. Also
/// works per dimension, with one sink for all. Xiao et al. 2024 keep the first words' keys as sinks; later models have
/// a learned number.
template <class Vector>
struct softmax_with_sink {
    static constexpr normalizer_traits traits{.rowwise = true};
    Vector sink;  // [1]

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::softmax_with_sink(at.visible(scores), sink, at.real);
    }

    auto tile_rule() const { return kernels::tiles::with_numbers_of_heads<kernels::tiles::softmax, Vector>{{}, sink}; }

    static auto parameters(auto& self, auto&& visit) { return normalize::softmax_with_sink{visit("sink", self.sink)}; }
};

template <class Vector>
softmax_with_sink(Vector) -> softmax_with_sink<Vector>;

}  // namespace heed::inline HEED_TARGET::normalize
