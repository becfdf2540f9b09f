// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <heed/core/errors.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>
#include <heed/core/workspace.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/shape.hpp>
#include <heed/simd/score_index.hpp>

/// The mask of some of a call's queries: lengths, or truth values that are materialized for a block or a step and
/// released with its scores.
namespace heed::inline HEED_TARGET::detail {

/// The number of memory positions that the query may see in each row: all real ones, or fewer if the mask has lengths.
lengths_view visible_lengths(const auto&, const lengths_view& real, std::size_t) { return real; }
lengths_view visible_lengths(const std::convertible_to<lengths_view> auto& given, const lengths_view& real,
                             std::size_t positions)
{
    const lengths_view mask = given;
    if (mask.batch() != real.batch()) {
        throw_shape_error({"attention: the mask has ", mask.batch(), " lengths but the batch has ", real.batch(),
                           " rows; give one length per row"});
    }
    auto* const both = workspace_family::take<std::size_t>(real.batch());
    for (std::size_t b = 0; b < real.batch(); ++b) {
        if (mask[b] > positions) {
            throw_shape_error({"attention: the mask gives row ", b, " the first ", mask[b],
                               " positions, but the memory has only ", positions,
                               "; a length counts positions of the memory"});
        }
        both[b] = std::min(mask[b], real[b]);
    }
    return {both, real.batch(), real.first_row(), real.heads()};
}

/// A predicate mask and its queries: `all` queries, numbered from `first`.
template <class Mask>
struct predicate_of_queries {
    Mask mask;
    std::size_t first, all, positions, head;

