// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention/normalize_hooks.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/normalize/softmax.hpp>
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
/// The footnote is all that the paper says: "We also tried adding an extra connection instead from temporal alignments
/// and learn its parameters, but that performed poorly than directly modulating the attention." It gives no formula.
/// Ours is the smallest that fits (docs/decisions.md): one learned number w [1], and as "temporal alignments" the sum
/// of the weights so far. The paper's own aggregate, Σ exp(e), would overflow where it is not divided by. w = 0 is
/// `inner`. Prefer `temporal`.
///
/// The state is one number per score, initially 0. Gradients flow through it.
template <class Weight, class Inner = softmax>
struct connected {
    Weight w;  // [1]
    HEED_NO_UNIQUE_ADDRESS Inner inner{};

    using wraps = Inner;

    template <class Alignments, class Past>
    struct state {
        Alignments alignments;              // Σ_{k<t} α_k, the shape of the scores
        HEED_NO_UNIQUE_ADDRESS Past inner;  // the inner normalizer's state

        /// The same with f applied to every tensor.
        auto map(auto&& f, const auto&... others) const
        {
            return make(f(alignments, others.alignments...), inner.map(f, others.inner...));
        }
    };

    auto start(auto&& blank) const { return make(blank(0), start_of(inner, blank)); }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        return weigh(inner, ops::add_weighted(scores, w, memory.alignments), memory.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        auto grown = ops::add_alike(memory.alignments, weights);
        if constexpr (remembers<Inner>) {
            const auto modulated = ops::add_weighted(scores, w, memory.alignments);
            return make(std::move(grown), next_of(inner, modulated, weights, memory.inner, at));
        } else {
            return make(std::move(grown), memory.inner);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::connected{visit("w", self.w), visit("inner", self.inner)};
    }

    template <class Alignments, class Past>
    static state<Alignments, Past> make(Alignments alignments, Past past)
    {
        return {std::move(alignments), std::move(past)};
    }
};

template <class Weight>
connected(Weight) -> connected<Weight>;
template <class Weight, class Inner>
connected(Weight, Inner) -> connected<Weight, Inner>;

}  // namespace heed::normalize
