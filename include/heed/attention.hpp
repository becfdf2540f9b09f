// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <heed/attention/check.hpp>
#include <heed/attention/concepts.hpp>
#include <heed/attention/execute/many_queries.hpp>
#include <heed/attention/make_memory.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>

/// Attention: three policies make a mechanism.
///
///     e = score(query, key)          how well does this query match that source position?
///     α = normalize(e, history)      how do scores become weights?
///     c = combine(α, values)         how do weights and values become one context?
///
/// `on` does once per batch what does not depend on the query; `start` returns the state before the first step; `step`
/// answers one query. No state is hidden: it goes in and comes out. Plain tensors run without a tape; as soon as a
/// policy's parameters or the tensors are taped, everything trains.
namespace heed {

/// An attention mechanism: a score, a normalizer and a combiner, held by value. What does not compose is refused when
/// it is compiled, in one sentence (attention/concepts.hpp); docs/composition.md says what goes with what.
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
        requires((tensor<Rest> || detail::source_limit<std::remove_cvref_t<Rest>>)&&...)
    auto on(X&& annotations, Rest&&... rest) const
    {
        return memory_of(std::forward<X>(annotations), std::forward<Rest>(rest)...);
    }
    template <tensor X>
    auto on(X&& annotations, const lengths& real) const  // also of a list, {3, 2}
    {
        return memory_of(std::forward<X>(annotations), real);
    }
    template <tensor X, tensor V>
    auto on(X&& annotations, V&& values, const lengths& real) const
    {
        return memory_of(std::forward<X>(annotations), std::forward<V>(values), real);
    }

    /// Refused, in one sentence: what is no tensor, no lengths and no mask.
    template <class... X>
        requires((detail::no_source<X> || ...))
    auto on(const X&... source) const { return on(detail::source_meant(source)...); }

    /// The memory with more annotations [B,t,D] behind its own, for a decoder that attends to its own words; of keys
    /// and values, if it was made of both or shall go on with both. A KV cache (attention/memory.hpp) costs what is
    /// new, amortised, and may get so many of them for each row; any other memory is copied, and must be without
    /// padding.
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

    /// The state before the first step of a batch.
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
    /// `mask` limits what this query may see: boolean_mask<2>, additive_mask, or lengths (so many positions of each
    /// row).
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        detail::require_fits<attention, decltype(source)>();
        return detail::answer<false, weights_too>(*this, source, detail::not_projected{},
                                                  detail::asked<2>(source, query),
                                                  detail::own_state(*this, source, state), detail::mask_of_one(mask));
    }

    /// The same context and state; the weights are not kept, so that training per-dimension attention stores no [B,T,D]
    /// per step.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        detail::require_fits<attention, decltype(source)>();
        return detail::answer<false, context_only>(*this, source, detail::not_projected{},
                                                   detail::asked<2>(source, query),
                                                   detail::own_state(*this, source, state), detail::mask_of_one(mask));
    }

    /// The specification of `step`: score, normalize and combine one after the other, for the whole batch.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        using source_type = std::remove_cvref_t<decltype(source)>;
        detail::require_fits<attention, source_type>();
        static_assert(
            !shared_by_rows<source_type>,
            "heed: a shared_memory is asked by step, read, step_into or many queries at once; compose needs a "
            "memory with a row for each query");
        return detail::answer<true, weights_too>(*this, source, detail::not_projected{},
                                                 detail::asked<2>(source, query),
                                                 detail::own_state(*this, source, state), mask);
    }

    /// Many queries: queries [B,S,Q] -> contexts [B,S,D]; the state runs from the first to the last. Work that does not
    /// depend on the previous step is one product for all queries. `mask`: causal{}, a function of an index, masks
    /// combined of these (simd/score_index.hpp), a mask with a row for each query, or one for all queries. S = 0
    /// returns [B,0,D].
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        const auto& source = detail::memory_of_one(memory);
        return read_all(source, detail::asked<3>(source, queries), start(source), mask).contexts;
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
        return detail::knowing_positions(
            source, detail::read_many(*this, source, queries, project(queries), state, detail::mask_of_many(mask)));
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
        return detail::weights_of_many(*this, detail::in_one_piece(source), queries, project(queries), state,
                                       detail::mask_of_many(mask));
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
            detail::answer_into(*this, result, memory, detail::not_projected{}, detail::asked<2>(memory, query), state,
                                mask);
        }
    }

    /// What answers one query or many, in one sentence: see heed::explain.
    template <class Mask = no_mask>
    std::string explain(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return detail::explained(*this, detail::memory_of_one(memory), queries, mask);
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
    template <class... Source>
    auto memory_of(Source&&... source) const
    {
        return detail::from_source("attention::on", detail::memory_by{score}, std::forward<Source>(source)...);
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

}  // namespace heed
