// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include <heed/attention/concepts.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/sampling.hpp>
#include <heed/ops/sums.hpp>

namespace heed::normalize {

/// Hard attention: each query looks at one position, drawn at random.
///
///     s_t ~ Multinoulli(softmax(e_t)),  α_{t,j} = 1 if j = s_t, else 0        Xu et al. 2015, §4.1
///
/// A draw has no derivative, so the scores get no gradient through the weights. They learn by the score function
/// (REINFORCE, Williams 1992), for which the state sums log p(s_t) over all draws, with its gradient:
///
///     ∂ E[cost] = E[ ∂cost + (cost − baseline) ∂ Σ_t log p(s_t) ]             §4.1, without the entropy term
///
///     auto [context, weights, state] = attend.step(memory, query, before);   // … and the other steps; then the cost
///     array<float, 1> excess = …;                          // [B]: cost of each row − baseline, plain numbers
///     tape.backward(ops::add(cost, normalize::score_function_term(state.normalize, excess)));
///
/// The baseline may be anything that does not depend on the draws of that row; Xu et al. use a running mean of costs.
///
/// A draw depends on (seed, step, row) alone: use a new seed for each batch. `greedy` takes the most probable position
/// instead: for a trained model (as `argmax`). Per dimension: one draw for each dimension.
/// A row without any position, or with nothing but -inf, gets weights 0 and log p = 0.
/// In a window, `local_m{D, hard{}}`, the draw and its log p are the window's.
struct hard {
    std::uint64_t seed = 1;
    bool greedy = false;

    static constexpr bool ignores_offset = true;
    static constexpr bool differentiable = false;
    static constexpr bool random = true;

    template <class Sum>
    struct state {
        Sum log_probability;  // the shape of the scores: Σ_t log p(s_t) over the steps that drew this position

        /// Σ log p over all draws of each row, [B].
        auto of_row() const
        {
            if constexpr (rank_of<Sum> == 2) {
                return ops::sum_last(log_probability);
            } else {
                return ops::sum_last(ops::sum_last(log_probability));
            }
        }

        /// The same with f applied to the tensor (and to the matching ones of `others`).
        auto map(auto&& f, const auto&... others) const
        {
            return hard::make(f(log_probability, others.log_probability...));
        }
    };

    auto start(auto&& blank) const { return make(blank(0.0)); }

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const
    {
        const auto& visible = at.visible(scores);
        return greedy ? ops::greatest(visible, at.real)
                      : ops::sample(visible, at.real, ops::stream_of(seed, at.step, ops::chance::position));
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& past, const auto& at) const
    {
        return make(ops::add(past.log_probability, ops::log_probability(at.visible(scores), weights, at.real)));
    }

    static auto parameters(auto& self, auto&&) { return normalize::hard{self.seed, self.greedy}; }

    template <class Sum>
    static state<Sum> make(Sum sum)
    {
        return {std::move(sum)};
    }
};

/// Σ_b excess_b Σ_t log p(s_t of row b). Added to a cost, it makes the gradient an unbiased estimate of the expected
/// cost's. excess [B]: each row's cost minus a baseline; or its reward minus a baseline if the sum is maximised.
template <class Sum, plain_tensor Excess>
auto score_function_term(const hard::state<Sum>& past, const Excess& excess)
{
    using T = element_of<Sum>;
    const auto shape = shape_of(past.log_probability);
    require_shape<1>("score_function_term", "the excess", shape_of(excess), {shape[0]}, "one number for each row");
    array<T, rank_of<Sum>> factors(shape);
    const std::size_t row = factors.size() / (shape[0] == 0 ? 1 : shape[0]);
    for (std::size_t i = 0; i < factors.size(); ++i) factors.data()[i] = view_of(excess).data[i / row];
    return ops::inner(past.log_probability, factors);
}

}  // namespace heed::normalize
