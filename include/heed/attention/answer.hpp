// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/at_once.hpp>
#include <heed/attention/concepts.hpp>
#include <heed/attention/drawn.hpp>
#include <heed/attention/families.hpp>
#include <heed/attention/growing.hpp>
#include <heed/attention/in_blocks.hpp>
#include <heed/attention/in_order.hpp>
#include <heed/attention/linear.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/attention/step.hpp>
#include <heed/attention/tiled.hpp>
#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/workspace.hpp>
#include <heed/ops/parts.hpp>

/// How an attention answers. One query, by the family of tensors that a step runs in:
///
///     on a tape          if any input is on one; everything else is brought onto it
///     in the workspace   plain tensors: no allocation but for the results
///     line by line       a state whose tensors cannot be reached, and `compose`
///
/// Many queries, by what the types allow, the fastest first:
///
///     linear.hpp      sums over keys first, in linear time       inner products and by_sums()
///     tiled.hpp       tile by tile, no score in memory           by_tiles(), and in_order.hpp for those that remember
///     in_blocks.hpp   all scores of a block of queries           normalizers that are rowwise
///     one by one      a step for each query                      everything
///
/// `attend` is the attention throughout.
namespace heed {

template <class Score, class Normalize, class Combine>
struct attention;

namespace detail {

/// Requirements of a memory.
template <class Attention, class Memory>
constexpr void require_fits()
{
    static_assert(keys_train<decltype(Attention::score), std::remove_cvref_t<Memory>>(), HEED_SAYS_KEYS_DO_NOT_TRAIN);
}

/// Is any input of a step on a tape?
template <class Attention, class Memory, class Query, class State, class Mask>
consteval bool on_a_tape()
{
    using memory_type = std::remove_cvref_t<Memory>;
    using keys = std::remove_cvref_t<decltype(std::declval<const memory_type&>().keys)>;
    using values = std::remove_cvref_t<decltype(std::declval<const memory_type&>().values)>;
    return taped_policy<decltype(Attention::score)> || taped_policy<decltype(Attention::normalize)> ||
           taped_policy<decltype(Attention::combine)> || !plain_tensor<keys> || !plain_tensor<values> ||
           taped_query<std::remove_cvref_t<Query>> || taped_state<std::remove_cvref_t<State>> ||
           taped_mask<std::remove_cvref_t<Mask>> ||
           taped_mask<std::remove_cvref_t<decltype(std::declval<const memory_type&>().mask)>>;
}

/// Requirements of a growing memory: what it shows may be gone before a tape reads it again.
template <class Attention, class Query, class State, class Mask>
constexpr void require_no_tape()
{
    using plain = memory<array<float, 3>, array<float, 3>>;
    static_assert(!on_a_tape<Attention, plain, Query, State, Mask>(),
                  "heed: a growing memory answers plain tensors; on a tape extend the memory that `on` made, of "
                  "annotations that are on the tape, too");
}

template <class Query>
decltype(auto) query_in(const Query& query, const auto& bring)
{
    if constexpr (mappable_query<Query>) {
        return map_query(query, bring);
    } else {
        return (query);
    }
}
decltype(auto) transient_query(const auto& query) { return query_in(query, as_transient{}); }

/// look(x) for every tensor that a step reads.
void each_input(const auto& attend, const auto& look, const auto& memory, const auto& projected, const auto& given,
                const auto& state, const auto& mask)
{
    (void)map_parameters(attend, look);
    (void)look(memory.keys);
    (void)look(memory.values);
    (void)query_in(projected, look);
    (void)query_in(given, look);
    if constexpr (reachable_state<std::remove_cvref_t<decltype(state)>>) {
        (void)state.normalize.map(look);
        (void)state.score.map(look);
    }
    if constexpr (requires { mask.bias; }) (void)look(mask.bias);
}

/// A step in a family of tensors, to which `bring` brings memory and masks. `known`: how many positions of each row the
/// state remembers.
template <class Family, class How, class With, class Attention, class Mask>
auto run_step(const Attention& attend, const auto& memory, const auto& projected, const auto& given, const auto& state,
              const Mask& mask, const auto& bring, const lengths_view& known)
{
    using score = decltype(Attention::score);
    // Weights per position cost nothing to keep, and a score that advances its state needs them.
    using with =
        std::conditional_t<score::traits.weights == weight_kind::per_position || heed::score::over::advances<score>(),
                           weights_too, With>;
    using T = element_of<decltype(memory.keys)>;
    // A history counts every score, also of what this query may not see: kernels do not, so lengths are a mask.
    constexpr bool counts =
        std::is_convertible_v<const Mask&, lengths_view> && remembers<decltype(Attention::normalize)>;
    const auto masks = masks_of<Family, T, counts>(memory.mask, mask, bring);
    return step<Family, How, with>(attend.score, attend.normalize, attend.combine, source_in(memory, bring), projected,
                                   given, state, masks, visible_lengths(mask, memory.real, memory.positions()), known,
                                   memory);
}

/// A step on plain tensors, in this thread's workspace. `shown`: the attention with its parameters as transients.
template <class With>
auto in_workspace(const auto& shown, const auto& memory, const auto& projected, const auto& given, const auto& state,
                  const auto& mask)
{
    const as_transient bring;
    return run_step<transient_family, by_kernel, With>(shown, memory, transient_query(projected),
                                                       transient_query(given), state_in(state, bring), mask, bring,
                                                       known_of(state));
}

/// The part of `step` after the projection of the query; `given` is the query itself.
template <class How, class With, class Attention, class Mask>
auto answer(const Attention& attend, const auto& memory, const auto& projected, const auto& given, const auto& state,
            const Mask& mask)
{
    using memory_type = std::remove_cvref_t<decltype(memory)>;
    constexpr bool reachable = reachable_state<std::remove_cvref_t<decltype(state)>>;
    constexpr bool taped = on_a_tape<Attention, memory_type, decltype(projected), decltype(state), Mask>() ||
                           taped_query<std::remove_cvref_t<decltype(given)>>;
    constexpr bool composed = !reachable || std::is_same_v<How, line_by_line>;
    const scratch here;
    if constexpr (taped) {
        static_assert(!shared_by_rows<memory_type>,
                      "heed: a shared_memory answers plain tensors; on a tape ask a memory with a row for each "
                      "query");
        if constexpr (grows<memory_type>) require_no_tape<Attention, decltype(projected), decltype(state), Mask>();
        static_assert(
            heed::score::over::check_past<decltype(Attention::score), std::remove_cvref_t<decltype(state.score)>>());
        // Put every tensor on the tape, even if only some need gradients, so that one taped step is compiled.
        using family = typename recording<std::bool_constant<taped>>::family;
        using T = element_of<decltype(memory.keys)>;
        const auto lift = variables_beside<T>(family{}, [&](const auto& look) {
            detail::each_input(attend, look, memory, projected, given, state, mask);
        });
        const auto now = [&] {
            if constexpr (reachable) {
                return state_in(state, lift);
            } else {
                return state;
            }
        }();
        return answer_of<With>(run_step<family, How, With>(map_parameters(attend, lift), memory,
                                                           query_in(projected, lift), query_in(given, lift), now, mask,
                                                           lift, lengths_view{}),
                               now);
    } else if constexpr (composed && grows<memory_type>) {
        static_assert(reachable,
                      "heed: a state in which `map` does not reach every tensor cannot grow with its memory: give it "
                      "`auto map(auto&& f, const auto&... others) const` that does, or ask gathered(memory), a copy "
                      "that no longer grows (a state without tensors declares `static constexpr bool holds_no_tensors "
                      "= true;`)");
        require_one_number<decltype(Attention::score)>(memory);
        return knowing_lengths(memory,
                               detail::answer<How, With>(attend, in_one_piece(memory), projected, given, state, mask));
    } else if constexpr (composed) {
        return answer_of<With>(run_step<plain_family, line_by_line, With>(attend, memory, projected, given, state, mask,
                                                                          unchanged{}, known_of(state)),
                               state);
    } else {
        return owned_answer<With>(
            in_workspace<With>(map_parameters(attend, as_transient{}), memory, projected, given, state, mask), state,
            memory);
    }
}

/// `step` and `read`.
template <class With, class Attention, class Mask>
auto answer_query(const Attention& attend, const auto& memory, const auto& query, const auto& state, const Mask& mask)
{
    if constexpr (on_a_tape<Attention, decltype(memory), decltype(query), decltype(state), Mask>() ||
                  !reachable_state<std::remove_cvref_t<decltype(state)>>) {
        const auto& projected = attend.project(query);
        return detail::answer<by_kernel, With>(attend, memory, projected, query, state, mask);
    } else {
        const scratch here;
        const auto shown = map_parameters(attend, as_transient{});
        const auto& asked = transient_query(query);
        return owned_answer<With>(in_workspace<With>(shown, memory, shown.project(asked), asked, state, mask), state,
                                  memory);
    }
}

/// The same into results that the caller keeps; `shown` as above.
template <class Result>
void answer_into(const auto& shown, Result& result, const auto& memory, const auto& projected, const auto& given,
                 const auto& state, const auto& mask)
{
    constexpr bool weights = requires { result.weights; };
    using wanted = std::conditional_t<weights, weights_too, context_only>;
    assign_answer(result, in_workspace<wanted>(shown, memory, projected, given, state, mask), state, memory);
}

/// A mask of places together with the numbers of its queries; any other mask unchanged.
template <class Mask>
decltype(auto) asked_of_queries(const Mask& mask, const auto& memory, const auto& projected, const auto& state)
{
    if constexpr (mask_of_any_place<Mask>) {
        return places_of_queries<Mask>{mask, state.step, shape_of(projected)[1], memory.positions(), state.head};
    } else {
        return (mask);
    }
}

/// Many queries, each after the one before.
template <class Mask>
auto one_by_one(const auto& attend, const auto& memory, const auto& queries, const auto& projected, const auto& state,
                const Mask& given_mask)
{
    const std::size_t B = shape_of(projected)[0], S = shape_of(projected)[1];
    const auto& mask = asked_of_queries(given_mask, memory, projected, state);
    const auto answer_to = [&](std::size_t s, const auto& now) {
        const scratch here;
        return detail::answer<by_kernel, context_only>(attend, memory, part_of_step(projected, s),
                                                       part_of_step(queries, s), now,
                                                       mask_of_step(mask, s, S, memory.real));
    };
    auto first = answer_to(0, state);
    if (S == 0) {  // that was a query of zeros: only the combiner knows how wide a context is
        auto none = constant_like(first.context, shape_of_rank<3>{B, 0, shape_of(first.context)[1]}, 0.0);
        auto same = in_family_of<decltype(first.state)>(first.context, state);
        return all_read{std::move(none), std::move(same)};
    }
    if constexpr (plain_tensor<decltype(first.context)> &&
                  reachable_state<std::remove_cvref_t<decltype(first.state)>>) {
        array<element_of<decltype(first.context)>, 3> all(shape_of_rank<3>{B, S, shape_of(first.context)[1]});
        ops::put_step(all, 0, first.context);
        for (std::size_t s = 1; s < S; ++s) {
            const scratch here;
            const as_transient bring;
            detail::answer_into(map_parameters(attend, bring), first, memory, part_of_step(bring(projected), s),
                                part_of_step(transient_query(queries), s), first.state,
                                mask_of_step(mask, s, S, memory.real));
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

/// One query, [B,1,Q], of a growing memory. Of one sentence, only the positions that the mask shows are read, if they
/// are in one piece and neither history nor keys count positions: generation with a window costs the same for each
/// word.
template <class Score, class Normalize, class Combine, class Mask>
auto read_one(const attention<Score, Normalize, Combine>& attend, const auto& memory, const auto& queries,
              const auto& projected, const auto& state, const Mask& mask)
{
    if constexpr (mask_of_any_place<Mask> && functions_in<Score>() == 0 && !score_traits_of<Score>().extends_keys &&
                  !weighs_in_order<Normalize> &&
                  tiled<Score, Normalize, Combine, std::remove_cvref_t<decltype(projected)>,
                        std::remove_cvref_t<decltype(memory)>, Mask>) {
        if (const auto [begin, end] = seen_in_one_piece(mask, memory); begin < end)
            return one_by_one(attend, positions_of(memory, begin, end), queries, projected, state, no_mask{});
    }
    return one_by_one(attend, memory, queries, projected, state, mask);
}

/// The contexts of many queries and the state after them, by what answers them fastest.
template <class Score, class Normalize, class Combine, class Mask>
auto read_many(const attention<Score, Normalize, Combine>& attend, const auto& memory, const auto& queries,
               const auto& projected, const auto& state, const Mask& mask)
{
    const auto& sums = heed::summing_all(attend.combine);
    using summing = std::remove_cvref_t<decltype(sums)>;
    using asked = std::remove_cvref_t<decltype(projected)>;
    using source = std::remove_cvref_t<decltype(memory)>;
    const std::size_t S = shape_of(projected)[1];
    require_state_of(memory.batch(), state);  // also where the scores make it anew from the keys
    const auto finished = [&](auto contexts) {
        auto last = state;
        last.step += S;
        return all_read{heed::finished_all(attend.combine, std::move(contexts), queries), std::move(last)};
    };
    if constexpr (linear<Score, Normalize, summing, asked, source, Mask>) {
        if (worth_sums(shape_of(projected), memory.positions(), memory.width()) &&
            fits_sums(attend.score, attend.normalize.by_sums(), memory.real, state.step, S))
            return finished(answers_by_sums(attend.score, attend.normalize, memory, projected, state.step, mask));
    }
    if constexpr (tiled<Score, Normalize, summing, asked, source, Mask>) {
        if (worth_tiles(S, memory.positions()) && fits_tiles(attend.normalize.by_tiles())) {
            if constexpr (weighs_in_order<Normalize>) {
                auto all = answers_in_order(attend.score, attend.normalize, memory, projected, state, mask);
                return all_read{heed::finished_all(attend.combine, std::move(all.contexts), queries),
                                std::move(all.state)};
            } else {
                return finished(answers_by_tiles(attend.score, attend.normalize, memory, projected, state, mask));
            }
        }
    }
    const auto& of_queries = asked_of_queries(mask, memory, projected, state);
    using of_rows = std::conditional_t<mask_of_any_place<Mask>, boolean_mask<3>, Mask>;
    if constexpr (at_once<Score, Normalize, summing, asked, source, of_rows>) {
        return finished(answers_in_blocks(attend.score, attend.normalize, sums, memory, projected,
                                          {state.step, state.head, memory.real}, of_queries));
    } else {
        static_assert(check_at_once<Score, Combine, asked, source>());
        return one_by_one(attend, memory, queries, projected, state, of_queries);
    }
}

/// The weights of many queries, [B,S,T].
template <class Score, class Normalize, class Combine, class Mask>
auto weights_of_many(const attention<Score, Normalize, Combine>& attend, const auto& memory, const auto& queries,
                     const auto& projected, const auto& state, const Mask& mask)
{
    using summing = std::remove_cvref_t<decltype(heed::summing_all(attend.combine))>;
    const std::size_t B = memory.batch(), S = shape_of(projected)[1];
    require_state_of(B, state);
    if constexpr (mask_of_any_place<Mask>) {
        return attend.weights_of(memory, queries, state,
                                 drawn_out(mask, memory.real, state.step, S, memory.positions(), state.head));
    } else if constexpr (at_once<Score, Normalize, summing, std::remove_cvref_t<decltype(projected)>,
                                 std::remove_cvref_t<decltype(memory)>, Mask>) {
        const scratch here;
        return ops::reshaped(weights_at_once(attend.score, attend.normalize, memory, projected,
                                             {state.step, state.head, memory.real}, mask),
                             B, S, memory.positions());
    } else {
        auto now = state;
        std::vector<decltype(attend.step(memory, part_of_step(queries, 0), now).weights)> all;
        for (std::size_t s = 0; s < S; ++s) {
            auto next = attend.step(memory, part_of_step(queries, s), now, mask_of_step(mask, s, S, memory.real));
            all.push_back(std::move(next.weights));
            now = std::move(next.state);
        }
        if (S == 0) return constant_like(memory.keys, shape_of_rank<3>{B, 0, memory.positions()}, 0.0);
        return ops::swap_axes(ops::stack(all));
    }
}

}  // namespace detail

}  // namespace heed
