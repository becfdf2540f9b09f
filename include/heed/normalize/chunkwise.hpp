// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/attention/normalize_hooks.hpp>
#include <heed/ops/chunks.hpp>

namespace heed::normalize {

/// Monotonic chunkwise attention (MoChA): from where a monotonic scan stops, a softmax looks back over w positions.
///
///     β_{i,j} = Σ_{k=j}^{j+w−1} α_{i,k} exp(u_{i,j}) / Σ_{l=k−w+1}^{k} exp(u_{i,l})      Chiu & Raffel 2018, §2.3
///
///     chunkwise{w, s, monotonic{r}}                            to train
///     chunkwise{w, s, noisy{1, seed, monotonic{r}}}            the same with the paper's noise on the scan's energies
///     chunkwise{w, s, monotonic_hard{r}}                       the trained model: the softmax of one chunk
///
/// α are the weights of any normalizer, and so is its state; the paper's are those of `monotonic`. At the beginning of
/// a sentence a chunk is as much of it as there is. Weights sum to what α sums to. Linear time for any w. Works per
/// dimension, too.
///
/// Deviation: the paper's chunk energies u are a second score with parameters of its own. Here there is one score, and
/// u = s e with a learned number s [1], while the scan has e + r: s sets how sharply a chunk is looked at (0: its
/// mean). A shift of u would cancel (docs/decisions.md). A normalizer gets the scores of one score, [B,T], without the
/// keys: a second one would need keys of its own in the memory, and a place beside `score`. Throws heed::error if w is
/// 0.
template <class Vector, class Inner>
struct chunkwise {
    std::size_t width = 2;  // w
    Vector s;               // [1]
    HEED_NO_UNIQUE_ADDRESS Inner inner;

    using wraps = Inner;

    auto operator()(const tensor auto& scores, const auto& past, const auto& at) const  // [B,T] or [B,T,D], the same
    {
        return ops::chunks(weigh(inner, scores, past, at), at.visible(scores), s, width, at.real);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& past, const auto& at) const
    {
        if constexpr (remembers<Inner>) {
            return next_of(inner, scores, weigh(inner, scores, past, at), past, at);  // it remembers α, not β
        } else {
            return next_of(inner, scores, weights, past, at);
        }
    }

    /// Both from one α.
    auto weigh_and_advance(const tensor auto& scores, const auto& past, const auto& at) const
    {
        auto scanned = weigh_with_next(inner, scores, past, at);
        auto weights = ops::chunks(scanned.weights, at.visible(scores), s, width, at.real);
        return weights_and_next{std::move(weights), std::move(scanned.next)};
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto s = visit("s", self.s);
        auto inner = visit("inner", self.inner);
        return chunkwise<decltype(s), decltype(inner)>{self.width, std::move(s), std::move(inner)};
    }
};

template <class Vector, class Inner>
chunkwise(std::size_t, Vector, Inner) -> chunkwise<Vector, Inner>;

}  // namespace heed::normalize
