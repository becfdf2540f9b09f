// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include <heed/attention/inner_product.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/tiles.hpp>
#include <heed/simd/place.hpp>

/// Many queries at once without their scores in memory, for the mechanisms and masks that the tiled kernel knows.
namespace heed::detail {

template <class Mask>
concept mask_of_tiles = std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths> || marked_mask<Mask>;

/// Does this score change those of its base with a function of them and their place, as score::modified does?
template <class Score>
concept changes_by_place = requires(const Score& score)
{
    score.change(std::size_t{});
};

template <class Score>
consteval std::size_t functions_in();

/// Does this score add columns to inner products? Not if a function changes them before.
template <class Score>
consteval bool adds_columns()
{
    if constexpr (has_asked_all<Score>) return functions_in<typename Score::wraps>() == 0;
    return false;
}

/// Does this score wrap one that compares all queries at once?
template <class Score>
concept over_comparing =
    changes_by_place<Score> ||(hook::adapts<Score>&& has_query_all<Score>) || adds_columns<Score>();

/// The score that compares, below functions of scores and positions.
template <class Score>
const auto& comparing(const Score& score)
{
    return detail::below(score, []<class Layer>(const Layer&) { return std::bool_constant<over_comparing<Layer>>{}; });
}
template <class Score>
using comparing_score = std::remove_cvref_t<decltype(detail::comparing(std::declval<const Score&>()))>;

/// The score with a function that changes scores; the comparing one, if there is none.
template <class Score>
const auto& changing(const Score& score)
{
    return detail::below(score, []<class Layer>(const Layer&) {
        return std::bool_constant < over_comparing<Layer> && !changes_by_place < Layer >> {};
    });
}
template <class Score>
using changing_score = std::remove_cvref_t<decltype(detail::changing(std::declval<const Score&>()))>;

template <class Score>
consteval std::size_t functions_in()
{
    if constexpr (over_comparing<Score>)
        return functions_in<typename Score::wraps>() + (changes_by_place<Score> ? 1 : 0);
    return 0;
}

/// Does the score compare as tiles can? The name of its kernel says how, `in_tiles`, and `factors(score)`, if it has
/// some; an inner product is asked with `asking(queries)`.
template <class Score, class Projected>
concept compared_in_tiles = requires
{
    typename Score::in_kernels::in_tiles;
}
&&(!known_to_kernels_as<Score, kernels::inner_product_score> ||
   requires(const Score& score, const Projected& projected) { score.asking(projected); });

/// Queries [B,S,A] as they are compared with keys.
template <class Score>
auto asking_all(const Score& score, const auto& projected, const auto& memory, std::size_t first)
{
    if constexpr (changes_by_place<Score>) {
        return detail::asking_all(score.base, projected, memory, first);
    } else if constexpr (adds_columns<Score>()) {
        return score.asked_all(detail::asking_all(score.base, projected, memory, first), memory, first);
    } else if constexpr (over_comparing<Score>) {
        return detail::asking_all(score.base, score.query_all(projected, first), memory, first);
    } else if constexpr (known_to_kernels_as<Score, kernels::inner_product_score>) {
        return score.asking(projected);
    } else {
        return projected;
    }
}

/// A function of scores and places whose result is multiplied by a number.
template <class Function>
struct scaled_function {
    Function f;
    double factor;

