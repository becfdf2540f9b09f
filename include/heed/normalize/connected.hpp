// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include <heed/attention/weigh.hpp>
#include <heed/core/errors.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/ops/elementwise.hpp>

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
        return weigh(inner, modulated(scores, past), past.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& past, const auto& at) const
    {
        auto grown = ops::add_alike(past.history, weights);
        if constexpr (remembers<Inner>) {
            return past_attention{std::move(grown), next_of(inner, modulated(scores, past), weights, past.inner, at)};
        } else {
            return past_attention{std::move(grown), past.inner};
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::connected{visit("w", self.w), visit("inner", self.inner)};
    }

private:
    auto modulated(const tensor auto& scores, const auto& past) const
    {
        require_shape("connected", "w", shape_of(w), shape_of_rank<1>{1}, "one number for all scores");
        return ops::add_alike(scores, ops::multiply(past.history, w));
    }
};

template <class Weight, class Inner = softmax>
connected(Weight, Inner = {}) -> connected<Weight, Inner>;

}  // namespace heed::normalize
