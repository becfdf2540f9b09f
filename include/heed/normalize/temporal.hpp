// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>

#include <heed/attention/concepts.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/softmax.hpp>

namespace heed::normalize {

/// Attention modulated by its own past: positions that were attended to before count for less.
///
///     b_{1,j} = exp(e_{1,j})
///     b_{t,j} = exp(e_{t,j}) / Σ_{k<t} exp(e_{k,j})
///     α_{t,j} = b_{t,j} / Σ_i b_{t,i}         Sankaran et al. 2016, eq. 6-8
///
/// Computed in the log domain, where nothing overflows (docs/decisions.md):
///
///     L_1 = -∞,  L_t = logaddexp(L_{t-1}, e_{t-1})
///     α_t = softmax(u_t),  u_1 = e_1,  u_t = e_t - L_t
///
/// The state L of a sentence is one number per position (per position and dimension for scores per dimension), starts
/// anew with each sentence and has no parameters. Gradients flow through it. No deviation.
///
/// A term that is added to position j's score at every step cancels from the second step on.
struct temporal {
    using in_kernels = kernels::temporal_softmax_of_row;
    template <class History>
    struct state {
        History history;  // L, the shape of the scores

        /// The same with f applied to every tensor (and to the matching ones of `others`): a beam selects hypotheses
        /// this way, and a window its positions.
        auto map(auto&& f, const auto&... others) const { return temporal::make(f(history, others.history...)); }
    };

    auto start(auto&& blank) const { return make(blank(-std::numeric_limits<double>::infinity())); }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        return ops::softmax(at.visible(ops::discount(scores, memory.history)), at.real);
    }

    auto advance(const tensor auto& scores, const tensor auto&, const auto& memory, const auto&) const
    {
        return make(ops::logaddexp(memory.history, scores));
    }

    /// All queries at once: see kernels/tiles/temporal.hpp.
    ops::modulated_by_past by_tiles() const { return {}; }

    static auto parameters(auto&, auto&&) { return normalize::temporal{}; }

    template <class History>
    static state<History> make(History history)
    {
        return {std::move(history)};
    }
};

}  // namespace heed::normalize
