// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <heed/attention/check.hpp>
#include <heed/attention/execute/many_queries.hpp>
#include <heed/attention/make_memory.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/projected_heads.hpp>
#include <heed/attention/state.hpp>
#include <heed/masks/given.hpp>
#include <heed/ops/heads.hpp>
#include <heed/policy/check.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_kernel.hpp>

/// Attention: three policies make a mechanism.
///
///     e = score(query, key)          how well does this query match that source position?
///     α = normalize(e, history)      how do scores become weights?
///     c = combine(α, values)         how do weights and values become one context?
///
/// `on` runs the query-independent part once per batch; `start` returns the state before the first step; `step`
/// processes one query. State is explicit: an argument and a result. Plain tensors run without a tape. If a tensor or a
/// policy's parameters are taped, gradients flow through all of it.
namespace heed::inline HEED_TARGET {

/// An attention mechanism: a score, a normalizer and a combiner, stored by value. Invalid combinations fail to compile,
/// with a message of one sentence (policy/check.hpp); docs/explanation/composition.md lists the valid ones.
///
/// A call throws shape_error if tensors, lengths, masks or the state do not fit the memory, and heed::error if the
/// memory has dropped positions that the call needs.
template <class Score, class Normalize, class Combine>
struct attention {
    Score score;
    Normalize normalize;
    Combine combine;

