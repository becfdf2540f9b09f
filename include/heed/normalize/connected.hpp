// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention/normalize_hooks.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/ops/elementwise.hpp>

namespace heed::ops {

/// y = e + w·x with one learned number w: e and x [...], w [1] -> [...].
///
///     ∂e += ∂y,  ∂w += Σ x ∂y,  ∂x += w ∂y
struct add_weighted_op : operation<add_weighted_op> {
    static auto shape(const auto& e, const auto& w, const auto& x)
    {
        static_assert(rank_of<decltype(e)> == rank_of<decltype(x)>, "heed: add_weighted adds tensors of the same rank");
        require_shape("add_weighted", "the weight", w.shape, {1}, "one number for all");
        require_shape("add_weighted", "what is added", x.shape, e.shape, "the shape of the first argument");
        return e.shape;
    }

    template <class T, std::size_t N>
    static void forward(in<T, N> e, in<T, 1> w, in<T, N> x, out<T, N> y)
    {
        simd::parallel_transform(
            y.size(), y.data, [by = *w.data](auto u, auto v) { return u + by * v; }, e.data, x.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N>, in<T, 1> w, in<T, N> x, in<T, N> y, in<T, N> d_y, adjoint<T, N> d_e,
                         adjoint<T, 1> d_w, adjoint<T, N> d_x)
    {
        if (d_e) kernels::add(y.size(), d_e.data, d_y.data);
        if (d_w) *d_w.data += kernels::dot(y.size(), x.data, d_y.data);
        if (d_x) kernels::add_scaled(y.size(), d_x.data, *w.data, d_y.data);
    }
};
inline constexpr add_weighted_op add_weighted{};

}  // namespace heed::ops

namespace heed::normalize {

/// Past attention is added to the scores through a learned connection, instead of dividing them.
///
///     u_{t,j} = e_{t,j} + w Σ_{k<t} α_{k,j}
///     α_t = inner(u_t)                        Sankaran et al. 2016, footnote 3 (an ablation)
///
/// The footnote, "adding an extra connection instead from temporal alignments", gives no formula. Ours is the smallest
/// that fits (docs/decisions.md): one learned number w [1], and the sum of the weights so far, of shape of the scores
/// and initially 0, through which gradients flow. w = 0 is `inner`. Prefer `temporal`.
template <class Weight, class Inner = softmax>
struct connected {
    Weight w;  // [1]
    HEED_NO_UNIQUE_ADDRESS Inner inner{};

    using wraps = Inner;

    auto start(auto&& blank) const { return past_attention{blank(0), start_of(inner, blank)}; }

    auto operator()(const tensor auto& scores, const auto& past, const auto& at) const
    {
        return weigh(inner, ops::add_weighted(scores, w, past.history), past.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& past, const auto& at) const
    {
        auto grown = ops::add_alike(past.history, weights);
        if constexpr (remembers<Inner>) {
            const auto modulated = ops::add_weighted(scores, w, past.history);
            return past_attention{std::move(grown), next_of(inner, modulated, weights, past.inner, at)};
        } else {
            return past_attention{std::move(grown), past.inner};
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::connected{visit("w", self.w), visit("inner", self.inner)};
    }
};

template <class Weight, class Inner = softmax>
connected(Weight, Inner = {}) -> connected<Weight, Inner>;

}  // namespace heed::normalize
