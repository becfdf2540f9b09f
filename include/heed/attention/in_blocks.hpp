// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/at_once.hpp>
#include <heed/attention/drawn.hpp>
#include <heed/attention/masks.hpp>
#include <heed/attention/weigh.hpp>
#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/windows.hpp>

/// Many queries at once, block by block: the scores and weights of a block are forgotten before the next one. On the
/// tape a block is one entry, computed again in the backward pass (rows.hpp). So normalizers and masks that tiles do
/// not know need no memory for all scores, either.
namespace heed::detail {

/// How many scores are kept. Up to `on_tape` of them the tape keeps all, since computing them again takes time; 4 M
/// floats are 16 MB. A block has so many queries that the scores of a sentence are about `of_block`, and at least 32.
struct kept_scores {
    std::size_t of_block = std::size_t{1} << 16, on_tape = std::size_t{1} << 22;

    std::size_t queries(std::size_t positions) const
    {
        return std::max<std::size_t>(32, of_block / std::max<std::size_t>(1, positions));
    }
};

template <class... X>
struct input_of_block;

/// Makes one.
template <class... X>
input_of_block<X...> block_of(lengths_view real, const part_of_queries& part,
                              const heed::score::over::queries_from& from, X... x)
{
    return {std::move(x)..., real, part, from};
}

/// A block's input. Masks are views.
template <class Score, class Normalize, class Combine, class Queries, class Keys, class Values, class Source,
          class Mask>
struct input_of_block<Score, Normalize, Combine, Queries, Keys, Values, Source, Mask> {
    using element = element_of<Keys>;
    static constexpr bool shared = false;

    Score score;
    Normalize normalize;
    Combine combine;
    Queries queries;  // [B,n,A] projected
    Keys keys;        // [B,T,A]
    Values values;    // [B,T,D]
    Source source;    // which positions the memory has
    Mask mask;
    lengths_view real;
    part_of_queries part;
    heed::score::over::queries_from from;