    auto operator()(const auto& e, const place& p, const auto&... table) const requires requires { f(e, p, table...); }
    {
        return factor * f(e, p, table...);
    }
};
template <class Function>
scaled_function(Function, double) -> scaled_function<Function>;

/// What changes the scores of a tile, where the first query is the first-th.
template <class Score>
auto change_of(const Score& score, std::size_t first)
{
    if constexpr (functions_in<Score>() == 0) {
        return kernels::tiles::unmodified{};
    } else {
        return detail::changing(score).change(first);
    }
}

/// Is there no function in tiles because the score, with what changes it, is a comparison of theirs?
template <class Score>
concept changed_by_comparing = requires
{
    typename changing_score<Score>::compares_in_tiles;
};

/// How tiles compare.
template <class Score>
struct comparison_in_tiles {
    using type = typename comparing_score<Score>::in_kernels::in_tiles;
};
template <changed_by_comparing Score>
struct comparison_in_tiles<Score> {
    using type = typename changing_score<Score>::compares_in_tiles;
};

/// Does its function look numbers up in a table?
template <class Score>
concept with_table = requires
{
    requires changing_score<Score>::looks_up;
};

/// That table, for queries as they are compared with keys; one number where there is none.
template <class Score>
auto table_of(const Score& score, const auto& asked)
{
    if constexpr (with_table<Score>) {
        return changing(score).looked_up(asked);
    } else {
        return constant_like(asked, shape_of_rank<1>{1}, 0);
    }
}

/// Does each query's weights depend on the scores of those before? Such tiles compare by inner products.
template <class Normalize>
concept weighs_in_order = requires(const Normalize& normalize)
{
    requires std::is_same_v<std::remove_cvref_t<decltype(normalize.by_tiles())>, ops::modulated_by_past>;
};

/// Do tiles know how it weighs?
template <class Normalize>
concept weighs_in_tiles = hook::by_tiles<Normalize> && !requires(const Normalize& normalize)
{
    requires std::is_same_v<std::remove_cvref_t<decltype(normalize.by_tiles())>, kernels::tiles::no_rule>;
};

template <class Score, class Normalize, class Combine, class Projected, class Memory, class Mask>
concept tiled = functions_in<Score>()
<= 1 && compared_in_tiles<comparing_score<Score>, Projected>&& weighs_in_tiles<Normalize> &&
    (!weighs_in_order<Normalize> ||
     known_to_kernels_as<comparing_score<Score>,
                         kernels::inner_product_score>)&&known_to_kernels_as<Combine,
                                                                             kernels::weighted_sum_of_row>&& std::
        is_same_v<decltype(Memory::mask), no_mask> &&
    !shared_by_rows<Memory> && mask_of_tiles<Mask>;

/// Can the tiles hold what this rule remembers?
bool fits_tiles(const auto& rule)
{
    if constexpr (requires { rule.fits(); }) return rule.fits();
    return true;
}

/// Does it pay? Small matrices of scores stay in the cache, and the queries of a block share what is read of the keys:
/// with few of them most lanes would be empty.
inline bool worth_tiles(std::size_t S, std::size_t positions) { return S >= 8 && S * positions >= 4096; }

/// Are scores multiplied by a number before they become weights?
template <class Rule>
concept scales_first = requires(const Rule& rule)
{
    rule.rule;
    rule.factor;
};

/// The rule without parameters: those are arguments of the operation.
template <class Rule>
auto rule_alone(const Rule& rule)
{
    if constexpr (requires { rule.of_heads; }) {
        return typename Rule::alone{};
    } else {
        return rule;
    }
}

/// Contexts [B,S,D] of projected queries [B,S,A], by a rule.
template <class Score, class Rule, class Memory, class Mask>
auto answers_by_rule(const Score& score, const Rule& rule, const auto& change, const Memory& memory,
                     const auto& projected, const auto& state, const Mask& mask, double scale)
{
    const ops::heads_of how{.scale = scale, .first_query = state.step, .first_head = state.head};
    constexpr typename comparison_in_tiles<Score>::type compare{};
    constexpr bool looks_up = with_table<Score> && !changed_by_comparing<Score>;
    const auto asked = asking_all(score, projected, memory, state.step);
    const auto answer = [&](const auto& sees, const auto& real) {
        constexpr bool learned = requires { rule.of_heads; };
        if constexpr (learned || looks_up || compare.has_factors) {
            const auto one = [&](double x) { return constant_like(memory.keys, shape_of_rank<1>{1}, x); };
            const auto factors = [&] {
                if constexpr (changed_by_comparing<Score>) {
                    return changing(score).factors_in_tiles();
                } else if constexpr (compare.has_factors) {
                    return comparing_score<Score>::in_kernels::factors(comparing(score));
                } else {
                    return one(1);
                }
            }();
            const auto of_heads = [&] {
                if constexpr (learned) {
                    return rule.of_heads;
                } else {
                    return one(-std::numeric_limits<double>::infinity());
                }
            }();
            const auto table = [&] {
                if constexpr (looks_up) {
                    return table_of(score, asked);
                } else {
                    return one(0);
                }
            }();
            return ops::attend_tiled_op{change, sees, rule_alone(rule), compare}(asked, memory.keys, memory.values,
                                                                                 factors, of_heads, table, real, how);
        } else {
            return ops::attend_tiled_op{change, sees, rule, compare}(asked, memory.keys, memory.values, real, how);
        }
    };
    if constexpr (std::is_same_v<Mask, no_mask>) {
        return answer(kernels::tiles::unmasked{}, memory.real);
    } else if constexpr (std::is_same_v<Mask, lengths>) {
        return answer(kernels::tiles::unmasked{}, shortened(mask, memory.real, memory.positions()));
    } else {
        return answer(as_places(mask), memory.real);
    }
}

/// The same by a normalizer.
template <class Score>
auto answers_by_tiles(const Score& score, const auto& normalize, const auto& memory, const auto& projected,
                      const auto& state, const auto& mask)
{
    const auto by_rule = [&](const auto& rule, const auto& change, double scale = 1) {
        return answers_by_rule(score, rule, change, memory, projected, state, mask, scale);
    };
    constexpr bool unchanged = functions_in<Score>() == 0 || changed_by_comparing<Score>;
    const auto rule = normalize.by_tiles();
    if constexpr (unchanged && scales_first<decltype(rule)>) {
        return by_rule(rule.rule, kernels::tiles::unmodified{}, rule.factor);
    } else if constexpr (unchanged) {
        return by_rule(rule, kernels::tiles::unmodified{});
    } else if constexpr (scales_first<decltype(rule)>) {
        return by_rule(rule.rule, scaled_function{change_of(score, state.step), rule.factor});
    } else {
        return by_rule(rule, change_of(score, state.step));
    }
}

}  // namespace heed::detail
