// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/memory.hpp>

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
lengths lengths_of_rows(const Mask& mask, std::size_t S, const lengths& real)
{
    std::vector<std::size_t> rows(real.batch() * S);
    for (std::size_t s = 0; s < S; ++s) {
        const auto of_step = [&]() -> lengths {
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
    return lengths(std::move(rows));
}

/// What each query may see.
template <class Mask>
no_mask mask_of_queries(const Mask&, std::size_t, const lengths&, std::size_t)
{
    return {};
}
inline boolean_mask<2> mask_of_queries(const boolean_mask<2>& mask, std::size_t S, const lengths& real, std::size_t T)
{
    const std::size_t B = real.batch();
    mask.require("attention of many queries", {B, T});
    boolean_mask<2> rows(shape_of_rank<2>{B * S, T});
    for (std::size_t row = 0; row < B * S; ++row) {
        for (std::size_t t = 0; t < T; ++t) rows[row * T + t] = mask[row / S * T + t];
    }
    return rows;
}
inline boolean_mask<2> mask_of_queries(const boolean_mask<3>& mask, std::size_t S, const lengths& real, std::size_t T)
{
    const std::size_t B = real.batch();
    mask.require("attention of many queries", {B, S, T});
    boolean_mask<2> rows(shape_of_rank<2>{B * S, T});
    for (std::size_t i = 0; i < B * S * T; ++i) rows[i] = mask[i];
    return rows;
}

/// Contexts [B,S,D] of projected queries [B,S,A].
template <class Memory, class Mask>
auto answers_at_once(const auto& score, const auto& normalize, const auto& combine, const Memory& memory,
                     const auto& projected, const Mask& mask)
{
    const std::size_t S = shape_of(projected)[1], T = memory.positions();
    const auto scores = score.match_all(projected, memory.keys);
    const lengths real = lengths_of_rows(mask, S, memory.real);
    const auto of_source = mask_of_queries(memory.mask, S, memory.real, T);
    const auto of_query = mask_of_queries(mask, S, memory.real, T);
    const auto ask = [&projected]() -> const auto& { return projected; };
    const no_focus nowhere{};
    const moment<decltype(ask), std::remove_cvref_t<decltype(of_source)>, std::remove_cvref_t<decltype(of_query)>> at{
        real, 0, ask, of_source, of_query, nowhere};
    return combine.combine_all(normalize(at.visible(scores), at), memory.values);
}

}  // namespace heed::detail
