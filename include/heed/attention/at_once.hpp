// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/score_hooks.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/ops/by_rows.hpp>

/// Many queries at once, for mechanisms without state: all scores of a sentence are one matrix product, and all its
/// contexts another.
///
///     A = normalize(Q Kᵀ),  C = A V           Vaswani et al. 2017, eq. 1
///
/// A score takes part if it has `match_all` ([B,S,A], [B,T,A] -> [B·S,T]), a combiner if it has `combine_all` ([B·S,T],
/// [B,T,D] -> [B,S,D]; it may take the first query's number, a queries_from, as well), and a normalizer if it reads
/// only the scores of a row and says so in its traits, `.rowwise = true`: each query of each sentence is then a row.
namespace heed::detail {

/// Masks that can be split into one row per query.
template <class Mask>
concept mask_of_rows = std::is_same_v<Mask, no_mask> || std::is_same_v<Mask, lengths> || std::is_same_v<Mask, causal> ||
    std::is_same_v<Mask, boolean_mask<2>> || std::is_same_v<Mask, boolean_mask<3>>;

/// Can this combiner sum for all queries at once, with the number of the first one or without?
template <class Combine, class Weights, class Values>
concept combines_all = hook::combine_all<Combine, Weights, Values, const heed::score::over::queries_from&> ||
    hook::combine_all<Combine, Weights, Values>;

/// The contexts [B,S,D] of all queries by their weights [B·S,T].
template <class Combine>
auto combined_all(const Combine& combine, const tensor auto& weights, const tensor auto& values,
                  const heed::score::over::queries_from& from)
{
    if constexpr (hook::combine_all<Combine, decltype(weights), decltype(values), decltype(from)>) {
        return combine.combine_all(weights, values, from);
    } else {
        return combine.combine_all(weights, values);
    }
}

template <class Score, class Normalize, class Combine, class Projected, class Memory, class Mask>
concept at_once =
    rowwise<Normalize> && mask_of_rows<Mask> && mask_of_rows<decltype(Memory::mask)> && !shared_by_rows<Memory> &&
    heed::score::over::matches_all<Score, Projected, std::remove_cvref_t<decltype(Memory::keys)>> &&
    requires(const Score& score, const Projected& projected, const Memory& memory)
{
    requires combines_all<Combine,
                          decltype(heed::score::over::match_all(score, projected, memory.keys,
                                                                heed::score::over::queries_from{})),
                          decltype((memory.values))>;
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
        static_assert(combines_all<Combine, const scores&, values> || !has_combine_all<Combine> ||
                          leaves_out<Combine>("combine_all"),
                      HEED_HOOK_combine_all(HEED_CANNOT_CALL));
    } else if constexpr (!wraps_another<Score>) {  // such a one needs its base's
        HEED_MAY_LACK(Score, match_all);
    }
    return true;
}

/// Some of all queries: `count` from `first` on.
struct part_of_queries {
    std::size_t first, count, all;
};

/// A mask as a view; those without memory as they are.
inline lengths_view shown(const lengths& mask) { return mask; }
template <std::size_t N>
boolean_mask_view<N> shown(const boolean_mask<N>& mask)
{
    return mask;
}
const auto& shown(const auto& mask) { return mask; }

/// The number of positions that each of these queries may see: its sentence's, or fewer if the mask shortens it.
template <class Mask>
lengths_view lengths_of_rows(const Mask& mask, const part_of_queries& part, const lengths_view& real,
                             [[maybe_unused]] std::size_t positions)
{
    auto* const rows = transient_family::take<std::size_t>(real.batch() * part.count);
    for (std::size_t s = 0; s < part.count; ++s) {
        const scratch here;
        const auto of_step = [&]() -> lengths_view {
            if constexpr (std::is_same_v<Mask, lengths_view>) {
                return shortened(mask, real, positions);
            } else if constexpr (std::is_same_v<Mask, causal>) {
                return mask_of_step(mask, part.first + s, part.all, real);
            } else {
                return real;
            }
        }();
        for (std::size_t b = 0; b < real.batch(); ++b) rows[b * part.count + s] = of_step[b];
    }
    return {rows, real.batch() * part.count};
}

/// A mask with a row for each of these queries of each sentence, [B·S,T]. Those of lengths are in lengths_of_rows.
template <class Mask>
no_mask mask_of_queries(const Mask&, const part_of_queries&, std::size_t, std::size_t)
{
    return {};
}
template <std::size_t N>
boolean_mask_view<2> mask_of_queries(const boolean_mask_view<N>& mask, const part_of_queries& part, std::size_t B,
                                     std::size_t T)
{
    if constexpr (N == 3) {
        mask.require("attention of many queries", {B, part.count, T});
        return {mask.data(), {B * part.count, T}};
    } else {
        mask.require("attention of many queries", {B, T});
        auto* const rows = transient_family::take<std::uint8_t>(B * part.count * T);
        for (std::size_t row = 0; row < B * part.count; ++row)
            std::copy_n(mask.data() + row / part.count * T, T, rows + row * T);
        return {rows, {B * part.count, T}};
    }
}

/// Weights [B·S,T] by the scores of projected queries [B,S,A]. Masks are views, one of rank 3 for these queries only.
/// The caller opens a scratch.
auto weights_by_scores(const auto& normalize, const auto& scores, const auto& source, const lengths_view& real,
                       const auto& projected, std::size_t head, const auto& mask, const part_of_queries& part)
{
    const std::size_t T = shape_of(scores)[1], B = real.batch();
    using family = family_of<decltype(scores)>;
    const auto masks = masks_of<family, element_of<decltype(scores)>, false>(
        mask_of_queries(source, part, B, T), mask_of_queries(mask, part, B, T), unchanged{});
    const moment<std::remove_cvref_t<decltype(projected)>, std::remove_const_t<decltype(masks)>> at{
        lengths_of_rows(mask, part, real, T), 0, projected, masks, head};
    return weigh(normalize, scores, no_state{}, at);
}

/// The same by a score; the first query is from.first.
auto weights_of_part(const auto& score, const auto& normalize, const auto& keys, const auto& source,
                     const lengths_view& real, const auto& projected, const heed::score::over::queries_from& from,
                     const auto& mask, const part_of_queries& part)
{
    return weights_by_scores(normalize, heed::score::over::match_all(score, projected, keys, from), source, real,
                             projected, from.head, mask, part);
}

/// The same of all queries.
template <class Memory, class Mask>
auto weights_at_once(const auto& score, const auto& normalize, const Memory& memory, const auto& projected,
                     const heed::score::over::queries_from& from, const Mask& mask)
{
    const std::size_t S = shape_of(projected)[1];
    return weights_of_part(score, normalize, memory.keys, shown(memory.mask), memory.real, projected, from, shown(mask),
                           {0, S, S});
}

/// Their contexts [B,S,D].
template <class Memory, class Mask>
auto answers_at_once(const auto& score, const auto& normalize, const auto& combine, const Memory& memory,
                     const auto& projected, const heed::score::over::queries_from& from, const Mask& mask)
{
    const scratch here;
    return detail::combined_all(combine, weights_at_once(score, normalize, memory, projected, from, mask),
                                memory.values, from);
}

}  // namespace heed::detail
