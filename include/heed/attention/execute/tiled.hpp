// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include <heed/attention/make_memory.hpp>
#include <heed/attention/plan.hpp>
#include <heed/attention/projected_heads.hpp>
#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/workspace.hpp>
#include <heed/masks/of_queries.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/ops/tiles.hpp>
#include <heed/ops/tiles_in_order.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/simd/score_index.hpp>

/// Many queries without storing their scores, for the mechanisms and masks that the tiled kernel supports.
namespace heed::inline HEED_TARGET::detail {

/// Queries [B,S,A] as they are compared with keys.
auto asking_all(const auto&, const auto& projected, const auto&, std::size_t) { return projected; }
template <class Score>
    requires(known_to_kernels_as<Score, kernels::inner_product_score>)
auto asking_all(const Score& score, const auto& projected, const auto&, std::size_t) { return score.asking(projected); }
template <over_comparing Score>
auto asking_all(const Score& score, const auto& projected, const auto& memory, std::size_t first)
{
    if constexpr (changes_by_index<Score>) {
        return detail::asking_all(score.base, projected, memory, first);
    } else if constexpr (adds_columns<Score>) {
        return score.asked_all(detail::asking_all(score.base, projected, memory, first), memory, first);
    } else {
        return detail::asking_all(score.base, score.query_all(projected, first), memory, first);
    }
}

/// The function that changes the scores of a tile, for queries from number `first` on and `heads` heads per sentence.
auto change_of(const auto&, std::size_t, std::size_t) { return kernels::tiles::unmodified{}; }
template <class Score>
    requires(functions_in<Score>() > 0)
auto change_of(const Score& score, std::size_t first, std::size_t heads)
{
    return detail::changing(score).change(first, heads);
}

/// Do tiles compute the score and its function together, as one comparison?
template <class Score>
concept changed_by_comparing = requires
{
    typename changing_score<Score>::compares_in_tiles;
};

/// The comparison in tiles.
template <class Score>
struct comparison_in_tiles {
    using type = typename comparing_score<Score>::kernel_tag::in_tiles;
};
template <changed_by_comparing Score>
struct comparison_in_tiles<Score> {
    using type = typename changing_score<Score>::compares_in_tiles;
};
template <class Score>
    requires(!changed_by_comparing<Score> && requires { typename comparing_score<Score>::in_tiles; })
struct comparison_in_tiles<Score> {
    using type = typename comparing_score<Score>::in_tiles;  // instead of that of the tag
};

/// Does its function look numbers up in a table?
template <class Score>
concept with_table = requires
{
    requires changing_score<Score>::looks_up;
};

/// That table, for queries as they are compared with keys; a single 0 if the function reads none.
auto table_of(const auto&, const auto& asked) { return constant_like(asked, shape_of_rank<1>{1}, 0); }
template <with_table Score>
auto table_of(const Score& score, const auto& asked)
{
    return changing(score).looked_up(asked);
}

/// The factor of the scores, the rule for the scaled scores, and a function of scores with a scaled result.
double factor_of(const auto&) { return 1; }
double factor_of(const scales_first auto& rule) { return rule.factor; }
const auto& unscaled(const auto& rule) { return rule; }
const auto& unscaled(const scales_first auto& rule) { return rule.rule; }
auto scaled(auto f, const auto&) { return f; }
auto scaled(auto f, const scales_first auto& rule)
{
    return [ f = std::move(f), factor = rule.factor ](const auto& e, const score_index& p,
                                                      const auto&... table) requires requires
    {
        f(e, p, table...);
    }
    {
        return factor * f(e, p, table...);
    };
}

/// The factors of a comparison, [A] for additive scores; a single 1 for a comparison without factors.
template <class Score>
auto factors_of(const Score&, const auto& asked)
{
    return constant_like(asked, shape_of_rank<1>{1}, 1);
}
template <class Score>
    requires(comparison_in_tiles<Score>::type::has_factors && !changed_by_comparing<Score>)
auto factors_of(const Score& score, const auto&)
{
    return comparing_score<Score>::kernel_tag::factors(comparing(score));
}
template <changed_by_comparing Score>
auto factors_of(const Score& score, const auto&)
{
    return changing(score).factors_in_tiles();
}

/// Does this rule have a parameter, one number for each head?
template <class Rule>
concept learned = requires(const Rule& rule)
{
    rule.of_heads;
};

/// That parameter, an argument of the operation, and the rule without it.
auto of_heads(const auto&, const auto& asked)
{
    return constant_like(asked, shape_of_rank<1>{1}, -std::numeric_limits<double>::infinity());
}
auto of_heads(const learned auto& rule, const auto&) { return rule.of_heads; }
auto rule_alone(const auto& rule) { return rule; }
template <learned Rule>
auto rule_alone(const Rule&)
{
    return typename Rule::alone{};
}

/// The keys that a mask shows in tiles. Lengths shorten the rows instead.
decltype(auto) keys_of_mask(const auto& mask) { return as_predicate(mask); }
auto keys_of_mask(const mask_of_lengths auto&) { return kernels::tiles::unmasked{}; }

/// The keys that a mask shows in tiles with a history. Lengths show the first keys of each sentence and do not shorten
/// the rows: a history also includes hidden keys. Throws shape_error if lengths do not fit.
decltype(auto) keys_shown(const auto& mask, const auto&) { return keys_of_mask(mask); }
keys_of_lengths keys_shown(const lengths& mask, const auto& memory)
{
    const scratch here;
    (void)visible_lengths(mask, memory.real, memory.positions());
    return keys_of_lengths{mask};
}

/// How tiles read the queries of a memory: their heads, and the scale of their scores.
ops::heads_of heads_in_tiles(const auto&, const auto& memory, const auto&, double scale)
{
    return {.scale = scale, .sharing = sharing_of(memory)};
}
template <class Values, class Keys>
ops::heads_of heads_in_tiles(const auto& score, const side_by_side_memory<Values, Keys>& memory, const auto& projected,
                             double scale)
{
    const std::size_t d = shape_of(projected)[2] / memory.heads;
    return {memory.heads, memory.groups, scale * comparing(score).factor(d)};
}
auto asked_in_tiles(const auto& score, const auto& projected, const auto& memory, std::size_t first)
{
    return asking_all(score, projected, memory, first);
}
template <class Values, class Keys>
const auto& asked_in_tiles(const auto&, const auto& projected, const side_by_side_memory<Values, Keys>&, std::size_t)
{
    return projected;
}

/// Contexts [B,S,D] of projected queries [B,S,A], by a rule.
template <class Score, class Rule, class Memory, class Mask>
auto tiled_by_rule(const Score& score, const Rule& rule, const auto& change, const Memory& memory,
                   const auto& projected, const auto& state, const Mask& mask, double scale)
{
    ops::heads_of how = heads_in_tiles(score, memory, projected, scale);
    how.first_query = query_of_masks(memory, state.step);
    how.first_head = state.head;
    constexpr typename comparison_in_tiles<Score>::type compare{};
    constexpr bool looks_up = with_table<Score> && !changed_by_comparing<Score>;
    const auto& asked = asked_in_tiles(score, projected, memory, state.step);  // [B,S,A]
    const auto& sees = keys_of_mask(mask);
    const lengths_view real = visible_lengths(mask, memory.real, memory.positions());
    if constexpr (learned<Rule> || looks_up || compare.has_factors) {
        const auto factors = factors_of(score, memory.keys);  // [A], or one number
        const auto table = [&] {                              // of any shape, for the function's lookups
            if constexpr (looks_up) {
                return table_of(score, asked);
            } else {
                return constant_like(memory.keys, shape_of_rank<1>{1}, 0);
            }
        }();
        return ops::attend_tiled_op{change, sees, rule_alone(rule), compare}(
            asked, memory.keys, memory.values, factors, of_heads(rule, memory.keys), table, real, how);
    } else {
        return ops::attend_tiled_op{change, sees, rule, compare}(asked, memory.keys, memory.values, real, how);
    }
}

}  // namespace heed::inline HEED_TARGET::detail

