// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/masks.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/plan.hpp>
#include <heed/core/family.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/weighted_sum.hpp>
#include <heed/masks/of_queries.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_context.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/policy/weigh.hpp>

/// Many queries at once, for mechanisms without state: all scores of a sentence are one matrix product, and all its
/// contexts another.
///
///     A = normalize(Q Kᵀ),  C = A V           Vaswani et al. 2017, eq. 1
///
/// Requires a score with `score_matrix` ([B,S,A], [B,T,A] -> [B·S,T]), a combiner with `combine_matrix` ([B·S,T],
/// [B,T,D] -> [B,S,D]; it may also take the first query's number, a queries_from), and a normalizer with the trait
/// `.rowwise = true`: it reads only the scores of a row, so that each query of each sentence can be a row.
///
/// Runs block by block: the scores of a block are released before the next one. On the tape a block is one entry,
/// recomputed in the backward pass (by_rows.hpp).
namespace heed::inline HEED_TARGET::detail {

/// Weights [B·S,T] from the scores of projected queries [B,S,A]. Masks are views; a mask of rank 3 covers these queries
/// only. The caller opens a scratch.
auto weights_by_scores(const auto& normalize, const auto& scores, const auto& source, const lengths_view& real,
                       const auto& projected, std::size_t head, const auto& mask, const part_of_queries& part)
{
    const std::size_t T = shape_of(scores)[1], B = real.batch();
    using family = family_of<decltype(scores)>;
    const auto masks = masks_of<family, element_of<decltype(scores)>, false>(
        mask_of_queries(source, part, B, T), mask_of_queries(mask, part, B, T), unchanged{});
    return weigh(normalize, scores, no_state{},
                 step_context{lengths_of_rows(mask, part, real, T), 0, projected, masks, head});
}

/// Limits for stored scores. Up to `on_tape` scores, the tape keeps all, since recomputing them takes time; 4 M floats
/// are 16 MB. A block has about `of_block` scores per sentence, but at least 32 queries.
struct kept_scores {
    std::size_t of_block = std::size_t{1} << 16, on_tape = std::size_t{1} << 22;

    std::size_t queries(std::size_t positions) const
    {
        return std::max<std::size_t>(32, of_block / std::max<std::size_t>(1, positions));
    }
};

/// A block of queries with elements of type T, the input of a program by rows. Masks are views.
template <class T, class Score, class Normalize, class Combine, class Queries, class Keys, class Values, class Source,
          class Mask>
struct input_of_block {
    using element = T;
    static constexpr bool shared = false;

    std::type_identity<T> numbers;
    part_of_queries part;
    heed::score::over::queries_from from;  // of the block, with the lengths of these sentences
    Score score;
    Normalize normalize;
    Combine combine;
    Queries queries;  // [B,n,A] projected
    Keys keys;        // [B,T,A], or a std::vector with one for each head
    Values values;    // [B,T,D], likewise
    Source source;    // the mask of the memory
    Mask mask;

