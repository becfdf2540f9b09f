// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <heed/attention/memory.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/weights_by_sum.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/policy/weigh.hpp>
#include <heed/simd/score_index.hpp>

/// Chooses the executor of many queries. From fastest to slowest:
///
///     linear              sums over keys first, in linear time            execute/linear.hpp
///     tiled               tile by tile, no score in memory                execute/tiled.hpp
///     tiled_with_state    tile by tile, each key with a history           execute/tiled.hpp
///     blocked             all scores of a block of queries                execute/blocked.hpp
///     stepwise            one query after another                         execute/many_queries.hpp
///
/// Each executor except `stepwise` has requirements on types and sizes. heed::explain reports which executor runs a
/// call, and why faster ones do not.
namespace heed::inline HEED_TARGET {

/// The executor of a step for one query: a fused kernel, or score, normalizer and combiner one after the other; for the
/// whole batch, or sentence by sentence, so that temporaries stay in the cache.
enum class step_executor { fused, fused_by_row, composed_by_row, composed };

/// The executor of many queries.
enum class executor { linear, tiled, tiled_with_state, blocked, stepwise };

namespace detail {

// ---- scores as tiles see them --------------------------------------------------------------------------------------

/// Does this score apply a function of a score and its index to the scores of its base, as score::modified does?
template <class Score>
concept changes_by_index = requires(const Score& score)
{
    score.change(std::size_t{}, std::size_t{});
};

template <class Score>
consteval std::size_t functions_in();

/// Does this score add columns to inner products? Not if a function changes them first.
template <class Score>
concept adds_columns = has_asked_all<Score> &&(functions_in<typename Score::wraps>() == 0);

/// Does this score wrap one that compares all queries at once?
template <class Score>
concept over_comparing = changes_by_index<Score> ||(hook::adapts<Score>&& has_query_all<Score>) || adds_columns<Score>;

/// The score that compares, inside wrappers with functions of scores and positions.
const auto& comparing(const auto& score) { return score; }
const auto& comparing(const over_comparing auto& score) { return detail::comparing(score.base); }
template <class Score>
using comparing_score = std::remove_cvref_t<decltype(detail::comparing(std::declval<const Score&>()))>;

/// The score with a function that changes scores; without one, the comparing score.
const auto& changing(const auto& score) { return score; }
template <over_comparing Score>
    requires(!changes_by_index<Score>)
const auto& changing(const Score& score) { return detail::changing(score.base); }
template <class Score>
using changing_score = std::remove_cvref_t<decltype(detail::changing(std::declval<const Score&>()))>;

/// The number of functions that change its scores.
template <class Score>
consteval std::size_t functions_in()
{
    if constexpr (over_comparing<Score>)
        return functions_in<typename Score::wraps>() + (changes_by_index<Score> ? 1 : 0);
    return 0;
}

/// Do the keys of this score decay by the gates of later positions?
template <class Score>
concept fades = known_to_kernels_as<Score, kernels::gated_decay_score>;

/// Does this score multiply the given queries and keys, up to a factor? Then concatenated heads need not be separated.
template <class Score>
consteval bool compares_as_given()
{
    if constexpr (changes_by_index<Score> && !requires { typename Score::compares_in_tiles; }) {
        return compares_as_given<typename Score::wraps>();
    } else {
        return requires(const Score& score) { score.factor(std::size_t{}); };
    }
}

/// The score that provides the products to sum: the base of a score that decays.
const auto& summed(const auto& score) { return score; }
const auto& summed(const fades auto& score) { return detail::summed(score.base); }

/// Do tiles support this score with these queries? An inner product must provide a(Q) of all queries.
template <class Score, class Projected>
concept tiles_compare = requires
{
    typename Score::kernel_tag::in_tiles;
}
&&(!known_to_kernels_as<Score, kernels::inner_product_score> ||
   requires(const Score& score, const Projected& projected) { score.asking(projected); });

/// The rule by which tiles compute the weights of this normalizer; no_rule if they do not support it.
template <class Normalize>
struct rule_in_tiles : std::type_identity<kernels::tiles::no_rule> {};
template <hook::tile_rule<> Normalize>
struct rule_in_tiles<Normalize> : std::remove_cvref<decltype(std::declval<const Normalize&>().tile_rule())> {};
template <class Normalize>
using rule_of_tiles = typename rule_in_tiles<Normalize>::type;

/// Are scores multiplied by a number before they become weights?
template <class Rule>
concept scales_first = requires(const Rule& rule)
{
    rule.rule;
    rule.factor;
};

/// A score plus the numbers of an additive mask, in tiles.
template <class Base, class Bias>
struct score_and_bias {
    using wraps = Base;
    static constexpr score_traits traits = Base::traits;
    static constexpr bool looks_up = true;

