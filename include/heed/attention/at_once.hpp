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
#include <heed/attention/rows.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/score/hooks.hpp>

/// Many queries at once, for mechanisms without state: all scores of a sentence are one matrix product, and all its
/// contexts another.
///
///     A = normalize(Q Kᵀ),  C = A V           Vaswani et al. 2017, eq. 1
///
/// A score takes part if it has `match_all` ([B,S,A], [B,T,A] -> [B·S,T]), a combiner if it has `combine_all` ([B·S,T],
/// [B,T,D] -> [B,S,D]), and a normalizer if it reads only the scores of a row and declares `row_by_row = true`: each
/// query of each sentence is then a row.
namespace heed::detail {

/// Masks that can be split into one row per query.
template <class Mask>
concept mask_of_rows = std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths> || std::is_same_v<Mask, causal> ||
    std::is_same_v<Mask, boolean_mask<2>> || std::is_same_v<Mask, boolean_mask<3>>;

template <class Score, class Normalize, class Combine, class Projected, class Memory, class Mask>
concept at_once =
    row_by_row<Normalize> && mask_of_rows<Mask> && mask_of_rows<decltype(Memory::mask)> && !shared_by_rows<Memory> &&
    heed::score::over::matches_all<Score, Projected, std::remove_cvref_t<decltype(Memory::keys)>> &&
    requires(const Score& score, const Combine& combine, const Projected& projected, const Memory& memory)
{
    combine.combine_all(heed::score::over::match_all(score, projected, memory.keys, heed::score::over::queries_from{}),
                        memory.values);
};

/// Refuses a `match_all` or `combine_all` that cannot be called.
template <class Score, class Combine, class Projected, class Memory>
consteval bool check_at_once()
{
    using keys = decltype((std::declval<const Memory&>().keys));
    using values = decltype((std::declval<const Memory&>().values));
    if constexpr (heed::score::over::matches_all<Score, Projected, std::remove_cvref_t<keys>>) {
        using scores =
            decltype(heed::score::over::match_all(std::declval<const Score&>(), std::declval<const Projected&>(),
                                                  std::declval<keys>(), heed::score::over::queries_from{}));
        static_assert(hook::combine_all<Combine, const scores&, values> || may_lack<Combine>("combine_all"),
                      HEED_SAYS_HOOK("combine_all", "auto combine_all(const heed::tensor auto& weights, const "
                                                    "heed::tensor auto& values) const"));
    } else if constexpr (!requires(const Score& score) { score.base; }) {  // such a one needs its base's
        static_assert(may_lack<Score>("match_all"),
                      HEED_SAYS_HOOK("match_all", "auto match_all(const heed::tensor auto& queries, const heed::tensor "
                                                  "auto& keys) const"));
    }
    return true;
}

/// The number of positions that each query may see: its sentence's, or fewer if the mask shortens it.
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

/// A mask with a row for each query of each sentence, [B·S,T]. Those of lengths are in lengths_of_rows.
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

/// Weights [B·S,T] of projected queries [B,S,A], the first of which is from.first. The caller opens a scratch for what
/// it takes of the workspace.
template <class Memory, class Mask>
auto weights_at_once(const auto& score, const auto& normalize, const Memory& memory, const auto& projected,
                     const heed::score::over::queries_from& from, const Mask& mask)
{
    const std::size_t S = shape_of(projected)[1], T = memory.positions(), B = memory.batch();
    const auto scores = heed::score::over::match_all(score, projected, memory.keys, from);
    const lengths_view real = lengths_of_rows(mask, S, memory.real);
    using family = family_of<decltype(scores)>;
    const auto masks = masks_of<family, element_of<decltype(scores)>, false>(
        mask_of_queries(memory.mask, S, B, T), mask_of_queries(mask, S, B, T), unchanged{});
    const moment<std::remove_cvref_t<decltype(projected)>, std::remove_const_t<decltype(masks)>> at{real, 0, projected,
                                                                                                    masks};
    return weigh(normalize, scores, no_state{}, at);
}

/// Their contexts [B,S,D].
template <class Memory, class Mask>
auto answers_at_once(const auto& score, const auto& normalize, const auto& combine, const Memory& memory,
                     const auto& projected, const heed::score::over::queries_from& from, const Mask& mask)
{
    const scratch here;
    return combine.combine_all(weights_at_once(score, normalize, memory, projected, from, mask), memory.values);
}

}  // namespace heed::detail