    auto map(const auto& row, const auto& whole) const
    {
        auto now = from;
        now.real = row.part(from.real);
        return detail::input_of_block{numbers,
                                      part,
                                      now,
                                      map_parameters(score, whole),
                                      map_parameters(normalize, whole),
                                      map_parameters(combine, whole),
                                      row(queries),
                                      row_of_each(row, keys),
                                      row_of_each(row, values),
                                      rows_of_mask(row, source),
                                      rows_of_mask(row, mask)};
    }
    void visit(const auto& row, const auto& whole) const { (void)map(row, whole); }

private:
    static auto row_of_each(const auto& row, const tensor auto& x) { return row(x); }
    static auto row_of_each(const auto& row, const auto& several) { return detail::collect(several, row); }
    template <class M>
    static M rows_of_mask(const auto& row, const M& mask)
    {
        return M(row.part(mask));
    }
    template <class M>
        requires(std::is_empty_v<M>)
    static M rows_of_mask(const auto&, const M& mask) { return mask; }
};

template <class T, class... X>  // X: references to lvalues
input_of_block(std::type_identity<T>, part_of_queries, heed::score::over::queries_from, X&&...)
    ->input_of_block<T, X...>;

/// All queries [B,S,A] of a memory as a block.
auto block_of_all(const auto& score, const auto& normalize, const auto& combine, const auto& memory,
                  const auto& projected, const heed::score::over::queries_from& from, auto&& source, auto&& mask)
{
    const std::size_t S = shape_of(projected)[1];
    return detail::input_of_block{std::type_identity<element_of<decltype(projected)>>{},
                                  part_of_queries{0, S, S},
                                  heed::score::over::queries_from{from.first, from.head, memory.real},
                                  score,
                                  normalize,
                                  combine,
                                  projected,
                                  memory.keys,
                                  memory.values,
                                  std::forward<decltype(source)>(source),
                                  std::forward<decltype(mask)>(mask)};
}

/// The weights [B·n,T] of a block.
auto weights_of_block(const auto& in)
{
    const auto scores = heed::score::over::score_matrix(in.score, in.queries, in.keys, in.from);  // [B·n,T]
    return weights_by_scores(in.normalize, scores, in.source, in.from.real, in.queries, in.from.head,
                             detail::drawn_of_part(in.mask, in.from.real, in.part, in.from.head), in.part);
}

/// The contexts [B,n,D] of a block, a program by rows.
struct contexts_of_block {
    auto operator()(const auto& in) const
    {
        using result = one_result<decltype(all(in))>;
        // A run on zero rows determines the shape, which operations cannot infer without a sentence. It must not list
        // operations for keeping their results, since a row of [n,T] is only a part of a sentence.
        if (in.from.real.batch() == 0) {
            const shape_of_rank<3> none{0, in.part.count, shape_of(in.values)[2]};
            return result{constant_like(in.values, none, 0)};
        }
        return result{all(in)};
    }

    /// The contexts of all sentences at once.
    static auto all(const auto& in) { return combined_matrix(in.combine, weights_of_block(in), in.values, in.from); }
};

}  // namespace heed::inline HEED_TARGET::detail

namespace heed::inline HEED_TARGET::detail::execute {

/// Contexts [B,S,D] of projected queries [B,S,A], starting at number from.first.
template <class Memory, class Mask>
auto blocked(const auto& score, const auto& normalize, const auto& combine, const Memory& memory, const auto& projected,
             const heed::score::over::queries_from& from, const Mask& mask, const kept_scores& keep = {})
{
    const std::size_t S = shape_of(projected)[1], T = memory.positions(), B = memory.batch();
    const auto at_once = [&] {
        const scratch here;
        return contexts_of_block::all(
            block_of_all(score, normalize, combine, memory, projected, from, shown(memory.mask), shown(mask)));
    };
    using contexts = decltype(at_once());
    using family = family_of<contexts>;
    const std::size_t most = keep.queries(T);
    constexpr bool taped = !std::is_same_v<family, plain_family>;
    if (S <= most || B == 0 || (taped && B * S * T < keep.on_tape) ||
        !known_to_kernels_as<std::remove_cvref_t<decltype(combine)>, kernels::weighted_sum_of_row>)
        return at_once();
    const auto block_by_block = [&](const auto& all, const auto& answer) {
        std::vector<contexts> blocks;
        for (std::size_t first = 0; first < S; first += most) {
            const scratch here;
            const part_of_queries part{first, std::min(most, S - first), S};
            const heed::score::over::queries_from now{from.first + first, from.head, memory.real};
            blocks.push_back(answer(detail::input_of_block{
                std::type_identity<element_of<contexts>>{}, part, now, all.score, all.normalize, all.combine,
                ops::slice(all.queries, 1, first, first + part.count),  // [B,n,A]
                all.keys, all.values, shown(memory.mask), mask_of_part(shown(mask), part, B, T)}));
        }
        return ops::append_all(blocks);
    };
    const auto all = block_of_all(score, normalize, combine, memory, projected, from, no_mask{}, no_mask{});
    if constexpr (!taped) {
        return block_by_block(all, [](const auto& in) { return contexts_of_block::all(in); });
    } else {
        // Puts all tensors on the tape, once.
        const auto bring =
            variables_beside<element_of<contexts>>(family{}, [&](const auto& look) { all.visit(look, look); });
        return block_by_block(all.map(bring, bring), [&](const auto& in) {
            return by_rows(family{}, contexts_of_block{}, in, B, 8 * in.part.count * T * memory.width()).x;
        });
    }
}

}  // namespace heed::inline HEED_TARGET::detail::execute
