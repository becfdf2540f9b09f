// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <heed/attention/query.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/windows.hpp>
#include <heed/simd/score_index.hpp>

/// What hides positions in a step. Results lie in this thread's workspace.
namespace heed::detail {

/// The part of a mask for S queries that applies to query s.
no_mask mask_of_step(const no_mask&, const auto&...) { return {}; }
boolean_mask_view<2> mask_of_step(const boolean_mask<2>& mask, const auto&...) { return mask; }
lengths_view mask_of_step(const lengths& mask, const auto&...) { return mask; }
inline boolean_mask_view<2> mask_of_step(const boolean_mask<3>& mask, std::size_t s, std::size_t S, const lengths_view&)
{
    const auto [B, steps, T] = mask.shape();
    mask.require("attention of many queries", {B, S, T});
    auto* const row = workspace_family::take<std::uint8_t>(B * T);
    std::fill_n(row, B * T, std::uint8_t{0});
    for (std::size_t b = 0; b < B && s < S; ++b) std::copy_n(mask.data() + (b * steps + s) * T, T, row + b * T);
    return {row, {B, T}};
}
template <class Bias>
    requires(rank_of<Bias> == 2)
const additive_mask<Bias>& mask_of_step(const additive_mask<Bias>& mask, std::size_t, std::size_t, const lengths_view&)
{
    return mask;
}
template <class Bias>
auto mask_of_step(const additive_mask<Bias>& mask, std::size_t s, std::size_t S, const lengths_view&)
{
    auto shape = shape_of(mask.bias);
    shape[1] = S;
    require_shape("attention of many queries", "the additive mask", shape_of(mask.bias), shape,
                  "one row for each query");
    return additive_mask{part_of_step(mask.bias, s)};
}
inline lengths_view mask_of_step(const causal&, std::size_t s, std::size_t S, const lengths_view& real)
{
    auto* const seen = workspace_family::take<std::size_t>(real.batch());
    const std::size_t behind = S > s ? S - s - 1 : 0;  // queries; where there is none at all, one of zeros stands in
    for (std::size_t b = 0; b < real.batch(); ++b) seen[b] = real[b] > behind ? real[b] - behind : 0;
    return {seen, real.batch()};
}

/// The part of each row within its window: of one sentence a piece, of several a copy.
struct out_of_windows {
    static constexpr bool spares_rows = true;

    window_view where;

