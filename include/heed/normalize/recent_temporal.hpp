// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/concepts.hpp>
#include <heed/core/family.hpp>
#include <heed/memory.hpp>
#include <heed/normalize/inner.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>

namespace heed::normalize {

/// Temporal modulation by the last n steps only, so that older decisions are forgotten.
///
///     b_{t,j} = exp(e_{t,j}) / Σ_{k=t-n}^{t-1} exp(e_{k,j})
///     α_{t,j} = b_{t,j} / Σ_i b_{t,i}         Sankaran et al. 2016, §3, last paragraph (future work) · SPEC N4
///
/// The paper leaves open what happens while fewer than n steps have passed: these are all then, so that n = S or more
/// is `temporal`. n = 0 is `inner`. Any inner normalizer takes softmax's place; that is ours.
///
/// In the log domain nothing can be taken out of a sum again. So the last n scores form a queue of two stacks. `newer`
/// takes what comes, `newer_sum` is log Σ exp of it. `older` holds running sums: the last is that of all of `older`,
/// the one before lacks its oldest step, and so on, so that forgetting a step is dropping one. When `older` is empty
/// and a step must go, `newer` is poured into it, summed from the newest to the oldest.
///
/// Cost: three logaddexp for each score and step at most, on average (a step that pours does n at once). Memory: n + 2
/// tensors of the scores' shape. Copies of a state share them, as nobody changes them; on a tape each step's scores
/// are kept anyway. Gradients flow through all of it.
template <class Inner = softmax>
struct recent_temporal {
    std::size_t steps = 1;  // n
    [[no_unique_address]] Inner inner{};

    static constexpr bool differentiable = detail::differentiable_inside<Inner>();
    static constexpr bool random = detail::random_inside<Inner>();
    static constexpr bool ages = true;
    static constexpr bool reads_length = detail::reads_length_inside<Inner>();

    template <class History, class Past>
    struct state {
        using shared = std::shared_ptr<const History>;

        History history;                   // L, over the last n steps
        std::vector<shared> older{};       // sums: of the newest of these steps, of the two newest, ..., of all
        std::vector<shared> newer{};       // scores, the oldest first
        shared newer_sum{};                // of all of these, null where there are none
        [[no_unique_address]] Past inner;  // what the inner normalizer remembers

        /// The same with f applied to every tensor. Other states must have come as many steps.
        auto map(auto&& f, const auto&... others) const
        {
            using to_history = std::remove_cvref_t<decltype(f(history, others.history...))>;
            using to_past = std::remove_cvref_t<decltype(inner.map(f, others.inner...))>;
            if (((others.older.size() != older.size() || others.newer.size() != newer.size()) || ...)) {
                throw error("recent_temporal: states that are joined must have come the same number of steps");
            }
            recent_temporal::state<to_history, to_past> to{
                f(history, others.history...), {}, {}, {}, inner.map(f, others.inner...)};
            for (std::size_t i = 0; i < older.size(); ++i) {
                to.older.push_back(std::make_shared<const to_history>(f(*older[i], *others.older[i]...)));
            }
            for (std::size_t i = 0; i < newer.size(); ++i) {
                to.newer.push_back(std::make_shared<const to_history>(f(*newer[i], *others.newer[i]...)));
            }
            if (newer_sum) { to.newer_sum = std::make_shared<const to_history>(f(*newer_sum, *others.newer_sum...)); }
            return to;
        }
    };

    auto start(auto&& blank) const
    {
        auto history = blank(-std::numeric_limits<double>::infinity());
        auto past = start_of(inner, blank);
        return state<decltype(history), decltype(past)>{std::move(history), {}, {}, {}, std::move(past)};
    }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        return weigh(inner, ops::discount(scores, memory.history), memory.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        auto past = [&] {
            if constexpr (detail::remembers<Inner>) {
                const auto modulated = ops::discount(scores, memory.history);
                return next_of(inner, modulated, weights, memory.inner, at);
            } else {
                return no_state{};
            }
        }();
        // A first state may be plain where the scores are on a tape; from then on both are.
        using history_type = std::remove_cvref_t<decltype(ops::logaddexp(memory.history, scores))>;
        using next_state = state<history_type, decltype(past)>;
        using shared = typename next_state::shared;
        const auto taken = [&](const auto& x) -> history_type {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, history_type>) {
                return x;
            } else if constexpr (plain_tensor<decltype(scores)>) {
                return same_family(memory.history, x);
            } else {
                return same_family(scores, x);
            }
        };
        const auto share = [](history_type x) { return std::make_shared<const history_type>(std::move(x)); };
        const auto share_all = [&](const auto& from) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(from)>, std::vector<shared>>) {
                return from;
            } else {
                std::vector<shared> to;
                for (const auto& x : from) to.push_back(share(taken(*x)));
                return to;
            }
        };

        next_state next{taken(memory.history), share_all(memory.older), share_all(memory.newer), {}, std::move(past)};
        if (steps == 0) return next;
        next.newer.push_back(share(taken(scores)));
        if (next.older.size() + next.newer.size() > steps) {
            if (next.older.empty()) {
                next.older.push_back(next.newer.back());
                for (std::size_t i = next.newer.size() - 1; i-- > 1;) {  // the oldest, 0, is forgotten
                    next.older.push_back(share(ops::logaddexp(*next.newer[i], *next.older.back())));
                }
                next.newer.clear();
                next.history = *next.older.back();
                return next;
            }
            next.older.pop_back();
        }
        next.newer_sum = memory.newer_sum ? share(ops::logaddexp(*memory.newer_sum, scores)) : next.newer.back();
        next.history = next.older.empty() ? *next.newer_sum : ops::logaddexp(*next.older.back(), *next.newer_sum);
        return next;
    }

    auto thin(const tensor auto& weights, const auto& at) const requires requires { inner.thin(weights, at); }
    {
        return inner.thin(weights, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::recent_temporal{self.steps, visit("inner", self.inner)};
    }
};

recent_temporal()->recent_temporal<>;
recent_temporal(std::size_t)->recent_temporal<>;
template <class Inner>
recent_temporal(std::size_t, Inner) -> recent_temporal<Inner>;

}  // namespace heed::normalize