namespace heed::inline HEED_TARGET::detail::execute {

/// Contexts [B,S,D] of projected queries [B,S,A].
template <class Score>
auto tiled(const Score& score, const auto& normalize, const auto& memory, const auto& projected, const auto& state,
           const auto& mask)
{
    const auto by_rule = [&](const auto& rule, const auto& change, double scale = 1) {
        return tiled_by_rule(score, rule, change, memory, projected, state, mask, scale);
    };
    constexpr bool unchanged = functions_in<Score>() == 0 || changed_by_comparing<Score>;
    const auto rule = normalize.tile_rule();
    if constexpr (unchanged) {
        return by_rule(unscaled(rule), kernels::tiles::unmodified{}, factor_of(rule));
    } else {
        return by_rule(unscaled(rule), scaled(change_of(score, state.step, memory.real.heads()), rule));
    }
}

/// Contexts [B,S,D] with temporal normalizers, in the tiles of kernels/tiles/temporal.hpp, and the state after the last
/// query.
template <class Score, class Memory, class Mask>
auto tiled_with_state(const Score& score, const auto& normalize, const Memory& memory, const auto& projected,
                      const auto& state, const Mask& mask)
{
    const ops::heads_of how{.first_query = query_of_masks(memory, state.step), .first_head = state.head};
    const auto asked = asking_all(score, projected, memory, state.step);                        // [B,S,A]
    const auto before = grown_history(score, normalize, state.normalize, state.known, memory);  // of [B,T]
    auto made = ops::attend_in_order_op{change_of(score, state.step, memory.real.heads()), keys_shown(mask, memory),
                                        normalize.tile_rule()}(asked, memory.keys, memory.values, before.history,
                                                               table_of(score, asked), memory.real, how);
    auto after = state.normalize.map([&](const auto&) { return std::move(made.second); });
    return sequence_result{std::move(made.first),
                           attention_state<decltype(after), std::remove_cvref_t<decltype(state.score)>>{
                               std::move(after), state.step + shape_of(projected)[1], state.score, state.head}};
}

}  // namespace heed::inline HEED_TARGET::detail::execute
