// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <utility>

#include <heed/kernels/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/softmax.hpp>
#include <heed/policy/state.hpp>

namespace heed::inline HEED_TARGET::normalize {

/// The state of `temporal` and its relatives.
template <class History, class Past = no_state>
struct past_attention {
    History history;                      // one number per score: the shape of the scores
    HEED_NO_UNIQUE_ADDRESS Past inner{};  // the inner normalizer's state

    /// f applied to every tensor (and to the matching ones of `others`).
    auto map(auto&& f, const auto&... others) const
    {
        return normalize::past_attention{f(history, others.history...), inner.map(f, others.inner...)};
    }
};
template <class History, class Past = no_state>
past_attention(History, Past = {}) -> past_attention<History, Past>;

/// Attention modulated by its past: positions that were attended to before get less weight.
///
///     b_{1,j} = exp(e_{1,j}),  b_{t,j} = exp(e_{t,j}) / Σ_{k<t} exp(e_{k,j})
///     α_{t,j} = b_{t,j} / Σ_i b_{t,i}         Sankaran et al. 2016, eq. 6-8
///
/// Computed in the log domain, where exp cannot overflow (docs/explanation/decisions.md):
///
///     L_1 = -∞,  L_t = logaddexp(L_{t-1}, e_{t-1})
///     α_t = softmax(u_t),  u_1 = e_1,  u_t = e_t - L_t
///
/// The state L is one number per score and is reset for each sentence. Gradients flow through it. A term that is added
/// to position j's score at every step cancels from the second step on. No deviation.
struct temporal {
    using kernel_tag = kernels::temporal_softmax_of_row;
    template <class History>
    using state = past_attention<History>;  // L

    static auto make(auto history) { return past_attention{std::move(history)}; }

    auto start(auto&& blank) const { return past_attention{blank(-std::numeric_limits<double>::infinity())}; }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const  // [B,T] or [B,T,D]
    {
        return ops::softmax(at.visible(ops::subtract_history(scores, memory.history)), at.real);
    }

    auto advance(const tensor auto& scores, const tensor auto&, const auto& memory, const auto&) const
    {
        return make(ops::logaddexp(memory.history, scores));
    }

    /// For all queries at once: see kernels/tiles/temporal.hpp.
    ops::modulated_by_past tile_rule() const { return {}; }

    static auto parameters(auto&, auto&&) { return normalize::temporal{}; }
};

}  // namespace heed::inline HEED_TARGET::normalize
