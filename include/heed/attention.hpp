// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heed/at_once.hpp>
#include <heed/concepts.hpp>
#include <heed/core/family.hpp>
#include <heed/core/storage.hpp>
#include <heed/fused.hpp>
#include <heed/memory.hpp>
#include <heed/score/hooks.hpp>

/// Attention: three policies make a mechanism.
///
///     e = score(query, key)          how well does this query match that source position?
///     α = normalize(e, history)      how do scores become weights?
///     c = combine(α, values)         how do weights and values become one context?
///
/// `on` does once per batch what does not depend on the query; `start` returns what the mechanism remembers before the
/// first step; `step` answers one query. Nothing is hidden in the layer: state goes in and comes out. Plain tensors run
/// without a tape; as soon as the policies' parameters or the tensors are taped, everything trains.
namespace heed {

template <class Score, class Normalize, class Combine>
struct attention {
    Score score;
    Normalize normalize;
    Combine combine;

    static_assert(check_score_policy<Score>());
    static_assert(check_normalize_policy<Normalize>());
    static_assert(check_combine_policy<Combine>());
    // What one of them lacks is said above.
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::different_weights,
                  HEED_SAYS_DIFFERENT_WEIGHTS);

    /// The query-independent part, once per batch: annotations [B,T,D] and the number of real positions of each row.
    /// Values behind a row's length are cleared: whatever is there, NaN included, changes no result and no gradient.
    auto on(const tensor auto& annotations, lengths real) const
    {
        static_assert(rank_of<decltype(annotations)> == 3, "heed: attention::on takes annotations [B,T,D]");
        const auto shape = shape_of(annotations);
        real.require("attention::on", shape[0], shape[1]);
        auto values = ops::clear_padding(annotations, real);
        return on_cleared(values, values, std::move(real), no_mask{});
    }

    /// The same for a batch without padding.
    auto on(const tensor auto& annotations) const
    {
        return on(annotations, lengths::full(shape_of(annotations)[0], shape_of(annotations)[1]));
    }

    /// The same where any position may be missing, not only the last ones: mask [B,T], true = attend.
    auto on(const tensor auto& annotations, boolean_mask<2> mask) const
    {
        static_assert(rank_of<decltype(annotations)> == 3, "heed: attention::on takes annotations [B,T,D]");
        auto values = ops::clear_hidden(annotations, mask);
        auto real = lengths::full(mask.shape()[0], mask.shape()[1]);
        return on_cleared(values, values, std::move(real), std::move(mask));
    }

    /// Keys made of other annotations than the values: both [B,T,.], cleared behind each row's length.
    auto on(const tensor auto& annotations, const tensor auto& values, lengths real) const
    {
        require_pairs(annotations, values);
        real.require("attention::on", shape_of(annotations)[0], shape_of(annotations)[1]);
        auto cleared = ops::clear_padding(annotations, real);
        auto cleared_values = ops::clear_padding(values, real);
        return on_cleared(std::move(cleared), std::move(cleared_values), std::move(real), no_mask{});
    }

    /// The same for a batch without padding.
    auto on(const tensor auto& annotations, const tensor auto& values) const
    {
        return on(annotations, values, lengths::full(shape_of(annotations)[0], shape_of(annotations)[1]));
    }

    /// The same where any position may be missing: mask [B,T], true = attend.
    auto on(const tensor auto& annotations, const tensor auto& values, boolean_mask<2> mask) const
    {
        require_pairs(annotations, values);
        auto cleared = ops::clear_hidden(annotations, mask);
        auto cleared_values = ops::clear_hidden(values, mask);
        auto real = lengths::full(mask.shape()[0], mask.shape()[1]);
        return on_cleared(std::move(cleared), std::move(cleared_values), std::move(real), std::move(mask));
    }

    /// What is remembered before the first step of a batch.
    auto start(const auto& memory) const { return start(memory, heed::score::over::start(score, memory)); }

    /// The same with another first state of the score: the coverage embeddings of the source words, say.
    template <class Past>
    auto start(const auto& memory, Past past) const
    {
        constexpr std::size_t rank = Score::weights == weight_kind::per_position ? 2 : 3;
        shape_of_rank<rank> shape{memory.batch(), memory.positions()};
        if constexpr (Score::weights == weight_kind::per_dimension) shape[2] = memory.width();
        if constexpr (Score::weights == weight_kind::per_group) shape[2] = score.groups();
        const auto blank = [&memory, &shape](double value) { return constant_like(memory.keys, shape, value); };
        auto history = start_of(normalize, blank);
        return attention_state<decltype(history), Past>{std::move(history), 0, std::move(past)};
    }