    const predicate_of_queries& rows(std::size_t, std::size_t) const { return *this; }  // lengths map rows to sentences
};
template <class Mask>
predicate_of_queries(Mask, std::size_t, std::size_t, std::size_t, std::size_t) -> predicate_of_queries<Mask>;

/// Writes the mask of queries begin to begin + count - 1 to `to`, [B,count,T]. A query beyond the last sees nothing.
template <class Mask>
void draw(const predicate_of_queries<Mask>& what, const lengths_view& real, std::size_t begin, std::size_t count,
          std::uint8_t* to)
{
    const std::size_t T = what.positions;
    std::fill_n(to, real.batch() * count * T, std::uint8_t{0});
    score_index p;
    for (std::size_t b = 0; b < real.batch(); ++b) {
        p.batch = static_cast<std::int32_t>(real.sentence_of(b));
        p.head = static_cast<std::int32_t>(what.head + real.head_of(b));
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

/// Like draw, in this thread's workspace.
template <class Mask>
boolean_mask_view<3> materialized(const predicate_of_queries<Mask>& what, const lengths_view& real, std::size_t begin,
                                  std::size_t count)
{
    auto* const to = workspace_family::take<std::uint8_t>(real.batch() * count * what.positions);
    detail::draw(what, real, begin, count, to);
    return {to, {real.batch(), count, what.positions}};
}

/// The mask of S queries of a head, [B,S,T].
template <class Mask>
boolean_mask<3> materialize_mask(const Mask& mask, const lengths_view& real, std::size_t first, std::size_t S,
                                 std::size_t positions, std::size_t head = 0)
{
    boolean_mask<3> all(shape_of_rank<3>{real.batch(), S, positions});
    if (real.batch() * S * positions > 0)
        detail::draw(predicate_of_queries{mask, first, S, positions, head}, real, 0, S, &all[0]);
    return all;
}

/// The part of a mask for S queries that applies to query s.
no_mask mask_of_step(const no_mask&, const auto&...) { return {}; }
lengths_view mask_of_step(const lengths& mask, const auto&...) { return mask; }
inline lengths_view mask_of_step(const causal&, std::size_t s, std::size_t S, const lengths_view& real)
{
    auto* const seen = workspace_family::take<std::size_t>(real.batch());
    const std::size_t behind = S > s ? S - s - 1 : 0;  // later queries; if S = 0, s is a query of zeros
    for (std::size_t b = 0; b < real.batch(); ++b) seen[b] = real[b] > behind ? real[b] - behind : 0;
    return {seen, real.batch()};
}

/// The part of a mask that applies to query s, [B,T].
template <class Mask>
boolean_mask_view<2> mask_of_step(const predicate_of_queries<Mask>& what, std::size_t s, std::size_t,
                                  const lengths_view& real)
{
    return {detail::materialized(what, real, s, 1).data(), {real.batch(), what.positions}};
}

/// A mask of one query, and numbers [B,T] that are added to its scores.
template <class Mask, class Bias>
struct mask_and_bias_of_step {
    Mask mask;
    Bias bias;

    template <class To>
        requires(std::is_convertible_v<const Mask&, To>)
    operator To() const { return mask; }
};
template <class Mask, class Bias>
mask_and_bias_of_step(Mask, Bias) -> mask_and_bias_of_step<Mask, Bias>;

template <class Mask, class Bias>
auto mask_of_step(const mask_and_bias<Mask, Bias>& what, std::size_t s, std::size_t S, const lengths_view& real)
{
    const std::size_t H = real.heads(), T = what.queries.positions;
    const auto all = shape_of(what.bias);
    const shape_of_rank<4> whole{real.batch() / H, H, 1, T};
    auto numbers = constant_like(what.bias, whole, 0.0);
    if (all[2] > 0) {
        const std::size_t at = all[2] == 1 ? 0 : s;
        const auto row = ops::slice(what.bias, 2, at, at + 1);  // [B,H,1,T]
        const bool of_all = all[1] > H;
        numbers = ops::add(numbers, of_all ? ops::slice(row, 1, what.head, what.head + 1) : row);
    }
    return mask_and_bias_of_step{detail::mask_of_step(what.mask, s, S, real),
                                 ops::reshaped(numbers, shape_of_rank<2>{real.batch(), T})};
}

/// `count` of all queries, from `first`.
struct part_of_queries {
    std::size_t first, count, all;
};

/// A mask as a view; a mask that owns no memory is returned unchanged.
inline lengths_view shown(const lengths& mask) { return mask; }
template <std::size_t N>
boolean_mask_view<N> shown(const boolean_mask<N>& mask)
{
    return mask;
}
const auto& shown(const auto& mask) { return mask; }

/// The number of positions that query s of S may see in each sentence.
lengths_view lengths_of_step(const auto& mask, std::size_t, std::size_t, const lengths_view& real,
                             std::size_t positions)
{
    return visible_lengths(mask, real, positions);
}
inline lengths_view lengths_of_step(const causal& mask, std::size_t s, std::size_t S, const lengths_view& real,
                                    std::size_t)
{
    return mask_of_step(mask, s, S, real);
}

/// The number of positions that each of these queries may see: its sentence's length, or less if the mask shortens it.
template <class Mask>
lengths_view lengths_of_rows(const Mask& mask, const part_of_queries& part, const lengths_view& real,
                             std::size_t positions)
{
    auto* const rows = workspace_family::take<std::size_t>(real.batch() * part.count);
    for (std::size_t s = 0; s < part.count; ++s) {
        const scratch here;
        const lengths_view of_step = lengths_of_step(mask, part.first + s, part.all, real, positions);
        for (std::size_t b = 0; b < real.batch(); ++b) rows[b * part.count + s] = of_step[b];
    }
    return {rows, real.batch() * part.count};
}

/// A mask with a row for each of these queries of each sentence, [B·S,T]. For masks of lengths, see lengths_of_rows.
no_mask mask_of_queries(const auto&, const part_of_queries&, std::size_t, std::size_t) { return {}; }
inline boolean_mask_view<2> mask_of_queries(const boolean_mask_view<3>& mask, const part_of_queries& part,
                                            std::size_t B, std::size_t T)
{
    mask.require("attention of many queries", {B, part.count, T});
    return {mask.data(), {B * part.count, T}};
}
inline boolean_mask_view<2> mask_of_queries(const boolean_mask_view<2>& mask, const part_of_queries& part,
                                            std::size_t B, std::size_t T)
{
    mask.require("attention of many queries", {B, T});
    auto* const rows = workspace_family::take<std::uint8_t>(B * part.count * T);
    for (std::size_t row = 0; row < B * part.count; ++row)
        std::copy_n(mask.data() + row / part.count * T, T, rows + row * T);
    return {rows, {B * part.count, T}};
}

/// Materializes a predicate mask for these queries of a head, in the forward and in the backward pass; returns any
/// other mask unchanged.
const auto& drawn_of_part(const auto& mask, const lengths_view&, const part_of_queries&, std::size_t) { return mask; }
template <class Mask>
boolean_mask_view<3> drawn_of_part(const predicate_of_queries<Mask>& mask, const lengths_view& real,
                                   const part_of_queries& part, std::size_t head)
{
    const predicate_of_queries<const Mask&> asked{mask.mask, mask.first, mask.all, mask.positions, head};
    return detail::materialized(asked, real, part.first, part.count);
}

/// The rows of a mask for some queries of a batch [B,T]. Throws shape_error if the shape does not fit.
const auto& mask_of_part(const auto& mask, const part_of_queries&, std::size_t, std::size_t) { return mask; }
template <class Mask>
    requires(std::is_same_v<Mask, lengths_view> || std::is_same_v<Mask, boolean_mask_view<2>>)
Mask mask_of_part(const Mask& mask, const part_of_queries&, std::size_t B, std::size_t T)
{
    mask.require("attention of many queries", {B, T});
    return mask;
}

}  // namespace heed::inline HEED_TARGET::detail