    const Base& base;
    const Bias& bias;  // [B,H,S,T], each axis full or of size 1
    std::size_t first_query;

    auto change(std::size_t, std::size_t) const
    {
        const auto sizes = shape_of(bias);
        const auto whole = [&](std::size_t axis) { return sizes[axis] == 1 ? 0 : 1; };
        return [first = static_cast<std::int32_t>(first_query), b = whole(0), h = whole(1), q = whole(2),
                k = whole(3)](const auto& e, const score_index& p, const auto& numbers) {
            return e + numbers(p.batch * b, p.head * h, (p.query - first) * q, p.key * k);
        };
    }
    auto looked_up(const tensor auto& asked) const { return same_family(asked, bias); }
};

/// The score plus the additive part of a mask, and the mask without it.
const auto& score_with_bias(const auto& score, const auto&) { return score; }
template <class Score, class Mask, class Bias>
score_and_bias<Score, Bias> score_with_bias(const Score& score, const mask_and_bias<Mask, Bias>& mask)
{
    return {score, mask.bias, mask.queries.first};
}
const auto& mask_alone(const auto& mask) { return mask; }
template <class Mask, class Bias>
const Mask& mask_alone(const mask_and_bias<Mask, Bias>& mask)
{
    return mask.mask;
}

/// Masks that only shorten the rows.
template <class Mask>
concept mask_of_lengths = std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths>;
/// Masks that can be split into one row per query.
template <class Mask>
concept mask_of_rows = mask_of_lengths<Mask> || std::is_same_v<Mask, causal> || std::is_same_v<Mask, boolean_mask<2>>;

// ---- sizes ---------------------------------------------------------------------------------------------------------

/// Are sums over keys cheaper? A pair of query and key costs F + D; the matrix of sums costs F·D for each query and
/// each key.
inline bool worth_sums(const shape_of_rank<3>& queries, std::size_t positions, std::size_t width)
{
    const std::size_t S = queries[1], F = queries[2];
    return S * positions * (F + width) >= (S + positions) * F * width;
}

/// Can S queries, starting at number `first`, be computed from sums? If keys decay by gates, no query may precede a key
/// that it sees, and weights must not decay otherwise.
template <class Score>
bool fits_sums(const Score&, const ops::rule_of_sums& rule, const lengths_view& real, std::size_t first, std::size_t S)
{
    if (!fades<Score>) return true;
    for (std::size_t b = 0; b < real.batch(); ++b)
        if (first + S < real[b]) return false;
    return rule.decay == 1;
}

/// Are tiles cheaper? Small matrices of scores stay in the cache without tiles. The queries of a block share the keys
/// that they read: few queries leave most lanes empty.
inline bool worth_tiles(std::size_t S, std::size_t positions) { return S >= 8 && S * positions >= 4096; }

/// Can tiles hold the numbers that this rule stores?
bool fits_tiles(const auto&) { return true; }
template <class Rule>
    requires requires(const Rule& rule) { rule.fits(); }
bool fits_tiles(const Rule& rule) { return rule.fits(); }

// ---- the plan ------------------------------------------------------------------------------------------------------

/// The executor of a call, and why faster ones were not chosen.
struct decision {
    executor by;
    std::string_view not_linear, not_tiled, not_blocked, because{};
};

/// One query after another, for a reason other than the requirements of faster executors.
constexpr decision one_by_one(std::string_view because) { return {executor::stepwise, {}, {}, {}, because}; }

/// The types of a call with many queries: an attention, projected queries [B,S,A], a memory that is not a KV cache, and
/// a mask.
template <class Attention, class Projected, class Memory, class Mask>
struct call_of_many {
    using score = std::remove_cvref_t<decltype(detail::score_with_bias(
        std::declval<const decltype(Attention::score)&>(), std::declval<const Mask&>()))>;
    using normalize = decltype(Attention::normalize);
    /// The summing combiner, if its wrappers can finish all contexts.
    using combine =
        std::remove_cvref_t<decltype(heed::summing_all(std::declval<const decltype(Attention::combine)&>()))>;
    using projected = Projected;
    using memory = Memory;
    using keys = std::remove_cvref_t<decltype(Memory::keys)>;
    using mask = std::remove_cvref_t<decltype(detail::mask_alone(std::declval<const Mask&>()))>;
    static constexpr bool adds_numbers = has_bias<Mask>;
};

/// Can the score compare, and the combiner sum, a block of queries with row-wise weights?
template <class Call>
concept compares_blocks =
    rowwise<typename Call::normalize> && !shared_by_rows<typename Call::memory> &&
    heed::score::over::scores_a_matrix<typename Call::score, typename Call::projected, typename Call::keys>;
template <class Call>
concept sums_blocks = compares_blocks<Call> &&
    combines_a_matrix<typename Call::combine,
                      decltype(heed::score::over::score_matrix(
                          std::declval<const typename Call::score&>(), std::declval<const typename Call::projected&>(),
                          std::declval<const typename Call::keys&>(), heed::score::over::queries_from{})),
                      const decltype(Call::memory::values)&>;

/// A requirement of an executor: whether a call lacks it, and the reason to report.
struct requirement {
    bool lacks;
    std::string_view because;
};

/// The reason of the first requirement that a call lacks; empty if it meets all.
consteval std::string_view first_lacking(std::initializer_list<requirement> all)
{
    for (const requirement& one : all)
        if (one.lacks) return one.because;
    return {};
}

/// Why neither running sums nor tiles can sum the values; empty if they can.
template <class Call>
consteval std::string_view not_summed()
{
    return first_lacking({
        {!known_to_kernels_as<typename Call::combine, kernels::weighted_sum_of_row>,
         "the combiner is not a weighted sum"},
        {!std::is_same_v<decltype(Call::memory::mask), no_mask>, "the memory has a mask"},
        {shared_by_rows<typename Call::memory> && !shared_evenly<typename Call::memory>,
         "queries share the sentences of the memory"},
    });
}

/// Why sums over keys cannot run; empty if they can.
template <class Call>
consteval std::string_view not_linear()
{
    using score = std::remove_cvref_t<decltype(detail::summed(std::declval<const typename Call::score&>()))>;
    using products = comparing_score<score>;
    constexpr bool is_causal = std::is_same_v<typename Call::mask, causal>;
    return first_lacking({
        {functions_in<score>() > 0, "a function changes the scores"},
        {!known_to_kernels_as<products, kernels::inner_product_score> ||
             !tiles_compare<products, typename Call::projected>,
         "the score is not an inner product"},
        {!hook::linear_rule<typename Call::normalize>, "the normalizer has no `linear_rule()`"},
        {fades<typename Call::score> && !is_causal, "gates require `causal{}`"},
        {!is_causal && !mask_of_lengths<typename Call::mask>, "the mask is neither lengths nor `causal{}`"},
        {!not_summed<Call>().empty(), not_summed<Call>()},
        {shared_evenly<typename Call::memory>, "heads share keys and values"},
    });
}

/// Why tiles cannot run; empty if they can.
template <class Call>
consteval std::string_view not_tiled()
{
    using score = comparing_score<typename Call::score>;
    using rule = rule_of_tiles<typename Call::normalize>;
    return first_lacking({
        {functions_in<typename Call::score>() > 1, "more than one function changes the scores"},
        {!tiles_compare<score, typename Call::projected>, "tiles do not support the score"},
        {std::is_same_v<rule, kernels::tiles::no_rule>, "tiles do not support the normalizer"},
        {Call::adds_numbers && (scales_first<rule> || std::is_same_v<rule, ops::modulated_by_past>),
         "the additive mask is applied after the normalizer has changed the scores"},
        {std::is_same_v<rule, ops::modulated_by_past> && !known_to_kernels_as<score, kernels::inner_product_score>,
         "tiles with a history support inner products only"},
        {!mask_of_lengths<typename Call::mask> && !marked_mask<typename Call::mask>,
         "the mask is not a function of the index"},
        {!not_summed<Call>().empty(), not_summed<Call>()},
    });
}

/// Why blocks cannot run; empty if they can.
template <class Call>
consteval std::string_view not_blocked()
{
    return first_lacking({
        {!rowwise<typename Call::normalize>, "the normalizer reads more than a row of scores"},
        {Call::adds_numbers, "the mask adds numbers to the scores"},
        {!(mask_of_rows<typename Call::mask> || any_predicate_mask<typename Call::mask>) ||
             !mask_of_rows<decltype(Call::memory::mask)>,
         "the mask has no row for each query"},
        {shared_by_rows<typename Call::memory>, "queries share the sentences of the memory"},
        {!compares_blocks<Call>, "the score has no `score_matrix`"},
        {!sums_blocks<Call>, "the combiner has no `combine_matrix`"},
    });
}

/// The plan of a call with many queries.
template <class Attention, class Projected, class Memory, class Mask>
struct plan {
    using call = call_of_many<Attention, Projected, Memory, Mask>;
    static constexpr std::string_view why_not_linear = not_linear<call>(), why_not_tiled = not_tiled<call>(),
                                      why_not_blocked = not_blocked<call>();
    static constexpr bool linear = why_not_linear.empty(), tiled = why_not_tiled.empty(),
                          blocked = why_not_blocked.empty(),
                          with_state =
                              tiled && std::is_same_v<rule_of_tiles<typename call::normalize>, ops::modulated_by_past>;