    auto map(const auto& row, const auto& whole) const
    {
        auto s = map_parameters(score, whole);  // one after the other: parameters are told apart by their order
        auto n = map_parameters(normalize, whole);
        auto c = map_parameters(combine, whole);
        return detail::block_of(row.part(real), part, from, std::move(s), std::move(n), std::move(c), row(queries),
                                row(keys), row(values), rows_of_mask(row, source), rows_of_mask(row, mask));
    }
    void visit(const auto& row, const auto& whole) const
    {
        (void)map_parameters(score, whole);
        (void)map_parameters(normalize, whole);
        (void)map_parameters(combine, whole);
        (void)row(queries);
        (void)row(keys);
        (void)row(values);
    }

private:
    template <class M>
    static auto rows_of_mask(const auto& row, const M& mask)
    {
        if constexpr (std::is_empty_v<M>) {
            return mask;
        } else {
            return M(row.part(mask));
        }
    }
};

/// A mask of places for some queries is drawn where they are computed, forth and back; others are as they are.
const auto& drawn_of_part(const auto& mask, const lengths_view&, const part_of_queries&) { return mask; }
template <class Mask>
boolean_mask_view<3> drawn_of_part(const places_of_queries<Mask>& mask, const lengths_view& real,
                                   const part_of_queries& part)
{
    return detail::drawn(mask, real, part.first, part.count);
}

/// The contexts of a block, [B,n,D].
struct contexts_of_block {
    auto operator()(const auto& in) const
    {
        const auto compute = [](const auto& of) {
            auto from = of.from;
            from.sentence = of.real.first_row();
            from.real = of.real;
            return detail::combined_all(of.combine,
                                        weights_of_part(of.score, of.normalize, of.keys, of.source, of.real, of.queries,
                                                        from, detail::drawn_of_part(of.mask, of.real, of.part),
                                                        of.part),
                                        of.values, from);
        };
        using result = one_result<decltype(compute(in))>;
        // The run on no row asks for the shape, which without a sentence no operation tells; nor may it list operations
        // whose results are worth keeping, since a row of [n,T] is not all that there is of a sentence.
        if (in.real.batch() == 0) {
            const shape_of_rank<3> none{0, in.part.count, shape_of(in.values)[2]};
            return result{constant_like(in.values, none, 0)};
        }
        return result{compute(in)};
    }
};

/// The rows of a mask for some queries.
const auto& mask_of_part(const auto& mask, const part_of_queries&) { return mask; }
inline boolean_mask_view<3> mask_of_part(const boolean_mask_view<3>& mask, const part_of_queries& part)
{
    const auto [B, S, T] = mask.shape();
    mask.require("attention of many queries", {B, part.all, T});
    auto* const rows = transient_family::take<std::uint8_t>(B * part.count * T);
    for (std::size_t b = 0; b < B; ++b)
        std::copy_n(mask.data() + (b * S + part.first) * T, part.count * T, rows + b * part.count * T);
    return {rows, {B, part.count, T}};
}

/// Contexts [B,S,D] of projected queries [B,S,A], the first of which is from.first.
template <class Memory, class Mask>
auto answers_in_blocks(const auto& score, const auto& normalize, const auto& combine, const Memory& memory,
                       const auto& projected, const heed::score::over::queries_from& from, const Mask& mask,
                       const kept_scores& keep = {})
{
    const auto answers = [&] {
        const scratch here;
        const part_of_queries all{0, shape_of(projected)[1], shape_of(projected)[1]};
        return answers_at_once(score, normalize, combine, memory, projected, from,
                               detail::drawn_of_part(mask, memory.real, all));
    };
    using contexts = decltype(answers());
    using family = family_of<contexts>;
    const std::size_t S = shape_of(projected)[1], T = memory.positions(), B = memory.batch();
    const std::size_t most = keep.queries(T);
    constexpr bool taped = !std::is_same_v<family, plain_family>;
    if (S <= most || B == 0 || (taped && B * S * T < keep.on_tape) ||
        !known_to_kernels_as<std::remove_cvref_t<decltype(combine)>, kernels::weighted_sum_of_row>)
        return answers();
    std::vector<contexts> blocks;
    const auto each = [&](const auto& answer) {
        for (std::size_t first = 0; first < S; first += most) {
            const scratch here;
            const part_of_queries part{first, std::min(most, S - first), S};
            auto* const begin = transient_family::take<std::size_t>(2 * B);
            std::fill_n(begin, B, first);
            std::fill_n(begin + B, B, part.count);
            auto now = from;
            now.first += first;
            blocks.push_back(answer(window_view{begin, {begin + B, B}, part.count}, part, now));
        }
    };
    if constexpr (!taped) {
        each([&](const window_view& where, const part_of_queries& part, const auto& now) {
            return detail::combined_all(
                combine,
                weights_of_part(score, normalize, memory.keys, shown(memory.mask), memory.real,
                                ops::window_of(projected, where), now,
                                detail::drawn_of_part(mask_of_part(shown(mask), part), memory.real, part), part),
                memory.values, now);
        });
    } else {
        // Everything goes onto the tape, once.
        const auto bring = variables_beside<element_of<contexts>>(family{}, [&](const auto& look) {
            (void)map_parameters(score, look);
            (void)map_parameters(normalize, look);
            (void)map_parameters(combine, look);
            (void)look(projected);
            (void)look(memory.keys);
            (void)look(memory.values);
        });
        const auto s = map_parameters(score, bring);
        const auto n = map_parameters(normalize, bring);
        const auto c = map_parameters(combine, bring);
        const auto queries = bring(projected), keys = bring(memory.keys), values = bring(memory.values);
        each([&](const window_view& where, const part_of_queries& part, const auto& now) {
            return by_rows(family{}, contexts_of_block{},
                           detail::block_of(memory.real, part, now, s, n, c, ops::window_of(queries, where), keys,
                                            values, shown(memory.mask), mask_of_part(shown(mask), part)),
                           B, 8 * part.count * T * memory.width())
                .x;
        });
    }
    return ops::append_all(blocks);
}

}  // namespace heed::detail