    /// One query [B,Q] (whatever the score takes): its context, its weights, and the state for the next. `mask` says
    /// what this query may see: boolean_mask<2>, additive_mask, or lengths (as many positions of each row).
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer<true>(memory, project(query), detail::given_query{query}, state, mask);
    }

    /// The same context and state; the weights are not kept. Training per-dimension attention so needs no [B,T,D] a
    /// step.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer<false>(memory, project(query), detail::given_query{query}, state, mask);
    }

    /// The specification of `step`: score, normalize and combine one after the other, without fused kernels.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto& projected = project(query);
        return detail::going_on(state, [&](const auto& now) {
            return composed<true>(memory, projected, detail::given_query{query}, now, mask);
        });
    }

    /// Many queries at once: queries [B,S,Q] -> contexts [B,S,D], with their state running from the first to the last.
    /// What does not depend on the step before is done for all queries in one product. `mask`: causal{}, or a mask with
    /// a row for each query, or one for all of them. No query, S = 0, gives no context, [B,0,D].
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return read_all(memory, queries, start(memory), mask).contexts;
    }

    /// The same from a state of the caller's (a first coverage, or the state after other queries), with the state after
    /// the last query:
    ///
    ///     auto [contexts, state] = attend.read_all(memory, queries, attend.start(memory, past));
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& queries, const auto& state, const Mask& mask = {}) const
    {
        require_fits<decltype(memory)>();
        const auto& projected = project(queries);
        static_assert(rank_of<decltype(projected)> == 3, "heed: attention of many queries takes queries [B,S,Q]");
        if constexpr (detail::at_once<Score, Normalize, Combine, std::remove_cvref_t<decltype(projected)>,
                                      std::remove_cvref_t<decltype(memory)>, Mask>) {
            auto contexts = detail::answers_at_once(score, normalize, combine, memory, projected, mask);
            auto last = state;
            last.step += shape_of(projected)[1];
            return all_read<decltype(contexts), decltype(last)>{std::move(contexts), std::move(last)};
        } else {
            return one_by_one(memory, queries, projected, state, mask);
        }
    }

    /// `step` on plain tensors into results that the caller keeps. From the second call of one shape on, a mechanism
    /// with a fused or a kept form (fused.hpp) allocates nothing. `state` may be `result.state`.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const auto& memory, const auto& query, const auto& state,
                   const Mask& mask = {}) const
    {
        require_fits<decltype(memory)>();
        if constexpr (fused_form<attention>::exists && unmasked<decltype(memory), Mask>) {
            fused_form<attention>::step_into(*this, result, memory, memory.real, query, state);
        } else if constexpr (kept_form<attention>::exists && unmasked<decltype(memory), Mask> &&
                             plain_tensor<decltype(result.context)>) {
            kept_form<attention>::step_into(*this, result, memory, memory.real, query, state);
        } else {
            auto next = step(memory, query, state, mask);
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

    /// What `step` does with a query after the score has projected it; `ask()` gives the query itself.
    template <bool with_weights, class Mask = no_mask>
    auto answer(const auto& memory, const auto& projected, const auto& ask, const auto& state,
                const Mask& mask = {}) const
    {
        require_fits<decltype(memory)>();
        return detail::going_on(
            state, [&](const auto& now) { return answered<with_weights>(memory, projected, ask, now, mask); });
    }

    /// What the score makes of a query; the query itself, not a copy, where it makes nothing of it.
    decltype(auto) project(const auto& query) const
    {
        if constexpr (requires { score.project(query); }) {
            return score.project(query);
        } else {
            return (query);
        }
    }

private:
    template <class Memory, class Mask>
    static constexpr bool unmasked = std::is_same_v<Mask, no_mask>&&
        std::is_same_v<std::remove_cvref_t<decltype(std::declval<Memory>().mask)>, no_mask>;

    /// By a kernel if there is one for this memory and this mask, else as composed.
    template <bool with_weights, class Mask>
    auto answered(const auto& memory, const auto& projected, const auto& ask, const auto& state, const Mask& mask) const
    {
        if constexpr (fused_form<attention>::exists && unmasked<decltype(memory), Mask>) {
            return fused_form<attention>::template step<with_weights>(*this, memory, memory.real, projected, state);
        } else if constexpr (fused_form<attention>::exists && unmasked<decltype(memory), no_mask> &&
                             std::is_same_v<Mask, lengths> && !detail::remembers<Normalize>) {
            // A history counts every score, also of what this query may not see: that is not what the kernels do.
            return fused_form<attention>::template step<with_weights>(
                *this, memory, detail::shortened(mask, memory.real), projected, state);
        } else {
            return composed<with_weights>(memory, projected, ask, state, mask);
        }
    }

    /// Rows that share a memory are answered by kernels alone.
    template <class Memory, bool by_kernel = true>
    static constexpr void require_fits()
    {
        static_assert(!shared_by_rows<std::remove_cvref_t<Memory>> ||
                          (by_kernel && requires { requires fused_form<attention>::shares_memory; }),
                      "heed: a shared_memory is asked by step, read, step_into or many queries at once, without a mask "
                      "for a query, of additive scores under softmax or temporal; others need a memory with a row for "
                      "each query");
        static_assert(detail::keys_train<Score, std::remove_cvref_t<Memory>>(), HEED_SAYS_KEYS_DO_NOT_TRAIN);
    }

    static void require_pairs(const tensor auto& annotations, const tensor auto& values)
    {
        static_assert(rank_of<decltype(annotations)> == 3 && rank_of<decltype(values)> == 3,
                      "heed: attention::on takes annotations [B,T,D] and values [B,T,D]");
        const auto shape = shape_of(annotations);
        require_shape("attention::on", "the values", shape_of(values), {shape[0], shape[1], shape_of(values)[2]},
                      "one for each annotation");
    }

    /// What `on` does after clearing: annotations and values are zero already wherever nothing may be attended to.
    template <class Annotations, class Values, class Mask = no_mask>
    auto on_cleared(const Annotations& annotations, Values values, lengths real, Mask mask) const
    {
        if constexpr (requires { score.prepare(annotations); }) {
            auto keys = score.prepare(annotations);
            auto in_family = same_family(keys, std::move(values));
            return memory<decltype(in_family), decltype(keys), Mask>{std::move(in_family), std::move(keys),
                                                                     std::move(real), std::move(mask)};
        } else {
            return memory<Values, Annotations, Mask>{std::move(values), annotations, std::move(real), std::move(mask)};
        }
    }

    /// Many queries, each after the one before.
    template <class Mask>
    auto one_by_one(const auto& memory, const auto& queries, const auto& projected, const auto& state,
                    const Mask& mask) const
    {
        const std::size_t B = shape_of(projected)[0], S = shape_of(projected)[1];
        const auto answer_to = [&](std::size_t s, const auto& now) {
            const detail::given_query_of_step ask{queries, s};
            return answer<false>(memory, detail::part_of_step(projected, s), ask, now,
                                 detail::mask_of_step(mask, s, S, memory.real));
        };
        auto first = answer_to(0, state);
        if (S == 0) {  // that was a query of zeros: only the combiner knows how wide a context is
            auto none = constant_like(first.context, shape_of_rank<3>{B, 0, shape_of(first.context)[1]}, 0.0);
            auto same = detail::in_family_of<decltype(first.state)>(first.context, state);
            return all_read<decltype(none), decltype(same)>{std::move(none), std::move(same)};
        }
        if constexpr (plain_tensor<decltype(first.context)>) {
            const std::size_t D = shape_of(first.context)[1];
            auto all = storage_for<element_of<decltype(first.context)>, 3>({B, S, D});
            ops::put_step(all, 0, first.context);
            if constexpr (requires { fused_form<attention>::answers_into; } && unmasked<decltype(memory), Mask>) {
                const auto by_step = ops::swap_axes(projected);
                for (std::size_t s = 1; s < S; ++s) {
                    fused_form<attention>::answer_into(*this, first, memory, memory.real, view_of(by_step)[s].data,
                                                       first.state);
                    ops::put_step(all, s, first.context);
                }
            } else {
                for (std::size_t s = 1; s < S; ++s) {
                    first = answer_to(s, first.state);
                    ops::put_step(all, s, first.context);
                }
            }
            return all_read<decltype(all), decltype(first.state)>{std::move(all), std::move(first.state)};
        } else {
            auto now = std::move(first.state);
            std::vector<decltype(first.context)> contexts;
            contexts.reserve(S);
            contexts.push_back(std::move(first.context));
            for (std::size_t s = 1; s < S; ++s) {
                auto next = answer_to(s, now);
                contexts.push_back(std::move(next.context));
                now = std::move(next.state);
            }
            auto all = ops::swap_axes(ops::stack(contexts));
            return all_read<decltype(all), decltype(now)>{std::move(all), std::move(now)};
        }
    }

    template <bool with_weights, class Mask>
    auto composed(const auto& memory, const auto& projected, const auto& ask, const auto& state, const Mask& mask) const
    {
        require_fits<decltype(memory), false>();
        if constexpr (std::is_same_v<Mask, lengths>) {
            return seen<with_weights>(memory, detail::shortened(mask, memory.real), projected, ask, state, no_mask{});
        } else {
            return seen<with_weights>(memory, memory.real, projected, ask, state, mask);
        }
    }

    template <bool with_weights, class Mask>
    auto seen(const auto& memory, const lengths& real, const auto& projected, const auto& ask, const auto& state,
              const Mask& mask) const
    {
        const no_focus nowhere{};
        const moment<std::remove_cvref_t<decltype(ask)>, std::remove_cvref_t<decltype(memory.mask)>, Mask> at{
            real, state.step, ask, memory.mask, mask, nowhere};
        auto past = heed::score::over::recall(score, state.score, at);
        if constexpr (requires { normalize.focus(at, memory.positions()); }) {
            const auto focus = normalize.focus(at, memory.positions());
            const window& where = focus.where;
            const auto cut = [&where](const auto& x) { return ops::window_of(x, where); };
            const auto source_there = detail::mask_within(memory.mask, where);
            const auto mask_there = detail::mask_within(mask, where);
            const auto at_there = at.within(where.count, source_there, mask_there, focus);
            const auto remembered = detail::along_positions{[&](const auto& x) {
                auto must = shape_of(x);
                must[0] = memory.batch();
                must[1] = memory.positions();
                require_shape("attention", "the state", shape_of(x), must, "made by start() of the same memory");
                return cut(x);
            }};
            const auto history = state.normalize.map(remembered);
            auto part =
                weighed(cut(memory.keys), cut(memory.values), projected, past.map(remembered), history, at_there);
            auto put = [&where](const auto& whole, const auto& there) { return ops::put_window(whole, there, where); };
            auto next = state.normalize.map(put, part.history);
            auto weights = ops::spread_window(part.weights, where, memory.positions());
            return result<with_weights>(std::move(part.context), std::move(weights), std::move(next), std::move(past),
                                        at);
        } else {
            auto all = weighed(memory.keys, memory.values, projected, past, state.normalize, at);
            return result<with_weights>(std::move(all.context), std::move(all.weights), std::move(all.history),
                                        std::move(past), at);
        }
    }

    template <class Context, class Weights, class History>
    struct outcome {
        Context context;
        Weights weights;
        History history;
    };

    /// Score, normalize, combine: the three lines that attention is.
    auto weighed(const auto& keys, const auto& values, const auto& projected, const auto& past, const auto& history,
                 const auto& at) const
    {
        const auto scores = heed::score::over::match(score, projected, keys, past);
        static_assert(
            rank_of<decltype(scores)> == (Score::weights == weight_kind::per_position ? 2 : 3),
            "heed: the score's result has the wrong rank: a score per position gives [B,T], a score per dimension "
            "gives [B,T,D], a score per group [B,T,G]");
        auto weights = weigh(normalize, scores, history, at);
        auto next = next_of(normalize, scores, weights, history, at);
        const auto context_of = [&](const auto& used) {
            if constexpr (requires { combine(used, values, at); }) {
                return combine(used, values, at);
            } else {
                return combine(used, values);
            }
        };
        auto context = [&] {
            if constexpr (requires { normalize.thin(weights, at); }) {
                return context_of(normalize.thin(weights, at));
            } else {
                return context_of(weights);
            }
        }();
        return outcome<decltype(context), decltype(weights), decltype(next)>{std::move(context), std::move(weights),
                                                                             std::move(next)};
    }

    template <bool with_weights, class Context, class Weights, class History>
    auto result(Context context, Weights weights, History history, auto past, const auto& at) const
    {
        auto next = heed::score::over::advance(score, std::move(past), weights, context, at);
        using state_type = attention_state<History, decltype(next)>;
        state_type state{std::move(history), at.step + 1, std::move(next)};
        if constexpr (with_weights) {
            return attended<Context, Weights, state_type>{std::move(context), std::move(weights), std::move(state)};
        } else {
            return read_out<Context, state_type>{std::move(context), std::move(state)};
        }
    }
};

template <class Score, class Normalize, class Combine>
attention(Score, Normalize, Combine) -> attention<Score, Normalize, Combine>;

}  // namespace heed
