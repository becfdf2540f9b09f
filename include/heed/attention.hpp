// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/concepts.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/fused.hpp>
#include <heed/ops/shape.hpp>

/// Attention: three policies make a mechanism.
///
///     e = score(query, key)          how well does this query match that source position?
///     α = normalize(e, history)      how do scores become weights?
///     c = combine(α, values)         how do weights and values become one context?
///
/// `on` does once a batch what does not depend on the query; `start` gives what the mechanism remembers before the
/// first step; `step` answers one query. Nothing is hidden in the layer: state goes in and comes out. Plain tensors run
/// without a tape; as soon as the policies' parameters or the tensors are taped, everything trains.
namespace heed {

/// What one batch of source sentences offers to be attended to.
template <class Values, class Keys>
struct memory {
    Values values;  // [B,T,D], zeros in the padding
    Keys keys;      // what the score's prepare made of them; [B,T,A] for most
    lengths real;   // the number of real positions of each row

    std::size_t batch() const { return shape_of(values)[0]; }
    std::size_t positions() const { return shape_of(values)[1]; }
    std::size_t width() const { return shape_of(values)[2]; }
};

/// What one query gets.
template <class Context, class Weights, class State>
struct attended {
    Context context;  // [B,D]
    Weights weights;  // [B,T], or [B,T,D] per dimension
    State state;      // for the next step
};

/// What one query gets when nobody looks at the weights.
template <class Context, class State>
struct read_out {
    Context context;  // [B,D]
    State state;      // for the next step
};

/// What a normalizer may know besides the scores.
template <class Query>
struct moment {
    const lengths& real;  // real positions of each row
    const Query& query;   // as the score projected it, where it projects
    std::size_t step;     // 0 for the first query
};

template <class Score, class Normalize, class Combine>
struct attention {
    Score score;
    Normalize normalize;
    Combine combine;

    static_assert(check_score_policy<Score>());
    static_assert(check_normalize_policy<Normalize>());
    static_assert(check_combine_policy<Combine>());
    static_assert(
        [] {
            if constexpr (detail::declares_weights<Score> && detail::declares_weights<Combine>) {
                return Score::weights == Combine::weights;
            } else {
                return true;  // said above
            }
        }(),
        "heed: this score and this combiner do not fit: a score per position goes with combine::weighted_sum, a score "
        "per "
        "dimension with combine::elementwise_sum");

    /// The query-independent part, once a batch: annotations [B,T,D] and the number of real positions of each row.
    /// Values behind a row's length are cleared: whatever is there, NaN included, changes no result and no gradient.
    auto on(const tensor auto& annotations, lengths real) const
    {
        static_assert(rank_of<decltype(annotations)> == 3, "heed: attention::on takes annotations [B,T,D]");
        const auto shape = shape_of(annotations);
        real.require("attention::on", shape[0], shape[1]);
        auto values = ops::clear_padding(annotations, real);
        return prepared(std::move(values), std::move(real));
    }

    /// The same for a batch without padding.
    auto on(const tensor auto& annotations) const
    {
        return on(annotations, lengths::full(shape_of(annotations)[0], shape_of(annotations)[1]));
    }

    /// What is remembered before the first step of a batch.
    auto start(const auto& memory) const
    {
        constexpr std::size_t rank = Score::weights == weight_kind::per_position ? 2 : 3;
        const auto blank = [&memory](double value) {
            shape_of_rank<rank> shape{memory.batch(), memory.positions()};
            if constexpr (rank == 3) shape[2] = memory.width();
            return constant_like(memory.keys, shape, value);
        };
        if constexpr (requires { normalize.start(blank); }) {
            return attention_state<decltype(normalize.start(blank))>{normalize.start(blank), 0};
        } else {
            return attention_state<no_state>{};
        }
    }

    /// One query [B,Q] (whatever the score takes): its context, its weights, and the state for the next.
    auto step(const auto& memory, const auto& query, const auto& state) const
    {
        return answer<true>(memory, project(query), state);
    }

    /// The same context and state; the weights are not kept. Training per-dimension attention so needs no [B,T,D] a
    /// step.
    auto read(const auto& memory, const auto& query, const auto& state) const
    {
        return answer<false>(memory, project(query), state);
    }

    /// The specification of `step`: score, normalize and combine one after the other, without fused kernels.
    auto compose(const auto& memory, const auto& query, const auto& state) const
    {
        return composed(memory, project(query), state);
    }

