// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include <heed/attention/query.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/masks/of_queries.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/windows.hpp>
#include <heed/policy/step_context.hpp>

/// The masks of a step, and those of a call for the queries of a memory.
namespace heed::inline HEED_TARGET::detail {

/// The part of each row within its window: a slice of one sentence, a copy of several. Also a slice of no sentence, so
/// that a run on zero rows has the operations of a run on one (ad/saved_results.hpp).
struct out_of_windows {
    static constexpr bool spares_rows = true;

    window_view where;

    auto operator()(const tensor auto& x) const
    {
        const std::size_t rows = shape_of(x)[0];
        if (rows > 1) return ops::window_of(x, where);
        return rows == 1 ? ops::positions_between(x, where.begin[0], where.count[0])
                         : ops::positions_between(x, 0, where.width);
    }
    boolean_mask_view<2> part(const boolean_mask_view<2>& mask) const
    {
        const auto [B, T] = mask.shape();
        if (B == 1) return {mask.data() + where.begin[0], {1, where.count[0]}};
        auto* const some = workspace_family::take<std::uint8_t>(B * where.width);
        std::fill_n(some, B * where.width, std::uint8_t{0});
        for (std::size_t b = 0; b < B; ++b)
            std::copy_n(mask.data() + b * T + where.begin[b], where.count[b], some + b * where.width);
        return {some, {B, where.width}};
    }
};

/// The masks of a step: any of three, in one type, so that a step with masks is compiled once.
template <class Bias>
struct step_masks {
    std::optional<boolean_mask_view<2>> source, query;  // [B,T]
    std::optional<Bias> bias;                           // [B,T]

    /// The scores, with -inf at hidden positions.
    template <tensor E>
    auto visible(const E& scores) const
    {
        using result = typename common_family_of<E, Bias>::template tensor_type<element_of<E>, rank_of<E>>;
        std::optional<result> shown;
        const auto hide = [&](const auto& mask) {
            shown = shown ? ops::masked_fill(*shown, mask) : ops::masked_fill(scores, mask);
        };
        if (source) hide(*source);
        if (query) hide(*query);
        if (bias) return shown ? ops::add_mask(*shown, *bias) : ops::add_mask(scores, *bias);
        return shown ? *std::move(shown) : result(scores);
    }

    /// Is the position i of [B,T] visible?
    bool is_visible(std::size_t i) const
    {
        return (!source || (*source)[i] != 0) && (!query || (*query)[i] != 0) &&
               (!bias || view_of(*bias).data[i] != -std::numeric_limits<element_of<Bias>>::infinity());
    }

    /// The masks with `row` applied to the bias and row.part to the others.
    template <class Row>
    auto map(const Row& row) const
    {
        using bias_type = std::remove_cvref_t<decltype(row(*bias))>;
        step_masks<bias_type> mapped;
        if (source) mapped.source.emplace(row.part(*source));
        if (query) mapped.query.emplace(row.part(*query));
        if (bias) mapped.bias.emplace(row(*bias));
        return mapped;
    }

    /// Throws shape_error unless all are [B,T].
    void require(std::size_t B, std::size_t T) const
    {
        if (source) source->require("attention", {B, T});
        if (query) query->require("attention", {B, T});
        if (bias) {
            require_shape("attention", "the additive mask", shape_of(*bias), shape_of_rank<2>{B, T},
                          "one number for each position");
        }
    }
};

/// Does a mask add numbers [B,T] to the scores of one query?
template <class Mask>
concept adds_to_row = (rank_of<decltype(Mask::bias)> == 2);

/// Masks of one query that a step reads without conversion.
template <class Mask>
concept mask_of_one_query = std::is_same_v<Mask, no_mask> || std::is_convertible_v<const Mask&, lengths_view> ||
    std::is_convertible_v<const Mask&, boolean_mask_view<2>> || adds_to_row<Mask>;

/// The truth values of a mask, if it has any.
std::optional<boolean_mask_view<2>> truth_of(const auto&) { return {}; }
std::optional<boolean_mask_view<2>> truth_of(const std::convertible_to<boolean_mask_view<2>> auto& mask)
{
    return boolean_mask_view<2>(mask);
}

/// The masks of a step, in the family that computes it, to which `bring` converts a tensor. Lengths shorten the rows
/// instead (visible_lengths). `Always`: returns step_masks even without masks.
template <class Family, class T, bool Always, class Source, class Mask>
auto masks_of(const Source& source, const Mask& mask, const auto& bring)
{
    static_assert(
        mask_of_one_query<Mask>,
        "heed: the mask of one query must be a boolean_mask<2>, an additive_mask of a tensor [B,T], or lengths");
    using truth = boolean_mask_view<2>;
    if constexpr (Always || !std::is_same_v<Source, no_mask> || std::is_convertible_v<const Mask&, truth> ||
                  adds_to_row<Mask>) {
        step_masks<typename Family::template tensor_type<T, 2>> all{truth_of(source), truth_of(mask), {}};
        if constexpr (adds_to_row<Mask>) all.bias.emplace(bring(mask.bias));
        return all;
    } else {
        return no_masks{};
    }
}

/// A mask together with the numbers of the S queries to which it applies, and their head.
const auto& asked_of_queries(const auto& mask, const auto&, std::size_t, const auto&) { return mask; }
auto asked_of_queries(const any_predicate_mask auto& mask, const auto& memory, std::size_t S, const auto& state)
{
    return predicate_of_queries{mask, query_of_masks(memory, state.step), S, memory.positions(), state.head};
}
template <class Mask, class Bias>
auto asked_of_queries(const mask_and_bias<Mask, Bias>& mask, const auto& memory, std::size_t S, const auto& state)
{
    return mask_and_bias{detail::asked_of_queries(mask.mask, memory, S, state), mask.bias, mask.queries, state.head};
}

/// The queries of a call, for its masks.
inline asked_queries queries_of_call(const auto& memory, std::size_t S, const auto& state)
{
    const std::size_t H = memory.real.heads();
    return {query_of_masks(memory, state.step), S, memory.batch() / H, H, memory.positions()};
}

/// The mask of one query, or of many, for each of n heads that run one after another.
template <std::size_t R>
decltype(auto) mask_of_heads(const auto& given, const auto& memory, std::size_t S, std::size_t step, std::size_t n)
{
    return detail::mask_for(given, {query_of_masks(memory, step), S, memory.batch(), n, memory.positions(), R == 2},
                            memory.real);
}
template <std::size_t R>
    requires(R == 2)
const auto& mask_of_heads(const mask_of_one_query auto& given, const auto&, std::size_t, std::size_t, std::size_t)
{
    return given;
}

/// The mask of one query: lengths, truth values [B,T], numbers [B,T], or both. The caller opens a scratch.
const auto& mask_of_query(const mask_of_one_query auto& given, const auto&, const auto&) { return given; }
auto mask_of_query(const auto& given, const auto& memory, const auto& state)
{
    auto queries = detail::queries_of_call(memory, 1, state);
    queries.one = true;
    const auto& known = detail::mask_for(given, queries, memory.real);
    return detail::mask_of_step(detail::asked_of_queries(known, memory, 1, state), 0, 1, memory.real);
}

}  // namespace heed::inline HEED_TARGET::detail
