// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <heed/core/random.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/sampling.hpp>
#include <heed/ops/sums.hpp>
#include <heed/policy/concepts.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y_j = 1 at one position of each row, drawn with the probabilities softmax(e), 0 elsewhere: e [B,T] or [B,T,D] -> the
/// shape of e. No gradient: see log_probability.
struct sample_op : row_operation<sample_op> {
    static constexpr const char* name = "sample";
    static constexpr bool differentiable = false;

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::uint64_t stream, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        const std::size_t width = plan.width;
        plan.softmax(e.data, y.data);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            double *const target = plan.zeros<double>(memory), *const before = plan.zeros<double>(memory);
            auto* const where = memory.take<std::size_t>(width);
            const T* const p = y.data + at;
            plan.each_element(n,
                              [=](std::size_t i, std::size_t d) { target[d] += static_cast<double>(value_of(p[i])); });
            for (std::size_t d = 0; d < width; ++d) target[d] *= uniform(plan.stream_of(stream, b), d);
            // The last position whose cumulative sum is not above the target, never one of probability 0.
            std::fill_n(where, width, n);
            plan.each_element(n, [=](std::size_t i, std::size_t d) {
                const double chance_here = static_cast<double>(value_of(p[i]));
                if (chance_here > 0 && before[d] <= target[d]) where[d] = i / width;
                before[d] += chance_here;
            });
            detail::one_hot(n, width, plan.row_size(), where, y.data + at);
        });
    }
};
inline constexpr sample_op sample{};

/// y_j = log p_j with p = softmax(e) at the positions where `drawn` is not 0, and 0 elsewhere: e and drawn [B,T] or
/// [B,T,D] -> the shape of e.
///
///     ∂e_k += [k drawn] ∂y_k − p_k Σ_{j drawn} ∂y_j              no gradient for `drawn`
struct log_probability_op : operation<log_probability_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& drawn, const lengths_view& real)
    {
        require_shape("log_probability", "the sample", drawn.shape, e.shape, "the shape of the scores");
        real.require("log_probability", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, R> drawn, const lengths_view& real, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        const std::size_t width = plan.width;
        scratch here;
        T* const p = here.take<T>(e.size());
        plan.softmax(e.data, p);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            using std::log;
            T* const log_sum = plan.zeros<T>(memory);  // log Σ exp(e - max e) = -log of the maximum probability
            const detail::greatest_of<T> most(n, width, e.data + at, memory);
            for (std::size_t d = 0; d < width; ++d) {
                if (most.where[d] < n) log_sum[d] = -log(p[at + most.where[d] * width + d]);
            }
            kernels::detail::zero(y.data + at, plan.row_size());
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                if (drawn.data[at + i] != T(0)) y.data[at + i] = (e.data[at + i] - most.top[d]) - log_sum[d];
            });
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, R> drawn, const lengths_view& real, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e, adjoint<T, R>)
    {
        if (!d_e) return;
        const detail::row_plan plan(e.shape, real);
        scratch here;
        T* const p = here.take<T>(e.size());
        plan.softmax(e.data, p);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            auto* const sum = plan.zeros<in_double<T>>(memory);
            const auto at_drawn = [&](std::size_t i) { return drawn.data[i] != T(0) ? d_y.data[i] : T(0); };
            plan.each_element(
                n, [&](std::size_t i, std::size_t d) { sum[d] += static_cast<in_double<T>>(at_drawn(at + i)); });
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                d_e.data[at + i] += at_drawn(at + i) - p[at + i] * static_cast<T>(sum[d]);
            });
        });
    }
};
inline constexpr log_probability_op log_probability{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Hard attention: each query attends to one position, drawn at random.
///
///     s_t ~ Multinoulli(softmax(e_t)),  α_{t,j} = 1 if j = s_t, else 0        Xu et al. 2015, §4.1
///
/// A draw has no derivative, so the scores get no gradient through the weights. They are trained by the score function
/// (REINFORCE, Williams 1992): the state sums log p(s_t) over all draws, with its gradient:
///
///     ∂ E[cost] = E[ ∂cost + (cost − baseline) ∂ Σ_t log p(s_t) ]             §4.1, without the entropy term
///
///     auto [context, weights, state] = attend.step(memory, query, before);   // … and the other steps; then the cost
///     array<float, 1> excess = …;                          // [B]: cost of each row − baseline, plain numbers
///     tape.backward(ops::add(cost, normalize::score_function_term(state.normalize, excess)));
///
/// The baseline may be any number that does not depend on the draws of its row; Xu et al. use a running mean of costs.
///
/// A draw depends only on (seed, step, row): use a new seed for each batch. `greedy`, for a trained model, takes the
/// most probable position instead (as in `argmax`). Per dimension: one draw for each dimension. A row with no score
/// above -inf gets weights 0 and log p = 0. In a window the draw and its log p are the window's.
struct hard {
    std::uint64_t seed = 1;
    bool greedy = false;

    static constexpr normalizer_traits traits{.shift_invariant = true, .random = true, .differentiable = false};

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

        auto map(auto&& f, const auto&... others) const
        {
            return hard::make(f(log_probability, others.log_probability...));
        }
    };

    auto start(auto&& blank) const { return make(blank(0.0)); }

    auto operator()(const tensor auto& scores, const auto&, const auto& at) const
    {
        const auto& visible = at.visible(scores);
        return greedy ? ops::argmax(visible, at.real)
                      : ops::sample(visible, at.real, ops::stream_of(seed, at.step, ops::chance::position));
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& before, const auto& at) const
    {
        return make(ops::add(before.log_probability, ops::log_probability(at.visible(scores), weights, at.real)));
    }

    static auto parameters(auto& self, auto&&) { return normalize::hard{self.seed, self.greedy}; }

    template <class Sum>
    static state<Sum> make(Sum sum)
    {
        return {std::move(sum)};
    }
};

/// Σ_b excess_b Σ_t log p(s_t of row b). Added to a cost, it makes the gradient an unbiased estimate of the gradient of
/// the expected cost. excess [B]: each row's cost minus a baseline; or its reward minus a baseline if the sum is
/// maximized. Throws shape_error for a different shape.
template <class Sum, plain_tensor Excess>
auto score_function_term(const hard::state<Sum>& state, const Excess& excess)
{
    const std::size_t B = shape_of(state.log_probability)[0];
    require_shape<1>("score_function_term", "the excess", shape_of(excess), {B}, "one number for each row");
    return ops::dot(state.of_row(), excess);
}

}  // namespace heed::inline HEED_TARGET::normalize