    /// Many queries at once: queries [B,S,Q] -> contexts [B,S,D], with their state running from the first to the last.
    /// What does not depend on the step before is done for all queries in one product.
    auto operator()(const auto& memory, const auto& queries) const
    {
        const auto projected = project(queries);
        static_assert(rank_of<decltype(projected)> == 3, "heed: attention of many queries takes queries [B,S,Q]");
        auto now = start(memory);
        auto first = answer<false>(memory, ops::step_of(projected, std::size_t{0}), now);
        std::vector<decltype(first.context)> contexts;
        contexts.reserve(shape_of(projected)[1]);
        contexts.push_back(std::move(first.context));
        now = std::move(first.state);
        for (std::size_t s = 1; s < shape_of(projected)[1]; ++s) {
            auto next = answer<false>(memory, ops::step_of(projected, s), now);
            contexts.push_back(std::move(next.context));
            now = std::move(next.state);
        }
        return ops::swap_axes(ops::stack(contexts));
    }

    /// `step` on plain tensors into results that the caller keeps. From the second call of one shape on, a mechanism
    /// with fused kernels allocates nothing. `state` may be `result.state`.
    template <class Result>
    void step_into(Result& result, const auto& memory, const auto& query, const auto& state) const
    {
        if constexpr (fused_form<attention>::exists) {
            fused_form<attention>::step_into(*this, result, memory, query, state);
        } else {
            auto next = step(memory, query, state);
            result.context = std::move(next.context);
            result.weights = std::move(next.weights);
            result.state = std::move(next.state);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::attention{visit("score", self.score), visit("normalize", self.normalize),
                               visit("combine", self.combine)};
    }

    /// What `step` does with a query after the score has projected it.
    template <bool with_weights>
    auto answer(const auto& memory, const auto& projected, const auto& state) const
    {
        if constexpr (fused_form<attention>::exists) {
            return fused_form<attention>::template step<with_weights>(*this, memory, projected, state);
        } else if constexpr (with_weights) {
            return composed(memory, projected, state);
        } else {
            auto all = composed(memory, projected, state);
            return read_out<decltype(all.context), decltype(all.state)>{std::move(all.context), std::move(all.state)};
        }
    }

    auto project(const auto& query) const
    {
        if constexpr (requires { score.project(query); }) {
            return score.project(query);
        } else {
            return query;
        }
    }

private:
    template <class Values>
    auto prepared(Values values, lengths real) const
    {
        if constexpr (requires { score.prepare(values); }) {
            auto keys = score.prepare(values);
            auto in_family = same_family(keys, std::move(values));
            return memory<decltype(in_family), decltype(keys)>{std::move(in_family), std::move(keys), std::move(real)};
        } else {
            auto keys = values;
            return memory<Values, Values>{std::move(values), std::move(keys), std::move(real)};
        }
    }

    auto composed(const auto& memory, const auto& projected, const auto& state) const
    {
        const moment<std::remove_cvref_t<decltype(projected)>> at{memory.real, projected, state.step};
        const auto scores = [&] {
            if constexpr (requires { score.match(projected, memory.keys); }) {
                return score.match(projected, memory.keys);
            } else {
                return score(projected, memory.keys);
            }
        }();
        static_assert(
            rank_of<decltype(scores)> == (Score::weights == weight_kind::per_position ? 2 : 3),
            "heed: the score's result has the wrong rank: a score per position gives [B,T], a score per dimension "
            "gives [B,T,D]");
        if constexpr (requires { normalize(scores, state.normalize, at); }) {
            auto weights = normalize(scores, state.normalize, at);
            auto history = normalize.advance(scores, weights, state.normalize, at);
            return result(memory, std::move(weights), std::move(history), state.step + 1);
        } else {
            return result(memory, normalize(scores, at), no_state{}, state.step + 1);
        }
    }

    template <class Weights, class History>
    auto result(const auto& memory, Weights weights, History history, std::size_t step) const
    {
        auto context = combine(weights, memory.values);
        return attended<decltype(context), Weights, attention_state<History>>{
            std::move(context), std::move(weights), {std::move(history), step}};
    }
};

template <class Score, class Normalize, class Combine>
attention(Score, Normalize, Combine) -> attention<Score, Normalize, Combine>;

}  // namespace heed