    /// The executor of queries of this shape, [B,S,A], starting at number `first`.
    static decision choose(const Attention& attend, const Memory& memory, const shape_of_rank<3>& queries,
                           std::size_t first)
    {
        const std::size_t S = queries[1], positions = memory.positions();
        decision made{executor::stepwise, why_not_linear, why_not_tiled, why_not_blocked};
        if constexpr (linear) {
            if (!worth_sums(queries, positions, memory.width())) {
                made.not_linear = "sums over keys are slower at these sizes";
            } else if (!fits_sums(attend.score, attend.normalize.linear_rule(), memory.real, first, S)) {
                made.not_linear = "a query precedes a key that it sees, or weights decay in addition to the gates";
            } else {
                made.by = executor::linear;
                return made;
            }
        }
        if constexpr (tiled) {
            if (!worth_tiles(S, positions)) {
                made.not_tiled = "tiles are faster only from 8 queries and 4,096 pairs";
            } else if (!fits_tiles(attend.normalize.tile_rule())) {
                made.not_tiled = "tiles cannot hold the numbers that the normalizer stores per row";
            } else {
                made.by = with_state ? executor::tiled_with_state : executor::tiled;
                return made;
            }
        }
        if (blocked) made.by = executor::blocked;
        return made;
    }
};

template <class Attention, class Projected, class Memory, class Mask>
using plan_of = plan<Attention, std::remove_cvref_t<Projected>, std::remove_cvref_t<Memory>, std::remove_cvref_t<Mask>>;

/// A decision as a sentence.
inline std::string sentence_of(const decision& made)
{
    constexpr std::array<std::string_view, 5> what{
        "linear: sums over keys first, in linear time", "tiled: tile by tile, no score is stored",
        "tiled_with_state: tile by tile in the order of queries, no score is stored",
        "blocked: the scores of a block of queries at once", "stepwise: one query after another"};
    std::string text(what[static_cast<std::size_t>(made.by)]);
    if (!made.because.empty()) return text.append(", because ").append(made.because);
    const auto add = [&](executor faster, const char* name, std::string_view because) {
        if (faster >= made.by || (made.by == executor::tiled_with_state && faster == executor::tiled)) return;
        text.append(", not ").append(name).append(" because ").append(because);
    };
    add(executor::linear, "linear", made.not_linear);
    add(executor::tiled, "tiled", made.not_tiled);
    add(executor::blocked, "blocked", made.not_blocked);
    return text;
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
