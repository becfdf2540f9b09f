// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/answers.hpp>
#include <heed/attention/at_once.hpp>
#include <heed/attention/drawn.hpp>
#include <heed/attention/growing.hpp>
#include <heed/attention/in_blocks.hpp>
#include <heed/attention/in_order.hpp>
#include <heed/attention/linear.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/one_query.hpp>
#include <heed/attention/tiled.hpp>
#include <heed/core/workspace.hpp>
#include <heed/ops/parts.hpp>

/// How an attention answers many queries: by what its types allow, the fastest first.
///
///     linear.hpp      sums over keys first, in linear time       inner products and by_sums()
///     tiled.hpp       tile by tile, no score in memory           by_tiles(), and in_order.hpp for those that remember
///     in_blocks.hpp   all scores of a block of queries           normalizers that are row_by_row
///     one by one      a step for each query                      everything
///
/// `attend` is the attention throughout.
namespace heed {

template <class Score, class Normalize, class Combine>
struct attention;

namespace detail {

/// A mask of places with the queries that it is asked about; others as they are.
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
                const Mask& mask)
{
    const std::size_t B = shape_of(projected)[0], S = shape_of(projected)[1];
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

/// Queries of a memory whose rows are asked for one by one.
template <class Mask>
auto read_each(const auto& attend, const auto& memory, const auto& queries, const auto& projected, const auto& state,
               const Mask& mask)
{
    return one_by_one(attend, memory, queries, projected, state, asked_of_queries(mask, memory, projected, state));
}

/// One query, [B,1,Q], of a growing memory. Of one sentence, only the positions that the mask lets it reach are read,
/// if it sees all of them and neither history nor keys have a number that counts positions: generation with a window
/// costs the same for each word.
template <class Score, class Normalize, class Combine, class Mask>
auto read_one(const attention<Score, Normalize, Combine>& attend, const auto& memory, const auto& queries,
              const auto& projected, const auto& state, const Mask& mask)
{
    if constexpr (mask_of_any_place<Mask>) {
        if constexpr (functions_in<Score>() == 0 && !widens_keys_of<Score>() && !weighs_in_order<Normalize> &&
                      tiled<Score, Normalize, Combine, std::remove_cvref_t<decltype(projected)>,
                            std::remove_cvref_t<decltype(memory)>, Mask>) {
            if (const auto [begin, end] = seen_in_one_piece(mask, memory); begin < end)
                return one_by_one(attend, positions_of(memory, begin, end), queries, projected, state, no_mask{});
        }
    }
    return read_each(attend, memory, queries, projected, state, mask);
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
