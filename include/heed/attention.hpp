// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <heed/attention/check.hpp>
#include <heed/attention/execute/many_queries.hpp>
#include <heed/attention/make_memory.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/projected_heads.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
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
/// `on` does once per batch what does not depend on the query; `start` returns the state before the first step; `step`
/// answers one query. No state is hidden: it goes in and comes out. Plain tensors run without a tape; as soon as a
/// policy's parameters or the tensors are taped, everything trains.
namespace heed::inline HEED_TARGET {

/// An attention mechanism: a score, a normalizer and a combiner, held by value. What does not compose is refused when
/// it is compiled, in one sentence (policy/check.hpp); docs/composition.md says what goes with what.
template <class Score, class Normalize, class Combine>
struct attention {
    Score score;
    Normalize normalize;
    Combine combine;

    static_assert(check_score_policy<Score>());
    static_assert(check_normalize_policy<Normalize>());
    static_assert(check_combine_policy<Combine>());
    // The sentences above say what is missing.
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::different_weights,
                  HEED_SAYS_DIFFERENT_WEIGHTS);
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::negative_scores,
                  HEED_SAYS_NEGATIVE_SCORES);

    /// The query-independent part, once per batch: annotations [B,T,D], and which positions are real.
    ///
    ///     on(x)      on(x, lengths)      on(x, mask)             mask: boolean_mask<2> [B,T]
    ///     on(x, v)   on(x, v, lengths)   on(x, v, mask)          keys are made of x, both [B,T,.]
    ///
    /// Other positions are cleared: whatever is there, NaN included, changes no result and no gradient.
    ///
    /// A memory owns what it holds, so an array is copied. Two ways copy nothing: an array that is given away,
    /// `on(std::move(annotations), lengths)`, is cleared where it is and becomes the memory's; a view,
    /// `on(view_of(x))`, is only referred to where nothing has to be cleared, and x must then outlive the memory.
    /// (Where a score compares the annotations themselves, as `dot` does, an array that is given away is copied once,
    /// for the keys; a view is not.)
    template <tensor X, class... Rest>
        requires(!detail::tensor_of_heads<X> &&
                 ((tensor<Rest> || detail::source_limit<std::remove_cvref_t<Rest>>)&&...))
    auto on(X&& annotations, Rest&&... rest) const
    {
        return memory_of(std::forward<X>(annotations), std::forward<Rest>(rest)...);
    }
    template <tensor X>
        requires(!detail::tensor_of_heads<X>)
    auto on(X&& annotations, const lengths& real) const  // also of a list, {3, 2}
    {
        return memory_of(std::forward<X>(annotations), real);
    }
    template <tensor X, tensor V>
        requires(!detail::tensor_of_heads<X>)
    auto on(X&& annotations, V&& values, const lengths& real) const
    {
        return memory_of(std::forward<X>(annotations), std::forward<V>(values), real);
    }

    /// The memory of heads that are projected already: keys [B,G,T,d], and values [B,G,T,D], if they are others;
    /// lengths or a mask of the B sentences. See attention/projected_heads.hpp.
    template <detail::tensor_of_heads K, class... Rest>
        requires(((tensor<Rest> || detail::tensor_of_heads<Rest> ||
                   detail::source_limit<std::remove_cvref_t<Rest>>)&&...))
    auto on(K&& keys, Rest&&... rest) const
    {
        constexpr bool of_heads = ((detail::tensor_of_heads<Rest> || !tensor<Rest>)&&...);
        static_assert(of_heads, "heed: keys of heads, [B,G,T,d], go with values of heads, [B,G,T,D]");
        if constexpr (of_heads) {
            return memory_of_heads(std::forward<K>(keys), std::forward<Rest>(rest)...);
        } else {
            return memory_of_heads(std::forward<K>(keys));
        }
    }
    template <detail::tensor_of_heads K>
    auto on(K&& keys, const lengths& real) const
    {
        return memory_of_heads(std::forward<K>(keys), real);
    }
    template <detail::tensor_of_heads K, detail::tensor_of_heads V>
    auto on(K&& keys, V&& values, const lengths& real) const
    {
        return memory_of_heads(std::forward<K>(keys), std::forward<V>(values), real);
    }

    /// Refused, in one sentence: what is no tensor, no lengths and no mask.
    template <class... X>
        requires((detail::no_source<X> || ...))
    auto on(const X&... source) const { return on(detail::source_meant(source)...); }

    /// The memory with more annotations [B,t,D] behind its own, for a decoder that attends to its own words. A memory
    /// of keys and values takes both. A KV cache (attention/memory.hpp) grows in time proportional to the new
    /// positions, amortized, and `lengths` say how many of them each row takes. Any other memory is copied and must
    /// have no padding.
    ///
    ///     auto memory = with_cache(attend.on(prompt));        memory = with_cache(attend.on(keys, values, lengths));
    ///     memory = attend.extend(memory, word);               memory = attend.extend(memory, more_keys, more_values);
    ///     memory = attend.extend(memory, words, lengths);     memory = attend.extend(memory, k, v, lengths);
    ///
    /// Throws heed::error where a memory of keys and values would be extended by annotations alone; shape_error if
    /// rows, widths or lengths do not fit.
    template <class Values, class Keys>
    auto extend(const memory<Values, Keys>& memory, const tensor auto& annotations) const
    {
        return extended(memory, annotations);
    }
    template <class Values, class Keys>
    auto extend(const memory<Values, Keys>& memory, const tensor auto& annotations, const lengths& real) const
    {
        return extended(memory, annotations, real);
    }
    template <class Values, class Keys>
    auto extend(const memory<Values, Keys>& memory, const tensor auto& annotations, const tensor auto& values) const
    {
        return extended(memory, annotations, values);
    }
    template <class Values, class Keys>
    auto extend(const memory<Values, Keys>& memory, const tensor auto& annotations, const tensor auto& values,
                const lengths& real) const
    {
        return extended(memory, annotations, values, real);
    }

    /// The same of heads: keys [B,G,t,d] and values [B,G,t,D].
    template <class Memory>
    auto extend(const heads_memory<Memory>& memory, const detail::tensor_of_heads auto& keys) const
    {
        return extended_heads(memory, keys);
    }
    template <class Memory>
    auto extend(const heads_memory<Memory>& memory, const detail::tensor_of_heads auto& keys,
                const detail::tensor_of_heads auto& values) const
    {
        return extended_heads(memory, keys, values);
    }
    template <class Memory>
    auto extend(const heads_memory<Memory>& memory, const detail::tensor_of_heads auto& keys,
                const detail::tensor_of_heads auto& values, const lengths& real) const
    {
        return extended_heads(memory, keys, values, real);
    }

    /// Refused: heads that stand side by side do not grow.
    template <class Memory, class... Source>
    void extend(const split_memory<Memory>&, const Source&...) const
    {
        static_assert(
            sizeof(Memory) == 0,
            "heed: heads that stand side by side do not grow: begin with `with_cache(memory)`, which gives each "
            "head rows of its own");
    }

    /// The state before the first step of a batch.
    template <class Memory>
    auto start(const heads_memory<Memory>& memory) const
    {
        return start(memory.each);
    }
    template <class Memory>
    auto start(const split_memory<Memory>& memory) const
    {
        return start(memory.joined);
    }
    auto start(const auto& memory) const { return start(memory, heed::score::over::start(score, memory)); }

    /// The same with a first state of the score of the caller's, such as coverage embeddings of the source words.
    template <class OfScore>
    auto start(const auto& memory, OfScore of_score) const
    {
        auto history = detail::first_history(score, normalize, memory);
        static_assert(check_map<decltype(history)>() && check_map<OfScore>());
        attention_state<decltype(history), OfScore> state{std::move(history), 0, std::move(of_score)};
        detail::know_positions(state, memory);
        return state;
    }

    /// One query [B,Q] (or whatever the score takes): its context, its weights, and the state for the next query.
    /// `mask` limits what this query may see: lengths (so many positions of each row), a boolean_mask or additive_mask
    /// [B,T], a function of an index, or several of these, joined by `&`.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        detail::require_fits<attention, decltype(source)>();
        const auto& now = detail::own_state(*this, source, state);
        const scratch here;
        return detail::answer<false, weights_too>(
            *this, source, detail::not_projected{}, detail::asked<2>(source, query), now,
            detail::mask_of_query(detail::mask_given(mask, source.keys), source, now));
    }

    /// The same of heads: queries [B,H,d], contexts [B,H,D], weights [B,H,T].
    template <class Mask = no_mask>
    auto step(const detail::memory_with_heads auto& memory, const auto& query, const auto& state,
              const Mask& mask = {}) const
    {
        return by_rows<2>(detail::apart(memory), query, state, mask,
                          [&](const auto&... rows) { return step(rows...); });
    }

    /// The same context and state; the weights are not kept, so that training per-dimension attention stores no [B,T,D]
    /// per step.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        detail::require_fits<attention, decltype(source)>();
        const auto& now = detail::own_state(*this, source, state);
        const scratch here;
        return detail::answer<false, context_only>(
            *this, source, detail::not_projected{}, detail::asked<2>(source, query), now,
            detail::mask_of_query(detail::mask_given(mask, source.keys), source, now));
    }

    template <class Mask = no_mask>
    auto read(const detail::memory_with_heads auto& memory, const auto& query, const auto& state,
              const Mask& mask = {}) const
    {
        return by_rows<2>(detail::apart(memory), query, state, mask,
                          [&](const auto&... rows) { return read(rows...); });
    }

    /// The specification of `step`: score, normalize and combine one after the other, for the whole batch.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        static_assert(
            !shared_by_rows<std::remove_cvref_t<decltype(source)>>,
            "heed: a shared_memory is asked by step, read, step_into or many queries at once; compose needs a "
            "memory with a row for each query");
        detail::require_fits<attention, decltype(source)>();
        const auto& now = detail::own_state(*this, source, state);
        const scratch here;
        return detail::answer<true, weights_too>(
            *this, source, detail::not_projected{}, detail::asked<2>(source, query), now,
            detail::mask_of_query(detail::mask_given(mask, source.keys), source, now));
    }

    template <class Mask = no_mask>
    auto compose(const detail::memory_with_heads auto& memory, const auto& query, const auto& state,
                 const Mask& mask = {}) const
    {
        return by_rows<2, false>(detail::apart(memory), query, state, mask,
                                 [&](const auto&... rows) { return compose(rows...); });
    }

    /// Many queries: queries [B,S,Q] -> contexts [B,S,D]; the state runs from the first to the last. Work that does not
    /// depend on the previous step is one product for all queries. `mask`: causal{}, a function of an index, lengths,
    /// a boolean_mask or additive_mask [S,T], [B,S,T] or [B,H,S,T], present [B,T], or several of these, joined by `&`,
    /// `|` and `!` (simd/score_index.hpp). S = 0 returns [B,0,D].
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        return read_all(source, detail::asked<3>(source, queries), start(source), mask).contexts;
    }
    /// The same of heads: queries [B,H,S,d] -> contexts [B,H,S,D].
    template <class Mask = no_mask>
    auto operator()(const detail::memory_with_heads auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return read_all(memory, queries, start(memory), mask).contexts;
    }

    /// The same from a state of the caller's (a first coverage, or the state after other queries). Also returns the
    /// state after the last query:
    ///
    ///     auto [contexts, state] = attend.read_all(memory, queries, attend.start(memory, state));
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        detail::require_fits<attention, decltype(source)>();
        const auto& queries = detail::asked<3>(source, given);
        const auto& state = detail::own_state(*this, source, given_state);
        const auto projected = project(queries);
        const auto& valid = detail::mask_given(mask, source.keys);
        const auto asked_by = detail::queries_of_call(source, shape_of(projected)[1], state);
        return detail::knowing_positions(source, detail::read_many(*this, source, queries, projected, state,
                                                                   detail::mask_for(valid, asked_by, source.real)));
    }

    template <class Memory, class Mask = no_mask>
    auto read_all(const heads_memory<Memory>& memory, const auto& queries, const auto& state,
                  const Mask& mask = {}) const
    {
        return by_rows<3>(memory, queries, state, mask, [&](const auto&... rows) { return read_all(rows...); });
    }

    template <class Memory, class Queries, class Mask = no_mask>
    auto read_all(const split_memory<Memory>& memory, const Queries& queries, const auto& state,
                  const Mask& mask = {}) const
    {
        if constexpr (detail::is_split<Queries>) {
            const auto shape = detail::shape_of_heads(queries);
            detail::require_groups(shape, memory);
            const detail::side_by_side_memory source{memory.joined.values, memory.joined.keys, memory.joined.real,
                                                     queries.heads, memory.heads};
            const auto& valid = detail::mask_given(mask, source.keys);
            const detail::asked_queries asked_by{state.step, shape[2], shape[0], shape[1], shape_of(source.keys)[1],
                                                 false,      true};
            const auto& known = detail::mask_for(valid, asked_by, memory.joined.real);
            using plan = detail::plan_of<attention, decltype(queries.joined), decltype(source),
                                         std::remove_cvref_t<decltype(known)>>;
            if constexpr (plan::tiled) {
                if (plan::choose(*this, source, shape_of(queries.joined), state.step).by == executor::tiled) {
                    auto contexts = detail::execute::tiled(detail::score_with_bias(score, known), normalize, source,
                                                           queries.joined, state, detail::mask_alone(known));
                    auto last = state;
                    last.step += shape[2];
                    return sequence_result{split_heads(std::move(contexts), queries.heads), std::move(last)};
                }
            }
        }
        return read_all(detail::heads_apart(memory), queries, state, mask);
    }

    /// The weights of many queries, [B,S,T], all in memory. For pictures and penalties. Weights per position.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        return weights_of(source, queries, start(source), mask);
    }

    /// The same from a state of the caller's.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& given, const auto& given_state, const Mask& mask) const
    {
        static_assert(Score::traits.weights == weight_kind::per_position,
                      "heed: weights_of returns [B,S,T], one weight for each query and position");
        const auto& source = detail::memory_of_one(memory);
        const auto& queries = detail::asked<3>(source, given);
        const auto& state = detail::own_state(*this, source, given_state);
        detail::require_no_tape<attention, decltype(source), decltype(queries), decltype(state), Mask>();
        detail::require_one_number<Score>(source);
        const auto projected = project(queries);
        const auto& valid = detail::mask_given(mask, source.keys);
        const auto asked_by = detail::queries_of_call(source, shape_of(projected)[1], state);
        return detail::weights_of_many(*this, detail::in_one_piece(source), queries, projected, state,
                                       detail::mask_for(valid, asked_by, source.real));
    }

    template <class Mask = no_mask>
    auto weights_of(const detail::memory_with_heads auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return weights_of(memory, queries, start(memory), mask);
    }
    template <class Mask = no_mask>
    auto weights_of(const detail::memory_with_heads auto& memory, const auto& queries, const auto& state,
                    const Mask& mask) const
    {
        return by_rows<3, false>(detail::apart(memory), queries, state, mask,
                                 [&](const auto&... rows) { return weights_of(rows...); });
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

    /// `step` on plain tensors into results that the caller keeps: from the second call of one shape on, nothing is
    /// allocated. `state` may be `result.state`. A result without `weights` gets none.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const auto& given_memory, const auto& query, const auto& given_state,
                   const Mask& mask = {}) const
    {
        const auto& memory = detail::memory_of_one(given_memory);
        const auto& state = detail::own_state(*this, memory, given_state);
        detail::require_fits<attention, decltype(memory)>();
        static_assert(!detail::on_a_tape<attention, decltype(memory), decltype(query), decltype(state), Mask>(),
                      "heed: step_into is for plain tensors; on a tape call step or read");
        if constexpr (!detail::reachable_state<std::remove_cvref_t<decltype(state)>>) {
            detail::keep_answer(result, step(memory, query, state, mask));
        } else {
            const scratch here;
            detail::answer_into(*this, result, memory, detail::not_projected{}, detail::asked<2>(memory, query), state,
                                detail::mask_of_query(detail::mask_given(mask, memory.keys), memory, state));
        }
    }

    /// The same of heads; it allocates.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const detail::memory_with_heads auto& memory, const auto& query, const auto& state,
                   const Mask& mask = {}) const
    {
        detail::keep_answer(result, step(memory, query, state, mask));
    }

    /// What answers one query or many, in one sentence: see heed::explain.
    template <class Mask = no_mask>
    std::string explain(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return detail::explained(*this, detail::memory_of_one(memory), queries, mask);
    }

    template <class Mask = no_mask>
    std::string explain(const detail::memory_with_heads auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        constexpr std::size_t R = detail::tensor_with_axes<decltype(queries), 3> ? 2 : 3;
        const auto& valid = detail::mask_given(mask);
        return detail::asked_by_rows<R, true>(detail::apart(memory), queries, start(memory), valid,
                                              [&](const auto& of, const auto& asked, const auto&, const auto& known) {
                                                  return detail::explained(*this, of, asked, known);
                                              });
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::attention{visit("score", self.score), visit("normalize", self.normalize),
                               visit("combine", self.combine)};
    }

    /// The projected query; the query itself, not a copy, where the score does not project it.
    decltype(auto) project(const auto& query) const
    {
        static_assert(check_map<std::remove_cvref_t<decltype(query)>>());
        return heed::score::over::projected(score, query);
    }