    static_assert(check_score_policy<Score>());
    static_assert(check_normalize_policy<Normalize>());
    static_assert(check_combine_policy<Combine>());
    // The checks above name missing members.
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::different_weights,
                  HEED_SAYS_DIFFERENT_WEIGHTS);
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::negative_scores,
                  HEED_SAYS_NEGATIVE_SCORES);
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::no_products, HEED_SAYS_NO_PRODUCTS);

    /// Prepares the memory, once per batch: annotations [B,T,D], and which positions are real.
    ///
    ///     on(x)      on(x, lengths)      on(x, mask)             mask: boolean_mask<2> [B,T]
    ///     on(x, v)   on(x, v, lengths)   on(x, v, mask)          keys are computed from x; both are [B,T,.]
    ///
    /// Other positions are cleared: their contents, NaN included, change no result and no gradient.
    ///
    /// A memory owns its tensors, so an array is copied. Two calls avoid the copy. A moved array,
    /// `on(std::move(annotations), lengths)`, is cleared in place and moved into the memory. A view, `on(view_of(x))`,
    /// is stored as a view unless positions must be cleared; x must then outlive the memory. (If the score compares the
    /// annotations themselves, as `dot` does, a moved array is copied once, for the keys; a view is not.)
    ///
    /// Projected heads: keys [B,G,T,d] and, if different, values [B,G,T,D]; lengths or a mask apply to the B sentences.
    /// See attention/projected_heads.hpp.
    template <detail::source X, detail::source... Rest>
    auto on(X&& annotations, Rest&&... rest) const
    {
        return memory_of(std::forward<X>(annotations), std::forward<Rest>(rest)...);
    }
    template <detail::source X>
    auto on(X&& annotations, const lengths& real) const  // also of a list, {3, 2}
    {
        return memory_of(std::forward<X>(annotations), real);
    }
    template <detail::source X, detail::source V>
    auto on(X&& annotations, V&& values, const lengths& real) const
    {
        return memory_of(std::forward<X>(annotations), std::forward<V>(values), real);
    }

    /// Rejects lazy expressions and std::vector with a message of one sentence.
    template <class... X>
        requires((detail::no_source<X> || ...))
    auto on(const X&... source) const { return on(detail::source_meant(source)...); }

    /// Appends annotations [B,t,D] to a memory, for a decoder that attends to its own words. A memory of keys and
    /// values takes both; a memory of heads takes keys [B,G,t,d] and values [B,G,t,D]. Extending a KV cache
    /// (attention/memory.hpp) takes amortized time proportional to the number of new positions; `lengths` gives that
    /// number for each row. Any other memory is copied and must have no padding.
    ///
    ///     auto memory = with_cache(attend.on(prompt));        memory = with_cache(attend.on(keys, values, lengths));
    ///     memory = attend.extend(memory, word);               memory = attend.extend(memory, more_keys, more_values);
    ///     memory = attend.extend(memory, words, lengths);     memory = attend.extend(memory, k, v, lengths);
    ///
    /// Throws heed::error if a memory of keys and values is extended by annotations alone; shape_error if rows, widths
    /// or lengths do not fit.
    auto extend(const auto& memory, const detail::source auto& annotations, const detail::source auto&... rest) const
    {
        return extended(memory, annotations, rest...);
    }
    auto extend(const auto& memory, const detail::source auto& annotations, const lengths& real) const
    {
        return extended(memory, annotations, real);
    }
    auto extend(const auto& memory, const detail::source auto& annotations, const detail::source auto& values,
                const lengths& real) const
    {
        return extended(memory, annotations, values, real);
    }

    /// The state before the first step of a batch.
    auto start(const auto& memory) const
    {
        return start(memory, heed::score::over::start(score, detail::rows_in(memory)));
    }

    /// The state before the first step, with a given state of the score, such as coverage embeddings of the source
    /// words.
    template <class OfScore>
    auto start(const auto& memory, OfScore of_score) const
    {
        const auto& rows = detail::rows_in(memory);
        auto history = detail::first_history(score, normalize, rows);
        static_assert(check_map<decltype(history)>() && check_map<OfScore>());
        attention_state<decltype(history), OfScore> state{std::move(history), 0, std::move(of_score)};
        detail::know_positions(state, rows);
        return state;
    }

    /// One query [B,Q] (or the score's custom query type): returns its context, its weights, and the state for the next
    /// query. `mask` limits the visible positions: lengths (the first positions of each row), a boolean_mask or
    /// additive_mask [B,T], a function of an index, or several of these, joined by `&`. With heads: queries [B,H,d],
    /// contexts [B,H,D], weights [B,H,T].
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return call<2>(detail::answering<false, weights_too>{}, memory, query, state, mask);
    }

    /// The context and state of `step`, without weights: training per-dimension attention then stores no [B,T,D] per
    /// step.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return call<2>(detail::answering<false, context_only>{}, memory, query, state, mask);
    }

    /// The specification of `step`: score, normalize and combine one after the other, for the whole batch.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return call<2>(detail::answering<true, weights_too>{}, memory, query, state, mask);
    }

    /// Many queries: queries [B,S,Q] -> contexts [B,S,D]; each query starts from the state of the one before. Work that
    /// does not depend on the previous step is one product for all queries. `mask`: causal{}, a function of an index,
    /// lengths, a boolean_mask or additive_mask [S,T], [B,S,T] or [B,H,S,T], present [B,T], or several of these, joined
    /// by `&`, `|` and `!` (simd/score_index.hpp). S = 0 returns [B,0,D]. With heads: queries [B,H,S,d] -> contexts
    /// [B,H,S,D].
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return read_all(memory, queries, start(memory), mask).contexts;
    }

    /// Many queries from a given state (initial coverage, or the state after other queries). Also returns the state
    /// after the last query:
    ///
    ///     auto [contexts, state] = attend.read_all(memory, queries, attend.start(memory, state));
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& queries, const auto& state, const Mask& mask = {}) const
    {
        return call<3>(detail::reading_all{}, memory, queries, state, mask);
    }
    template <class Memory, class Queries, class Mask = no_mask>
    auto read_all(const split_memory<Memory>& memory, const split_tensor<Queries>& queries, const auto& state,
                  const Mask& mask = {}) const
    {
        return detail::read_side_by_side(*this, memory, queries, state, mask);
    }

    /// The weights of many queries, [B,S,T], for plots and penalties. All are stored at once. Weights per position
    /// only.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return weights_of(memory, queries, start(memory), mask);
    }

    /// The weights of many queries, [B,S,T], from a given state.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& queries, const auto& state, const Mask& mask) const
    {
        return call<3>(detail::weighing_all{}, memory, queries, state, mask);
    }

    /// The scores of many queries, [B,S,T], or [B,H,S,T] for projected heads, as the normalizer receives them:
    /// functions of scores are applied, and hidden keys and padding have -inf. Scores per position only.
    template <class Mask = no_mask>
    auto scores_of(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return scores_of(memory, queries, start(memory), mask);
    }
    template <class Mask = no_mask>
    auto scores_of(const auto& memory, const auto& queries, const auto& state, const Mask& mask) const
    {
        const heed::attention<Score, detail::no_normalizer, Combine> scores{score, {}, combine};
        return scores.weights_of(memory, queries,
                                 attention_state<no_state, std::remove_cvref_t<decltype(state.score)>>{
                                     {}, state.step, state.score, state.head},
                                 mask);
    }

    /// `step` on plain tensors into an existing result: after the first call with a shape, nothing is allocated, except
    /// with heads. `state` may be `result.state`. `result` may lack the member `weights`.
    template <class Result, class Memory, class State, class Mask = no_mask>
    void step_into(Result& result, const Memory& memory, const auto& query, const State& state,
                   const Mask& mask = {}) const
    {
        if constexpr (detail::has_heads<Memory> || !detail::reachable_state<State>) {
            detail::keep_answer(result, step(memory, query, state, mask));
        } else {
            call<2>(detail::answer_into(result), memory, query, state, mask);
        }
    }

    /// The executor of one query or many, in one sentence: see heed::explain.
    template <class Memory, class Mask = no_mask>
    std::string explain(const Memory& memory, const auto& queries, const Mask& mask = {}) const
    {
        if constexpr (detail::has_heads<Memory>) {
            constexpr std::size_t R = detail::tensor_with_axes<decltype(queries), 3> ? 2 : 3;
            return detail::asked_by_rows<R, true>(
                detail::apart(memory), queries, start(memory), detail::mask_given(mask),
                [&](const auto& of, const auto& asked, const auto&, const auto& known) {
                    return detail::explained(*this, of, asked, known);
                });
        } else {
            return detail::explained(*this, detail::memory_of_one(memory), queries, mask);
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::attention{visit("score", self.score), visit("normalize", self.normalize),
                               visit("combine", self.combine)};
    }

    /// The projected query; the query itself, not a copy, if the score does not project it.
    decltype(auto) project(const auto& query) const
    {
        static_assert(check_map<std::remove_cvref_t<decltype(query)>>());
        return heed::score::over::projected(score, query);
    }

private:
    /// Can concatenated heads be read in place?
    static constexpr bool reads_split = detail::compares_as_given<Score>() && !remembers<Normalize> &&
                                        !std::is_same_v<detail::rule_of_tiles<Normalize>, kernels::tiles::no_rule> &&
                                        known_to_kernels_as<Combine, kernels::weighted_sum_of_row>;

    template <tensor X, class... Rest>
        requires(!detail::tensor_of_heads<X>)
    auto memory_of(X&& x, Rest&&... rest) const
    {
        return detail::from_source("attention::on", detail::memory_by{*this}, std::forward<X>(x),
                                   std::forward<Rest>(rest)...);
    }
    template <detail::tensor_of_heads X, class... Rest>
    auto memory_of(X&& x, Rest&&... rest) const
    {
        constexpr bool split =
            (detail::is_split<std::remove_cvref_t<X>> && ... &&
             (detail::is_split<std::remove_cvref_t<Rest>> || std::is_same_v<std::remove_cvref_t<Rest>, lengths>));
        const auto shape = detail::shape_of_heads(x);  // [B,G,T,d]
        (detail::require_heads("attention::on", rest, shape), ...);
        if constexpr (reads_split && split) {
            auto all = memory_of(detail::joined(std::forward<X>(x)), detail::joined(std::forward<Rest>(rest))...);
            return split_memory<decltype(all)>{std::move(all), shape[1]};
        } else {
            auto each = memory_of(detail::for_heads(std::forward<X>(x), shape[1]),
                                  detail::for_heads(std::forward<Rest>(rest), shape[1])...);
            return heads_memory<decltype(each)>::with(std::move(each), shape[1]);
        }
    }
    template <detail::tensor_of_heads X, class... Rest>
        requires((tensor<Rest> && !detail::tensor_of_heads<Rest>) || ...)
    auto memory_of(X&& x, Rest&&...) const
    {
        static_assert(sizeof(X) == 0, "heed: keys of heads, [B,G,T,d], need values of heads, [B,G,T,D]");
        return memory_of(std::forward<X>(x));
    }

    template <class Values, class Keys>
    auto extended(const memory<Values, Keys>& memory, const auto&... source) const
    {
        detail::require_rows_of("attention::extend", memory, source...);
        const lengths first = detail::next_positions(memory);
        const detail::memory_by make{*this, first};
        return detail::appended("attention::extend", score, memory,
                                detail::from_source("attention::extend", make, source...));
    }
    template <class Memory>
    auto extended(const heads_memory<Memory>& memory, const auto& keys, const auto&... rest) const
    {
        const std::size_t G = memory.heads;
        const auto shape = detail::shape_of_heads(keys);
        detail::require_heads("attention::extend", keys, {memory.batch(), G, 0, 0});
        (detail::require_heads("attention::extend", rest, shape), ...);
        auto each = extended(memory.each, detail::for_heads(detail::read_in_place(keys), G),
                             detail::for_heads(detail::read_in_place(rest), G)...);
        return heads_memory<decltype(each)>::with(std::move(each), G);
    }
    template <class Memory>
    void extended(const split_memory<Memory>&, const auto&...) const
    {
        static_assert(sizeof(Memory) == 0, "heed: a memory of concatenated heads cannot be extended: begin with "
                                           "`with_cache(memory)`, which stores each head in separate rows");
    }

    /// Checks the arguments, then calls f(attention, memory, query, state, mask) for one query, R = 2, or many, R = 3.
    /// With heads, f runs by rows, and its results are reshaped to heads.
    template <std::size_t R, class F, class Memory, class State>
    auto call(const F& f, const Memory& memory, const auto& query, const State& state, const auto& mask) const
    {
        const auto& of = detail::memory_of_one(memory);
        detail::require_fits<attention, std::remove_cvref_t<decltype(of)>>();
        return f(*this, of, detail::asked<R>(of, query), detail::own_state(*this, of, state),
                 detail::mask_given(mask, of.keys));
    }
    template <std::size_t R, class F, class Memory, class State>
        requires(detail::has_heads<Memory>)
    auto call(const F& f, const Memory& memory, const auto& query, const State& state, const auto& mask) const
    {
        const auto& rows = detail::apart(memory);
        using rows_type = std::remove_cvref_t<decltype(rows.each)>;
        constexpr bool grouped =
            F::shares_rows &&
            (R == 3 || !detail::on_a_tape<attention, rows_type, State, decltype(mask), decltype(query)>());
        const auto answer = [&](const auto&... in) { return call<R>(f, in...); };
        return detail::beside_queries(
            query, detail::results_of_heads(detail::asked_by_rows<R, grouped>(
                                                rows, query, state, detail::mask_given(mask, rows.each.keys), answer),
                                            detail::shape_of_heads(query)[1]));
    }
};

template <class Score, class Normalize, class Combine>
attention(Score, Normalize, Combine) -> attention<Score, Normalize, Combine>;

}  // namespace heed::inline HEED_TARGET
