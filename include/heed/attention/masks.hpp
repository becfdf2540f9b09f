// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <heed/attention/query.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/transient.hpp>
#include <heed/core/window.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/windows.hpp>

/// The part of a mask that applies to one query of many, or to a window. Results lie in this thread's workspace.
namespace heed::detail {

/// The part of a mask for S queries that applies to query s.
inline no_mask mask_of_step(const no_mask&, std::size_t, std::size_t, const lengths_view&) { return {}; }
inline boolean_mask_view<2> mask_of_step(const boolean_mask<2>& mask, std::size_t, std::size_t, const lengths_view&)
{
    return mask;
}
inline boolean_mask_view<2> mask_of_step(const boolean_mask<3>& mask, std::size_t s, std::size_t S, const lengths_view&)
{
    const auto [B, steps, T] = mask.shape();
    mask.require("attention of many queries", {B, S, T});
    auto* const row = transient_family::take<std::uint8_t>(B * T);
    std::fill_n(row, B * T, std::uint8_t{0});
    for (std::size_t b = 0; b < B && s < S; ++b) std::copy_n(mask.data() + (b * steps + s) * T, T, row + b * T);
    return {row, {B, T}};
}
template <class Bias>
auto mask_of_step(const additive_mask<Bias>& mask, std::size_t s, std::size_t S, const lengths_view&)
{
    if constexpr (rank_of<Bias> == 2) {
        return mask;
    } else {
        auto shape = shape_of(mask.bias);
        shape[1] = S;
        require_shape("attention of many queries", "the additive mask", shape_of(mask.bias), shape,
                      "one row for each query");
        return additive_mask{part_of_step(mask.bias, s)};
    }
}
inline lengths_view mask_of_step(const lengths& mask, std::size_t, std::size_t, const lengths_view&) { return mask; }
inline lengths_view mask_of_step(const causal&, std::size_t s, std::size_t S, const lengths_view& real)
{
    auto* const seen = transient_family::take<std::size_t>(real.batch());
    for (std::size_t b = 0; b < real.batch(); ++b) seen[b] = real[b] + s + 1 > S ? real[b] + s + 1 - S : 0;
    return {seen, real.batch()};
}

/// A mask as policies see it.
inline no_mask seen_mask(const no_mask&) { return {}; }
inline boolean_mask_view<2> seen_mask(const boolean_mask_view<2>& mask) { return mask; }
template <class Bias>
const additive_mask<Bias>& seen_mask(const additive_mask<Bias>& mask)
{
    return mask;
}

/// A mask in the family that computes the step: for the workspace, its bias as a transient tensor.
template <class Family>
no_mask mask_in_family(const no_mask&)
{
    return {};
}
template <class Family>
boolean_mask_view<2> mask_in_family(const boolean_mask_view<2>& mask)
{
    return mask;
}
template <class Family, class Bias>
auto mask_in_family(const additive_mask<Bias>& mask)
{
    if constexpr (std::is_same_v<Family, transient_family>) {
        transient bias(tensor_view<const element_of<Bias>, rank_of<Bias>>(view_of(mask.bias)));
        return additive_mask<decltype(bias)>{bias};
    } else {
        return mask;
    }
}

/// The rows' lengths, shortened by a mask of lengths.
inline lengths_view shortened(const lengths_view& mask, const lengths_view& real)
{
    if (mask.batch() != real.batch()) {
        throw shape_error("attention: the mask has " + std::to_string(mask.batch()) + " lengths but the batch has " +
                          std::to_string(real.batch()) + " rows; give one length per row");
    }
    auto* const both = transient_family::take<std::size_t>(real.batch());
    for (std::size_t b = 0; b < real.batch(); ++b) both[b] = std::min(mask[b], real[b]);
    return {both, real.batch(), real.first_row()};
}

/// The part of a mask that lies within a window.
inline no_mask mask_within(const no_mask&, const window_view&) { return {}; }
inline boolean_mask_view<2> mask_within(const boolean_mask_view<2>& mask, const window_view& where)
{
    const auto [B, T] = mask.shape();
    auto* const part = transient_family::take<std::uint8_t>(B * where.width);
    std::fill_n(part, B * where.width, std::uint8_t{0});
    for (std::size_t b = 0; b < B; ++b) {
        std::copy_n(mask.data() + b * T + where.begin[b], where.count[b], part + b * where.width);
    }
    return {part, {B, where.width}};
}
template <class Bias>
auto mask_within(const additive_mask<Bias>& mask, const window_view& where)
{
    return additive_mask{ops::window_of(mask.bias, where)};
}

}  // namespace heed::detail
