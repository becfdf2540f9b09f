// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/core/errors.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// Past attention is added to the scores through a learned connection, in contrast to the division of `temporal`.
///
///     u_{t,j} = e_{t,j} + w Σ_{k<t} α_{k,j}
///     α_t = inner(u_t)                        Sankaran et al. 2016, footnote 3 (an ablation)
///
/// The footnote, "adding an extra connection instead from temporal alignments", gives no formula. Ours is the smallest
/// that fits (docs/explanation/decisions.md): one learned number w [1], and the sum of the weights so far, initially 0
/// and in the shape of the scores, through which gradients flow. w = 0 is `inner`. Prefer `temporal`. Throws
/// shape_error unless w is [1].
template <class Weight, class Inner = softmax>
struct learned_temporal {
    Weight w;  // [1]
    HEED_NO_UNIQUE_ADDRESS Inner inner{};

    using wraps = Inner;

    auto start(auto&& blank) const { return past_attention{blank(0), start_of(inner, blank)}; }

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const  // [B,T] or [B,T,D]
    {
        return weigh(inner, modulated(scores, state), state.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& state, const auto& at) const
    {
        auto grown = ops::add_same_shape(state.history, weights);
        if constexpr (remembers<Inner>) {
            return past_attention{std::move(grown), next_of(inner, modulated(scores, state), weights, state.inner, at)};
        } else {
            return past_attention{std::move(grown), state.inner};
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::learned_temporal{visit("w", self.w), visit("inner", self.inner)};
    }

private:
    auto modulated(const tensor auto& scores, const auto& state) const
    {
        require_shape("learned_temporal", "w", shape_of(w), shape_of_rank<1>{1}, "one number for all scores");
        return ops::add_same_shape(scores, ops::multiply(state.history, w));
    }
};

template <class Weight, class Inner = softmax>
learned_temporal(Weight, Inner = {}) -> learned_temporal<Weight, Inner>;

}  // namespace heed::inline HEED_TARGET::normalize
