// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/moment.hpp>
#include <heed/attention/weigh.hpp>

/// Queries that do not wait for each other: nothing is remembered from one to the next, so all scores of a sentence are
/// one matrix product, and all its contexts another.
///
///     A = normalize(Q Kᵀ),  C = A V           Vaswani et al. 2017, eq. 1
///
/// A score says that it can do so by `match_all` ([B,S,A], [B,T,A] -> [B·S,T]), a combiner by `combine_all` ([B·S,T],
/// [B,T,D] -> [B,S,D]), and a normalizer that looks at nothing but the scores of its row by `row_by_row = true`: to it,
/// every query of every sentence is a row.
namespace heed::detail {

template <class Normalize>
concept row_by_row = requires
{
    requires Normalize::row_by_row;
};

/// Masks whose rows can be given to the queries one by one.
template <class Mask>
concept mask_of_rows = std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths> || std::is_same_v<Mask, causal> ||
    std::is_same_v<Mask, boolean_mask<2>> || std::is_same_v<Mask, boolean_mask<3>>;

template <class Score, class Normalize, class Combine, class Projected, class Memory, class Mask>
concept at_once = row_by_row<Normalize> && mask_of_rows<Mask> && mask_of_rows<decltype(Memory::mask)> &&
    requires(const Score& score, const Combine& combine, const Projected& projected, const Memory& memory)
{
    combine.combine_all(score.match_all(projected, memory.keys), memory.values);
};

/// The real positions of each query: its sentence's, or what the mask leaves of them.
template <class Mask>
lengths_view lengths_of_rows(const Mask& mask, std::size_t S, const lengths_view& real)
{
    auto* const rows = transient_family::take<std::size_t>(real.batch() * S);
    for (std::size_t s = 0; s < S; ++s) {
        const scratch here;
        const auto of_step = [&]() -> lengths_view {
            if constexpr (std::is_same_v<Mask, lengths>) {
                return shortened(mask, real);
            } else if constexpr (std::is_same_v<Mask, causal>) {
                return mask_of_step(mask, s, S, real);
            } else {
                return real;
            }
        }();
        for (std::size_t b = 0; b < real.batch(); ++b) rows[b * S + s] = of_step[b];
    }
    return {rows, real.batch() * S};
}

/// What each query may see.
template <class Mask>
no_mask mask_of_queries(const Mask&, std::size_t, std::size_t, std::size_t)
{
    return {};
}
inline boolean_mask_view<2> mask_of_queries(const boolean_mask<2>& mask, std::size_t S, std::size_t B, std::size_t T)
{
    mask.require("attention of many queries", {B, T});
    auto* const rows = transient_family::take<std::uint8_t>(B * S * T);
    for (std::size_t row = 0; row < B * S; ++row) std::copy_n(mask.data() + row / S * T, T, rows + row * T);
    return {rows, {B * S, T}};
}
inline boolean_mask_view<2> mask_of_queries(const boolean_mask<3>& mask, std::size_t S, std::size_t B, std::size_t T)
{
    mask.require("attention of many queries", {B, S, T});
    return {mask.data(), {B * S, T}};
}

/// Contexts [B,S,D] of projected queries [B,S,A].
template <class Memory, class Mask>
auto answers_at_once(const auto& score, const auto& normalize, const auto& combine, const Memory& memory,
                     const auto& projected, const Mask& mask)
{
    const scratch here;
    const std::size_t S = shape_of(projected)[1], T = memory.positions(), B = memory.batch();
    const auto scores = score.match_all(projected, memory.keys);
    const lengths_view real = lengths_of_rows(mask, S, memory.real);
    const auto of_source = mask_of_queries(memory.mask, S, B, T);
    const auto of_query = mask_of_queries(mask, S, B, T);
    const auto ask = [&projected]() -> const auto& { return projected; };
    const moment<decltype(ask), std::remove_cvref_t<decltype(of_source)>, std::remove_cvref_t<decltype(of_query)>> at{
        real, 0, ask, of_source, of_query};
    return combine.combine_all(weigh(normalize, scores, no_state{}, at), memory.values);
}

}  // namespace heed::detail
