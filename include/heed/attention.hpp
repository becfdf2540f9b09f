// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/answers.hpp>
#include <heed/attention/at_once.hpp>
#include <heed/attention/concepts.hpp>
#include <heed/attention/families.hpp>
#include <heed/attention/in_blocks.hpp>
#include <heed/attention/in_order.hpp>
#include <heed/attention/linear.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/on.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/query_numbers.hpp>
#include <heed/attention/state.hpp>
#include <heed/attention/step.hpp>
#include <heed/attention/tiled.hpp>
#include <heed/core/family.hpp>

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
    // The sentences above say what is missing.
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::different_weights,
                  HEED_SAYS_DIFFERENT_WEIGHTS);
    static_assert(fault_of<Score, Normalize, Combine>() != composition_fault::negative_scores,
                  HEED_SAYS_NEGATIVE_SCORES);

    /// The query-independent part, once per batch: annotations [B,T,D] and the number of real positions of each row.
    /// Values behind a row's length are cleared: whatever is there, NaN included, changes no result and no gradient.
    auto on(const tensor auto& annotations, const lengths& real) const { return memory_of(annotations, real); }

    /// The same for a batch without padding.
    auto on(const tensor auto& annotations) const { return memory_of(annotations); }

    /// The same where any position may be missing, not only the last ones: mask [B,T], true = attend.
    auto on(const tensor auto& annotations, const boolean_mask<2>& mask) const { return memory_of(annotations, mask); }

    /// Keys made of other annotations than the values: both [B,T,.], cleared behind each row's length.
    auto on(const tensor auto& annotations, const tensor auto& values, const lengths& real) const
    {
        return memory_of(annotations, values, real);
    }

    /// The same for a batch without padding.
    auto on(const tensor auto& annotations, const tensor auto& values) const { return memory_of(annotations, values); }

    /// The same if any position may be missing: mask [B,T], true = attend.
    auto on(const tensor auto& annotations, const tensor auto& values, const boolean_mask<2>& mask) const
    {
        return memory_of(annotations, values, mask);
    }

    /// The memory with more annotations [B,t,D] behind its own, as a decoder that attends to its own words needs after
    /// each of them. A growing memory (attention/growing.hpp) costs what is new, amortised; any other one is copied,
    /// and must be without padding.
    ///
    ///     auto memory = growing(attend.on(prompt));
    ///     memory = attend.extend(memory, word);
    template <class Values, class Keys>
    auto extend(const memory<Values, Keys>& memory, const tensor auto& annotations) const
    {
        return extended(memory, annotations);
    }

    /// The same with so many more positions for each row: a growing memory's sentences may differ in length.
    template <class T>
    auto extend(const memory<growing_tensor<T>, growing_tensor<T>>& memory, const plain_tensor auto& annotations,
                const lengths& real) const
    {
        return extended(memory, annotations, real);
    }

    /// The state before the first step of a batch.
    auto start(const auto& memory) const { return start(memory, heed::score::over::start(score, memory)); }

    /// The same with a first state of the score of the caller's, such as coverage embeddings of the source words.
    template <class Past>
    auto start(const auto& memory, Past past) const
    {
        constexpr std::size_t rank = Score::weights == weight_kind::per_position ? 2 : 3;
        shape_of_rank<rank> shape{memory.batch(), memory.positions()};
        if constexpr (Score::weights == weight_kind::per_dimension) shape[2] = memory.width();
        if constexpr (Score::weights == weight_kind::per_group) shape[2] = score.groups();
        const auto blank = [&memory, &shape](double value) { return constant_like(memory.keys, shape, value); };
        auto history = start_of(normalize, blank);
        static_assert(check_map<decltype(history)>() && check_map<Past>());
        return attention_state<decltype(history), Past>{std::move(history), 0, std::move(past)};
    }

    /// One query [B,Q] (or whatever the score takes): its context, its weights, and the state for the next query.
    /// `mask` limits what this query may see: boolean_mask<2>, additive_mask, or lengths (so many positions of each
    /// row).
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer_query<weights_too>(memory, query, state, mask);
    }

    /// The same context and state; the weights are not kept, so that training per-dimension attention stores no [B,T,D]
    /// per step.
    template <class Mask = no_mask>
    auto read(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        return answer_query<context_only>(memory, query, state, mask);
    }

    /// The specification of `step`: score, normalize and combine one after the other, for the whole batch.
    template <class Mask = no_mask>
    auto compose(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        require_fits<decltype(memory)>();
        static_assert(
            !shared_by_rows<std::remove_cvref_t<decltype(memory)>>,
            "heed: a shared_memory is asked by step, read, step_into or many queries at once; compose needs a "
            "memory with a row for each query");
        if constexpr (detail::grows<std::remove_cvref_t<decltype(memory)>>) {
            require_no_tape<decltype(query), decltype(state), Mask>();
            detail::require_one_number<Score>(memory);
            return detail::in_one_piece(memory, [&](const auto& all) { return compose(all, query, state, mask); });
        } else {
            const auto& projected = project(query);
            return answer<detail::line_by_line, weights_too>(memory, projected, query, state, mask);
        }
    }

    /// Many queries: queries [B,S,Q] -> contexts [B,S,D]; the state runs from the first to the last. Work that does not
    /// depend on the previous step is one product for all queries. `mask`: causal{}, a mask with a row for each query,
    /// or one for all of them. S = 0 returns [B,0,D].
    template <class Mask = no_mask>
    auto operator()(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return read_all(memory, queries, start(memory), mask).contexts;
    }

    /// The same from a state of the caller's (a first coverage, or the state after other queries). Also returns the
    /// state after the last query:
    ///
    ///     auto [contexts, state] = attend.read_all(memory, queries, attend.start(memory, past));
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& queries, const auto& state, const Mask& mask = {}) const
    {
        require_fits<decltype(memory)>();
        const auto& projected = project(queries);
        static_assert(rank_of<decltype(projected)> == 3, "heed: attention of many queries takes queries [B,S,Q]");
        if constexpr (detail::grows<std::remove_cvref_t<decltype(memory)>>) {
            require_no_tape<decltype(projected), decltype(state), Mask>();
            // One query runs by rows, wherever they lie. Many need them in one piece, and are worth a copy.
            if (shape_of(projected)[1] == 1) return read_one(memory, queries, projected, state, mask);
            if (detail::numbers_differ<Score>(memory)) return read_each(memory, queries, projected, state, mask);
            return detail::in_one_piece(memory, [&](const auto& all) { return read_all(all, queries, state, mask); });
        } else {
            return read_all_of(memory, queries, projected, state, mask);
        }
    }

    /// The weights of many queries, [B,S,T], which `read_all` makes contexts of and does not return: for pictures and
    /// penalties. Memory for all of them is needed here. Weights per position.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& queries, const Mask& mask = {}) const
    {
        return weights_of(memory, queries, start(memory), mask);
    }

    /// The same from a state of the caller's.
    template <class Mask = no_mask>
    auto weights_of(const auto& memory, const auto& queries, const auto& state, const Mask& mask) const
    {
        static_assert(Score::weights == weight_kind::per_position,
                      "heed: weights_of returns [B,S,T], one weight for each query and position");
        const auto& projected = project(queries);
        const std::size_t B = memory.batch(), S = shape_of(projected)[1];
        if constexpr (detail::grows<std::remove_cvref_t<decltype(memory)>>) {
            require_no_tape<decltype(projected), decltype(state), Mask>();
            detail::require_one_number<Score>(memory);
            return detail::in_one_piece(memory, [&](const auto& all) { return weights_of(all, queries, state, mask); });
        } else if constexpr (detail::mask_of_any_place<Mask>) {
            return weights_of(
                memory, queries, state,
                detail::drawn_out(mask, memory.real, state.step, S, memory.positions(), detail::head_of(state.score)));
        } else if constexpr (detail::at_once<Score, Normalize,
                                             std::remove_cvref_t<decltype(heed::summing_all(combine))>,
                                             std::remove_cvref_t<decltype(projected)>,
                                             std::remove_cvref_t<decltype(memory)>, Mask>) {
            const scratch here;
            return ops::by_sentence(detail::weights_at_once(score, normalize, memory, projected,
                                                            {state.step, detail::head_of(state.score), memory.real},
                                                            mask),
                                    B, S);
        } else {
            auto now = state;
            std::vector<decltype(step(memory, detail::part_of_step(queries, 0), now).weights)> all;
            for (std::size_t s = 0; s < S; ++s) {
                auto next =
                    step(memory, detail::part_of_step(queries, s), now, detail::mask_of_step(mask, s, S, memory.real));
                all.push_back(std::move(next.weights));
                now = std::move(next.state);
            }
            if (S == 0) return constant_like(memory.keys, shape_of_rank<3>{B, 0, memory.positions()}, 0.0);
            return ops::swap_axes(ops::stack(all));
        }
    }

    /// `step` on plain tensors into results that the caller keeps: from the second call of one shape on, nothing is
    /// allocated. `state` may be `result.state`. A result without `weights` gets none.
    template <class Result, class Mask = no_mask>
    void step_into(Result& result, const auto& memory, const auto& query, const auto& state,
                   const Mask& mask = {}) const
    {
        require_fits<decltype(memory)>();
        static_assert(!on_a_tape<decltype(memory), decltype(query), decltype(state), Mask>(),
                      "heed: step_into is for plain tensors; on a tape call step or read");
        if constexpr (!detail::reachable_state<std::remove_cvref_t<decltype(state)>>) {
            auto next = step(memory, query, state, mask);
            result.context = std::move(next.context);
            if constexpr (requires { result.weights; }) result.weights = std::move(next.weights);
            result.state = std::move(next.state);
        } else {
            const scratch here;
            const auto self = with(detail::as_transient{});
            const auto& shown = transient_query(query);
            answer_into(self, result, memory, self.project(shown), shown, state, mask);
        }
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
    template <class S, class N, class C>
    friend struct attention;

    /// Is any input of a step on a tape?
    template <class Memory, class Query, class State, class Mask>
    static consteval bool on_a_tape()
    {
        using memory_type = std::remove_cvref_t<Memory>;
        using keys = std::remove_cvref_t<decltype(std::declval<const memory_type&>().keys)>;
        using values = std::remove_cvref_t<decltype(std::declval<const memory_type&>().values)>;
        return detail::taped_policy<Score> || detail::taped_policy<Normalize> || detail::taped_policy<Combine> ||
               !plain_tensor<keys> || !plain_tensor<values> || detail::taped_query<std::remove_cvref_t<Query>>() ||
               detail::taped_state<std::remove_cvref_t<State>>() || detail::taped_mask<std::remove_cvref_t<Mask>> ||
               detail::taped_mask<std::remove_cvref_t<decltype(std::declval<const memory_type&>().mask)>>;
    }

    /// The same mechanism with bring(x) in place of each parameter x.
    auto with(const auto& bring) const
    {
        return heed::attention{map_parameters(score, bring), map_parameters(normalize, bring),
                               map_parameters(combine, bring)};
    }

    template <class Query>
    static decltype(auto) query_in(const Query& query, const auto& bring)
    {
        if constexpr (detail::mappable_query<Query>) {
            return detail::map_query(query, bring);
        } else {
            return (query);
        }
    }
    static decltype(auto) transient_query(const auto& query) { return query_in(query, detail::as_transient{}); }

    /// look(x) for every tensor that a step reads.
    void each_input(const auto& look, const auto& memory, const auto& projected, const auto& given, const auto& state,
                    const auto& mask) const
    {
        (void)with(look);
        (void)look(memory.keys);
        (void)look(memory.values);
        (void)query_in(projected, look);
        (void)query_in(given, look);
        if constexpr (detail::reachable_state<std::remove_cvref_t<decltype(state)>>) {
            (void)state.normalize.map(look);
            (void)state.score.map(look);
        }
        if constexpr (requires { mask.bias; }) (void)look(mask.bias);
    }

    template <class With, class Mask>
    auto answer_query(const auto& memory, const auto& query, const auto& state, const Mask& mask) const
    {
        require_fits<decltype(memory)>();
        if constexpr (on_a_tape<decltype(memory), decltype(query), decltype(state), Mask>() ||
                      !detail::reachable_state<std::remove_cvref_t<decltype(state)>>) {
            const auto& projected = project(query);
            return answer<detail::by_kernel, With>(memory, projected, query, state, mask);
        } else {
            const scratch here;
            const auto self = with(detail::as_transient{});
            const auto& shown = transient_query(query);
            return detail::owned_answer<With>(in_workspace<With>(self, memory, self.project(shown), shown, state, mask),
                                              state);
        }
    }

    /// The part of `step` after the projection of the query; `given` is the query itself.
    template <class How, class With, class Mask>
    auto answer(const auto& memory, const auto& projected, const auto& given, const auto& state, const Mask& mask) const
    {
        constexpr bool reachable = detail::reachable_state<std::remove_cvref_t<decltype(state)>>;
        constexpr bool taped = on_a_tape<decltype(memory), decltype(projected), decltype(state), Mask>() ||
                               detail::taped_query<std::remove_cvref_t<decltype(given)>>();
        const scratch here;
        if constexpr (taped) {
            static_assert(!shared_by_rows<std::remove_cvref_t<decltype(memory)>>,
                          "heed: a shared_memory answers plain tensors; on a tape ask a memory with a row for each "
                          "query");
            if constexpr (detail::grows<std::remove_cvref_t<decltype(memory)>>)
                require_no_tape<decltype(projected), decltype(state), Mask>();
            static_assert(heed::score::over::check_past<Score, std::remove_cvref_t<decltype(state.score)>>());
            // Everything goes onto the tape, whatever part is there already: so a step on a tape is compiled once.
            using family = typename detail::recording<std::bool_constant<taped>>::family;
            using T = element_of<decltype(memory.keys)>;
            const auto lift = variables_beside<T>(
                family{}, [&](const auto& look) { each_input(look, memory, projected, given, state, mask); });
            const auto now = [&] {
                if constexpr (reachable) {
                    return detail::state_in(state, lift);
                } else {
                    return state;
                }
            }();
            return detail::answer_of<With>(run_step<family, How, With>(with(lift), memory, query_in(projected, lift),
                                                                       query_in(given, lift), now, mask, lift),
                                           now.step);
        } else if constexpr ((!reachable || std::is_same_v<How, detail::line_by_line>)&&detail::grows<
                                 std::remove_cvref_t<decltype(memory)>>) {
            detail::require_one_number<Score>(memory);
            return detail::in_one_piece(
                memory, [&](const auto& all) { return answer<How, With>(all, projected, given, state, mask); });
        } else if constexpr (!reachable || std::is_same_v<How, detail::line_by_line>) {
            return detail::answer_of<With>(run_step<plain_family, detail::line_by_line, With>(
                                               *this, memory, projected, given, state, mask, detail::unchanged{}),
                                           state.step);
        } else {
            return detail::owned_answer<With>(
                in_workspace<With>(with(detail::as_transient{}), memory, projected, given, state, mask), state);
        }
    }

    static void answer_into(const auto& self, auto& result, const auto& memory, const auto& projected,
                            const auto& given, const auto& state, const auto& mask)
    {
        using wanted = std::conditional_t < requires { result.weights; }
        , weights_too, context_only > ;
        detail::assign_answer(result, in_workspace<wanted>(self, memory, projected, given, state, mask), state.step);
    }

    /// A step on plain tensors, in this thread's workspace.
    template <class With>
    static auto in_workspace(const auto& self, const auto& memory, const auto& projected, const auto& given,
                             const auto& state, const auto& mask)
    {
        const detail::as_transient shown;
        return run_step<transient_family, detail::by_kernel, With>(self, memory, transient_query(projected),
                                                                   transient_query(given),
                                                                   detail::state_in(state, shown), mask, shown);
    }

    /// A step in a family of tensors, to which `bring` brings the memory and the masks.
    template <class Family, class How, class With, class Mask>
    static auto run_step(const auto& self, const auto& memory, const auto& projected, const auto& given,
                         const auto& state, const Mask& mask, const auto& bring)
    {
        // Weights per position cost nothing to keep, and a score that advances its state needs them.
        using with =
            std::conditional_t<Score::weights == weight_kind::per_position || heed::score::over::advances<Score>(),
                               weights_too, With>;
        using T = element_of<decltype(memory.keys)>;
        // A history counts every score, also of what this query may not see: kernels do not, so lengths are a mask.
        constexpr bool counts = std::is_convertible_v<const Mask&, lengths_view> && remembers<Normalize>;
        const auto masks = detail::masks_of<Family, T, counts>(memory.mask, mask, bring);
        return detail::step<Family, How, with>(self.score, self.normalize, self.combine,
                                               detail::source_in(memory, bring), projected, given, state, masks,
                                               detail::visible_lengths(mask, memory.real));
    }

    /// Requirements of a memory.
    template <class Memory>
    static constexpr void require_fits()
    {
        static_assert(detail::keys_train<Score, std::remove_cvref_t<Memory>>(), HEED_SAYS_KEYS_DO_NOT_TRAIN);
    }

    /// Requirements of a growing memory: what it shows may be gone before a tape reads it again.
    template <class Query, class State, class Mask>
    static constexpr void require_no_tape()
    {
        using plain = memory<array<float, 3>, array<float, 3>>;
        static_assert(!on_a_tape<plain, Query, State, Mask>(),
                      "heed: a growing memory answers plain tensors; on a tape extend the memory that `on` made, of "
                      "annotations that are on the tape, too");
    }

    auto memory_of(const auto&... source) const
    {
        return detail::from_source("attention::on", detail::memory_by{score}, source...);
    }

    auto extended(const auto& memory, const auto&... source) const
    {
        const detail::memory_by make{score, memory.real};
        const auto more = detail::from_source("attention::extend", make, source...);
        return detail::appended("attention::extend", score, memory, more);
    }

    /// Many queries, by what answers them fastest.
    template <class Mask>
    auto read_all_of(const auto& memory, const auto& queries, const auto& projected, const auto& state,
                     const Mask& mask) const
    {
        const auto& sums = heed::summing_all(combine);
        using summing = std::remove_cvref_t<decltype(sums)>;
        const auto finished = [&](auto contexts) {
            auto last = state;
            last.step += shape_of(projected)[1];
            return all_read{heed::finished_all(combine, std::move(contexts), queries), std::move(last)};
        };
        if constexpr (detail::linear<Score, Normalize, summing, std::remove_cvref_t<decltype(projected)>,
                                     std::remove_cvref_t<decltype(memory)>, Mask>) {
            if (detail::worth_sums(shape_of(projected), memory.positions(), memory.width())) {
                return finished(detail::answers_by_sums(score, normalize, memory, projected, state.step, mask));
            }
        }
        if constexpr (detail::tiled<Score, Normalize, summing, std::remove_cvref_t<decltype(projected)>,
                                    std::remove_cvref_t<decltype(memory)>, Mask>) {
            if (detail::worth_tiles(shape_of(projected)[1], memory.positions()) &&
                detail::fits_tiles(normalize.by_tiles())) {
                if constexpr (detail::weighs_in_order<Normalize>) {
                    auto all = detail::answers_in_order(score, normalize, memory, projected, state, mask);
                    return all_read{heed::finished_all(combine, std::move(all.contexts), queries),
                                    std::move(all.state)};
                } else {
                    return finished(detail::answers_by_tiles(score, normalize, memory, projected, state, mask));
                }
            }
        }
        if constexpr (detail::mask_of_any_place<Mask>) {
            return read_all(memory, queries, state,
                            detail::drawn_out(mask, memory.real, state.step, shape_of(projected)[1], memory.positions(),
                                              detail::head_of(state.score)));
        } else if constexpr (detail::at_once<Score, Normalize, summing, std::remove_cvref_t<decltype(projected)>,
                                             std::remove_cvref_t<decltype(memory)>, Mask>) {
            return finished(detail::answers_in_blocks(score, normalize, sums, memory, projected,
                                                      {state.step, detail::head_of(state.score), memory.real}, mask));
        } else {
            static_assert(detail::check_at_once<Score, Combine, std::remove_cvref_t<decltype(projected)>,
                                                std::remove_cvref_t<decltype(memory)>>());
            return one_by_one(memory, queries, projected, state, mask);
        }
    }

    /// One query, [B,1,Q], of a growing memory. Of one sentence, only the positions that the mask lets it reach are
    /// read, if it sees all of them and no history has a number for each position: generation with a window costs the
    /// same for each word.
    template <class Mask>
    auto read_one(const auto& memory, const auto& queries, const auto& projected, const auto& state,
                  const Mask& mask) const
    {
        if constexpr (detail::mask_of_any_place<Mask>) {
            if constexpr (detail::functions_in<Score>() == 0 && !detail::widens_keys_of<Score>() &&
                          !detail::weighs_in_order<Normalize> &&
                          detail::tiled<Score, Normalize, Combine, std::remove_cvref_t<decltype(projected)>,
                                        std::remove_cvref_t<decltype(memory)>, Mask>) {
                if (const auto [begin, end] = detail::seen_in_one_piece(mask, memory); begin < end) {
                    return one_by_one(detail::positions_of(memory, begin, end), queries, projected, state, no_mask{});
                }
            }
        }
        return read_each(memory, queries, projected, state, mask);
    }

    /// Queries of a memory whose rows are asked for one by one.
    template <class Mask>
    auto read_each(const auto& memory, const auto& queries, const auto& projected, const auto& state,
                   const Mask& mask) const
    {
        if constexpr (detail::mask_of_any_place<Mask>) {
            return one_by_one(memory, queries, projected, state,
                              detail::drawn_out(mask, memory.real, state.step, shape_of(projected)[1],
                                                memory.positions(), detail::head_of(state.score)));
        } else {
            return one_by_one(memory, queries, projected, state, mask);
        }
    }

    /// Many queries, each after the one before.
    template <class Mask>
    auto one_by_one(const auto& memory, const auto& queries, const auto& projected, const auto& state,
                    const Mask& mask) const
    {
        const std::size_t B = shape_of(projected)[0], S = shape_of(projected)[1];
        const auto answer_to = [&](std::size_t s, const auto& now) {
            const scratch here;
            return answer<detail::by_kernel, context_only>(memory, detail::part_of_step(projected, s),
                                                           detail::part_of_step(queries, s), now,
                                                           detail::mask_of_step(mask, s, S, memory.real));
        };
        auto first = answer_to(0, state);
        if (S == 0) {  // that was a query of zeros: only the combiner knows how wide a context is
            auto none = constant_like(first.context, shape_of_rank<3>{B, 0, shape_of(first.context)[1]}, 0.0);
            auto same = detail::in_family_of<decltype(first.state)>(first.context, state);
            return all_read{std::move(none), std::move(same)};
        }
        if constexpr (plain_tensor<decltype(first.context)> &&
                      detail::reachable_state<std::remove_cvref_t<decltype(first.state)>>) {
            array<element_of<decltype(first.context)>, 3> all(shape_of_rank<3>{B, S, shape_of(first.context)[1]});
            ops::put_step(all, 0, first.context);
            for (std::size_t s = 1; s < S; ++s) {
                const scratch here;
                const detail::as_transient shown;
                answer_into(with(shown), first, memory, detail::part_of_step(shown(projected), s),
                            detail::part_of_step(transient_query(queries), s), first.state,
                            detail::mask_of_step(mask, s, S, memory.real));
                ops::put_step(all, s, first.context);
            }
            return all_read{std::move(all), std::move(first.state)};
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
            return all_read{std::move(all), std::move(now)};
        }
    }
};

template <class Score, class Normalize, class Combine>
attention(Score, Normalize, Combine) -> attention<Score, Normalize, Combine>;

}  // namespace heed
