// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/execute/blocked.hpp>
#include <heed/attention/execute/linear.hpp>
#include <heed/attention/execute/stepwise.hpp>
#include <heed/attention/execute/tiled.hpp>
#include <heed/attention/execute/tiled_with_state.hpp>
#include <heed/attention/plan.hpp>

/// How an attention answers many queries: by the executor that the plan has chosen.
namespace heed {

template <class Score, class Normalize, class Combine>
struct attention;

namespace detail {

/// One query, [B,1,Q], of a growing memory. Of one sentence, only the positions that the mask shows are read, if they
/// are in one piece and neither history nor keys count positions: generation with a window costs the same for each
/// word.
template <class Score, class Normalize, class Combine, class Mask>
auto read_one(const attention<Score, Normalize, Combine>& attend, const auto& memory, const auto& queries,
              const auto& projected, const auto& state, const Mask& mask)
{
    using plan = detail::plan<attention<Score, Normalize, Combine>, std::remove_cvref_t<decltype(projected)>,
                              std::remove_cvref_t<decltype(memory)>, Mask>;
    if constexpr (mask_of_any_place<Mask> && functions_in<Score>() == 0 && !score_traits_of<Score>().extends_keys &&
                  plan::tiled && !plan::with_state) {
        if (const auto [begin, end] = seen_in_one_piece(mask, memory); begin < end)
            return execute::stepwise(attend, positions_of(memory, begin, end), queries, projected, state, no_mask{});
    }
    return execute::stepwise(attend, memory, queries, projected, state, mask);
}

/// The contexts of many queries and the state after them.
template <class Attention, class Mask>
auto read_many(const Attention& attend, const auto& memory, const auto& queries, const auto& projected,
               const auto& state, const Mask& mask)
{
    using plan =
        detail::plan<Attention, std::remove_cvref_t<decltype(projected)>, std::remove_cvref_t<decltype(memory)>, Mask>;
    const auto shape = shape_of(projected);   // [B,S,A]
    require_state_of(memory.batch(), state);  // also where the scores make it anew from the keys
    const auto finished = [&](auto contexts) {
        auto last = state;
        last.step += shape[1];
        return all_read{heed::finished_all(attend.combine, std::move(contexts), queries), std::move(last)};
    };
    const executor by = plan::choose(attend, memory, shape, state.step).by;
    if constexpr (plan::linear) {
        if (by == executor::linear)
            return finished(execute::linear(attend.score, attend.normalize, memory, projected, state.step, mask));
    }
    if constexpr (plan::with_state) {
        if (by == executor::tiled_with_state) {
            auto all = execute::tiled_with_state(attend.score, attend.normalize, memory, projected, state, mask);
            return all_read{heed::finished_all(attend.combine, std::move(all.contexts), queries), std::move(all.state)};
        }
    } else if constexpr (plan::tiled) {
        if (by == executor::tiled)
            return finished(execute::tiled(attend.score, attend.normalize, memory, projected, state, mask));
    }
    const auto& of_queries = asked_of_queries(mask, memory, projected, state);
    if constexpr (plan::blocked) {
        return finished(execute::blocked(attend.score, attend.normalize, heed::summing_all(attend.combine), memory,
                                         projected, {state.step, state.head, memory.real}, of_queries));
    } else {
        static_assert(check_at_once<decltype(attend.score), decltype(attend.combine),
                                    std::remove_cvref_t<decltype(projected)>, std::remove_cvref_t<decltype(memory)>>());
        return execute::stepwise(attend, memory, queries, projected, state, of_queries);
    }
}

/// The weights of many queries, [B,S,T].
template <class Attention, class Mask>
auto weights_of_many(const Attention& attend, const auto& memory, const auto& queries, const auto& projected,
                     const auto& state, const Mask& mask)
{
    using plan =
        detail::plan<Attention, std::remove_cvref_t<decltype(projected)>, std::remove_cvref_t<decltype(memory)>, Mask>;
    const std::size_t B = memory.batch(), S = shape_of(projected)[1];
    require_state_of(B, state);
    if constexpr (mask_of_any_place<Mask>) {
        return attend.weights_of(memory, queries, state,
                                 drawn_out(mask, memory.real, state.step, S, memory.positions(), state.head));
    } else if constexpr (plan::blocked) {
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