    auto operator()(const tensor auto& x) const
    {
        auto must = shape_of(x);
        return must[0] == 1 ? ops::positions_between(x, where.begin[0], where.count[0]) : ops::window_of(x, where);
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

/// No position is hidden.
struct no_masks {
    const auto& visible(const tensor auto& scores) const { return scores; }
    static bool is_visible(std::size_t) { return true; }

    no_masks map(const auto&) const { return {}; }
    void require(std::size_t, std::size_t) const {}
};

/// What hides positions in a step: any of three masks, in one type, so that a step under masks is compiled once.
template <class Bias>
struct step_masks {
    std::optional<boolean_mask_view<2>> source, query;  // [B,T]
    std::optional<Bias> bias;                           // [B,T]

    /// The scores, -inf at hidden positions.
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

/// How many of the memory's positions the query may see in each row: all real ones, or fewer by a mask of lengths.
lengths_view visible_lengths(const auto&, const lengths_view& real, std::size_t) { return real; }
lengths_view visible_lengths(const std::convertible_to<lengths_view> auto& given, const lengths_view& real,
                             std::size_t positions)
{
    const lengths_view mask = given;
    if (mask.batch() != real.batch()) {
        throw shape_error("attention: the mask has " + std::to_string(mask.batch()) + " lengths but the batch has " +
                          std::to_string(real.batch()) + " rows; give one length per row");
    }
    auto* const both = workspace_family::take<std::size_t>(real.batch());
    for (std::size_t b = 0; b < real.batch(); ++b) {
        if (mask[b] > positions) {
            throw shape_error("attention: the mask shows row " + std::to_string(b) + " the first " +
                              std::to_string(mask[b]) + " positions, but the memory has only " +
                              std::to_string(positions) + "; a length counts positions of the memory");
        }
        both[b] = std::min(mask[b], real[b]);
    }
    return {both, real.batch(), real.first_row()};
}

/// The masks of a step, in the family that computes it, where `bring` brings a tensor. Lengths shorten the rows
/// instead, see below. `Always`: masks that hide nothing, where there are none.
template <class Family, class T, bool Always, class Source, class Mask>
auto masks_of(const Source& source, const Mask& mask, const auto& bring)
{
    constexpr bool of_source = !std::is_same_v<Source, no_mask>,
                   shortens = std::is_convertible_v<const Mask&, lengths_view>,
                   of_query = std::is_convertible_v<const Mask&, boolean_mask_view<2>>, biased = requires
    {
        requires rank_of<decltype(mask.bias)>
        == 2;
    };
    static_assert(of_query || biased || shortens || std::is_same_v<Mask, no_mask>,
                  "heed: the mask of one query is a boolean_mask<2>, an additive_mask of a tensor [B,T], or lengths");
    if constexpr (of_source || of_query || biased || Always) {
        step_masks<typename Family::template tensor_type<T, 2>> all;
        if constexpr (of_source) all.source.emplace(source);
        if constexpr (of_query) all.query.emplace(mask);
        if constexpr (biased) all.bias.emplace(bring(mask.bias));
        return all;
    } else {
        return no_masks{};
    }
}

/// Tags: outside of a window, and within one.
struct nowhere {};
struct in_window {};

}  // namespace heed::detail

namespace heed {

/// What a policy can read besides its arguments. Within a window, `real` counts the positions in the window.
template <class Query, class Masks = detail::no_masks, class Where = detail::nowhere>
struct step_context {
    lengths_view real;  // the number of real positions of each row
    std::size_t step;   // 0 for the first query
    const Query& given;
    const Masks& masks;    // what hides positions
    std::size_t head = 0;  // which one asks, among those of a multi_head
    using where = Where;
    using query_type = Query;
    using masks_type = Masks;

    /// The query as it was given, [B,Q] or its parts.
    const Query& query() const { return given; }

    /// The scores, -inf at the positions that a mask hides. A normalizer calls this after any modulation of its own.
    decltype(auto) visible(const tensor auto& scores) const { return masks.visible(scores); }
};

template <class Query, class Masks>
step_context(lengths_view, std::size_t, const Query&, const Masks&, std::size_t) -> step_context<Query, Masks>;

namespace detail {

/// The same moment, within windows.
template <class Query, class Masks>
step_context<Query, Masks, in_window> in_windows(const step_context<Query, Masks>& at)
{
    return {at.real, at.step, at.given, at.masks, at.head};
}

}  // namespace detail

/// A step context without query and masks: for calling a normalizer by hand.
struct plain_step_context {
    lengths_view real;
    std::size_t step = 0, head = 0;

    const auto& visible(const tensor auto& scores) const { return scores; }  // nothing is hidden
};

}  // namespace heed

/// Predicate masks as truth values, drawn for the queries of a block or a step and forgotten with their scores.
namespace heed::detail {

/// A predicate mask and the queries that it is asked about: `all` of them, the first of which has the number `first`.
template <class Mask>
struct predicate_of_queries {
    Mask mask;
    std::size_t first, all, positions, head;

    const predicate_of_queries& rows(std::size_t, std::size_t) const { return *this; }  // lengths know which sentences
};
template <class Mask>
predicate_of_queries(Mask, std::size_t, std::size_t, std::size_t, std::size_t) -> predicate_of_queries<Mask>;

/// What `count` queries from the begin-th on see: [B,count,T] at `to`. A query beyond the last sees nothing.
template <class Mask>
void draw(const predicate_of_queries<Mask>& what, const lengths_view& real, std::size_t begin, std::size_t count,
          std::uint8_t* to)
{
    const std::size_t T = what.positions;
    std::fill_n(to, real.batch() * count * T, std::uint8_t{0});
    score_index p;
    p.head = static_cast<std::int32_t>(what.head);
    for (std::size_t b = 0; b < real.batch(); ++b) {
        p.batch = static_cast<std::int32_t>(real.first_row() + b);
        for (std::size_t s = begin; s < begin + count; ++s, to += T) {
            if (s >= what.all) continue;
            p.query = static_cast<std::int32_t>(what.first + s);
            p.diagonal = static_cast<std::int32_t>(real[b] + s) - static_cast<std::int32_t>(what.all);
            for (std::size_t t = 0; t < real[b]; t += lane_count) {
                p.key.at = counted_from(t).at;
                const lane_mask seen = what.mask(p);
                for (std::size_t i = 0; i < lane_count && t + i < real[b]; ++i) to[t + i] = seen.at[i] != 0 ? 1 : 0;
            }
        }
    }
}

/// The same in this thread's workspace.
template <class Mask>
boolean_mask_view<3> materialized(const predicate_of_queries<Mask>& what, const lengths_view& real, std::size_t begin,
                                  std::size_t count)
{
    auto* const to = workspace_family::take<std::uint8_t>(real.batch() * count * what.positions);
    detail::draw(what, real, begin, count, to);
    return {to, {real.batch(), count, what.positions}};
}

/// What each of S queries of a head sees, [B,S,T].
template <class Mask>
boolean_mask<3> materialize_mask(const Mask& mask, const lengths_view& real, std::size_t first, std::size_t S,
                                 std::size_t positions, std::size_t head = 0)
{
    boolean_mask<3> all(shape_of_rank<3>{real.batch(), S, positions});
    if (real.batch() * S * positions > 0)
        detail::draw(predicate_of_queries{mask, first, S, positions, head}, real, 0, S, &all[0]);
    return all;
}

/// The part of a mask that applies to query s, [B,T].
template <class Mask>
boolean_mask_view<2> mask_of_step(const predicate_of_queries<Mask>& what, std::size_t s, std::size_t,
                                  const lengths_view& real)
{
    return {detail::materialized(what, real, s, 1).data(), {real.batch(), what.positions}};
}

}  // namespace heed::detail
