// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>
#include <utility>

#include <heed/attention/normalize_hooks.hpp>
#include <heed/core/family.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/history.hpp>

namespace heed::normalize {

/// Temporal modulation by the last n steps only; older decisions are forgotten.
///
///     b_{t,j} = exp(e_{t,j}) / Σ_{k=t-n}^{t-1} exp(e_{k,j})
///     α_{t,j} = b_{t,j} / Σ_i b_{t,i}         Sankaran et al. 2016, §3, last paragraph (future work)
///
/// The paper leaves open what happens while fewer than n steps have passed. Here all of them count then, so that n = S
/// or more is `temporal`. n = 0 is `inner`. Ours: any inner normalizer may replace softmax.
///
/// In the log domain nothing can be subtracted from a sum. So the state has n sums, over the last step, the last two,
/// …, the last n, and a step is added to all of them: each becomes the sum over one step more, and the last is dropped.
/// It is two tensors, of the same shapes at every step.
///
/// Cost: n logaddexp per score and step. Memory: n numbers per score; on a tape, per step as well. Unless n is small
/// compared with the number of steps, `temporal` or `fading_temporal` cost less. Gradients flow through all of it.
template <class Inner = softmax>
struct recent_temporal {
    std::size_t steps = 1;  // n
    HEED_NO_UNIQUE_ADDRESS Inner inner{};

    using wraps = Inner;
    static constexpr bool ages = true, ignores_offset = false;

    template <class History, class Sums, class Past>
    struct state {
        History history;                    // L over the last n steps, the shape of the scores: [B,T] or [B,T,D]
        Sums sums;                          // L over the last 1, …, n-1 steps: [B,T,(n-1)D]
        HEED_NO_UNIQUE_ADDRESS Past inner;  // the inner normalizer's state

        /// The same with f applied to every tensor.
        auto map(auto&& f, const auto&... others) const
        {
            auto last = f(history, others.history...);
            auto kept = f(sums, others.sums...);
            return make(std::move(last), std::move(kept), inner.map(f, others.inner...));
        }
    };

    auto start(auto&& blank) const
    {
        constexpr double nothing = -std::numeric_limits<double>::infinity();
        auto history = blank(nothing);
        auto sums = constant_like(history, ops::recent_sums.shape_of_sums(shape_of(history), steps), nothing);
        return make(std::move(history), std::move(sums), start_of(inner, blank));
    }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        return weigh(inner, ops::discount(scores, memory.history), memory.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        auto [history, sums] = ops::recent_sums(memory.sums, scores, steps);
        if constexpr (remembers<Inner>) {
            const auto modulated = ops::discount(scores, memory.history);
            return make(std::move(history), std::move(sums), next_of(inner, modulated, weights, memory.inner, at));
        } else {
            return make(std::move(history), std::move(sums), memory.inner);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::recent_temporal{self.steps, visit("inner", self.inner)};
    }

    template <class History, class Sums, class Past>
    static state<History, Sums, Past> make(History history, Sums sums, Past past)
    {
        return {std::move(history), std::move(sums), std::move(past)};
    }
};

recent_temporal()->recent_temporal<>;
recent_temporal(std::size_t)->recent_temporal<>;
template <class Inner>
recent_temporal(std::size_t, Inner) -> recent_temporal<Inner>;

}  // namespace heed::normalize