private:
    /// Are heads that stand side by side answered as they are?
    static constexpr bool reads_split = detail::compares_as_given<Score>() && !remembers<Normalize> &&
                                        !std::is_same_v<detail::rule_of_tiles<Normalize>, kernels::tiles::no_rule> &&
                                        known_to_kernels_as<Combine, kernels::weighted_sum_of_row>;

    template <class K, class... Rest>
    auto memory_of_heads(K&& keys, Rest&&... rest) const
    {
        constexpr bool split =
            detail::is_split<std::remove_cvref_t<K>> &&
            ((detail::is_split<std::remove_cvref_t<Rest>> || std::is_same_v<std::remove_cvref_t<Rest>, lengths>)&&...);
        if constexpr (reads_split && split) {
            const auto shape = detail::shape_of_heads(keys);  // [B,G,T,d]
            (detail::require_heads("attention::on", rest, shape), ...);
            auto joined = memory_of(detail::joined_or_limit(std::forward<K>(keys)),
                                    detail::joined_or_limit(std::forward<Rest>(rest))...);
            return split_memory<decltype(joined)>{std::move(joined), shape[1]};
        } else if constexpr ((detail::source_limit<std::remove_cvref_t<Rest>> || ...)) {
            const auto shape = detail::shape_of_heads(keys);
            (detail::require_heads("attention::on", rest, shape), ...);
            auto each = memory_of(detail::rows_of_heads(std::forward<K>(keys)),
                                  detail::rows_of_heads_or_limit(std::forward<Rest>(rest), shape[1])...);
            return heads_memory<decltype(each)>::with(std::move(each), shape[1]);
        } else {
            const auto shape = detail::shape_of_heads(keys);
            return memory_of_heads(std::forward<K>(keys), std::forward<Rest>(rest)...,
                                   lengths::full(shape[0], shape[2]));
        }
    }

    /// What f answers by rows, with its results as those of heads.
    template <std::size_t R, bool may_share = true, class Memory>
    auto by_rows(const heads_memory<Memory>& memory, const auto& query, const auto& state, const auto& mask,
                 const auto& f) const
    {
        constexpr bool grouped =
            may_share &&
            (R == 3 || !detail::on_a_tape<attention, Memory, decltype(query), decltype(state), decltype(mask)>());
        const auto& valid = detail::mask_given(mask, memory.each.keys);
        return detail::beside_queries(
            query, detail::results_of_heads(detail::asked_by_rows<R, grouped>(memory, query, state, valid, f),
                                            detail::shape_of_heads(query)[1]));
    }

    template <class... Source>
    auto memory_of(Source&&... source) const
    {
        return detail::from_source("attention::on", detail::memory_by{score}, std::forward<Source>(source)...);
    }

    auto extended_heads(const auto& memory, const auto& keys, const auto&... rest) const
    {
        const std::size_t G = memory.heads;
        const auto shape = detail::shape_of_heads(keys);
        detail::require_heads("attention::extend", keys, {memory.batch(), G, 0, 0});
        (detail::require_heads("attention::extend", rest, shape), ...);
        auto each = extended(memory.each, detail::rows_or_limit(keys, G), detail::rows_or_limit(rest, G)...);
        return heads_memory<decltype(each)>::with(std::move(each), G);
    }

    auto extended(const auto& memory, const auto&... source) const
    {
        detail::require_rows_of("attention::extend", memory, source...);
        const lengths first = detail::next_positions(memory);
        const detail::memory_by make{score, first};
        const auto more = detail::from_source("attention::extend", make, source...);
        return detail::appended("attention::extend", score, memory, more);
    }
};

template <class Score, class Normalize, class Combine>
attention(Score, Normalize, Combine) -> attention<Score, Normalize, Combine>;

}  // namespace heed::inline HEED_TARGET
