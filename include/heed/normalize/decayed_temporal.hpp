// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y = e − strength·L, and e itself where L = -inf: e and L [...] -> [...]. With strength 1 this is
/// ops::subtract_history.
///
///     ∂e += ∂y,  ∂L −= strength ∂y where there is a history
inline constexpr binary<functions::subtract_history, double> subtract_scaled_history{
    "subtract_scaled_history", "the history", "the shape of the scores"};

/// y = log(exp(L − decay) + exp(e)): L and e [...] -> [...]. Adds a step to the history, after weighting the past by
/// exp(−decay). With decay 0 this is ops::logaddexp.
///
///     ∂L += exp(L − decay − y) ∂y,  ∂e += exp(e − y) ∂y
inline constexpr binary<functions::logaddexp, double> fade{"fade", "the added term", "the shape of the history"};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Temporal modulation of any strength, with a decaying history.
///
///     L_1 = -∞,  L_t = logaddexp(L_{t-1} - δ, e_{t-1})
///     α_t = inner(u_t),  u_1 = e_1,  u_t = e_t - β L_t        after Sankaran et al. 2016, eq. 6-8
///
/// Both numbers are our additions (docs/explanation/decisions.md). β = 1 and δ = 0 is the paper's `temporal`; β = 0 is
/// `inner` alone; β < 0 draws the query back to previous positions. A step k steps before the last one has the factor
/// exp(-δ k); δ = infinity keeps only the last step, which is `recent_temporal{1}`. The state is one number per
/// score, through which gradients flow. Throws heed::error at `start` if β is not finite or δ is negative or NaN.
template <class Inner = softmax>
struct decayed_temporal {
    double strength = 1;  // β
    double decay = 0;     // δ
    HEED_NO_UNIQUE_ADDRESS Inner inner{};

    using wraps = Inner;
    static constexpr normalizer_traits traits = traits_around_normalizer<Inner>([](normalizer_traits& own) {
        own.state_decays = true;
        own.shift_invariant = false;
    });

    auto start(auto&& blank) const
    {
        if (!std::isfinite(strength)) {
            throw error("decayed_temporal: the strength is " + std::to_string(strength) + " but must be finite");
        }
        if (!(decay >= 0)) {
            throw error("decayed_temporal: the decay is " + std::to_string(decay) + " but must be 0 or more");
        }
        return past_attention{blank(-std::numeric_limits<double>::infinity()), start_of(inner, blank)};
    }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const  // [B,T] or [B,T,D]
    {
        return weigh(inner, ops::subtract_scaled_history(scores, memory.history, strength), memory.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        auto grown = ops::fade(memory.history, scores, decay);
        if constexpr (remembers<Inner>) {
            const auto modulated = ops::subtract_scaled_history(scores, memory.history, strength);
            return past_attention{std::move(grown), next_of(inner, modulated, weights, memory.inner, at)};
        } else {
            return past_attention{std::move(grown), memory.inner};
        }
    }

    /// For all queries at once over softmax: see kernels/tiles/temporal.hpp.
    auto tile_rule() const
    {
        if constexpr (std::is_same_v<Inner, softmax>) {
            return ops::modulated_by_past{strength, decay};
        } else {
            return kernels::tiles::no_rule{};
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::decayed_temporal{self.strength, self.decay, visit("inner", self.inner)};
    }
};

template <class Inner = softmax>
decayed_temporal(double = 1, double = 0, Inner = {}) -> decayed_temporal<Inner>;

}  // namespace heed::inline HEED_TARGET::normalize
