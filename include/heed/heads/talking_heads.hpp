// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/execute/many_queries.hpp>
#include <heed/core/errors.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/masks/given.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/mix_heads.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/simd/score_index.hpp>

/// Heads that exchange scores and weights.
namespace heed::inline HEED_TARGET {

namespace detail {

/// The heads and the mixing matrices of talking_heads, as one module.
template <class Heads, class Mixing>
struct talking_policies {
    Heads heads;        // attentions
    Mixing of_scores;   // P_l [n,n]
    Mixing of_weights;  // P_w [n,n]

    static auto parameters(auto& self, auto&& visit)
    {
        return detail::talking_policies{visit("heads", self.heads), visit("P_l", self.of_scores),
                                        visit("P_w", self.of_weights)};
    }
};
template <class Heads, class Mixing>
talking_policies(Heads, Mixing, Mixing) -> talking_policies<Heads, Mixing>;

/// The contexts [B,s,n·V] of a block of queries, an input_of_block, and the mixed weights [B,n,s·T] if requested.
template <bool with_weights>
struct talk {
    auto operator()(const auto& in) const
    {
        const auto& heads = in.score.heads;
        const std::size_t n = heads.size(), B = shape_of(in.queries)[0], S = in.part.count, positions = reach(in);
        const auto queries = ops::split_heads(in.queries, n);
        const auto scores = each_of(heads, [&](std::size_t h) {
            return heed::score::over::score_matrix(heads[h].score, queries[h], cut(in.keys[h], positions),
                                                   {in.from.first, h, in.from.real});
        });
        const auto mixed = ops::mix_heads(ops::stack(scores), in.score.of_scores);  // [n,B·s,T]
        const auto weighed = each_of(heads, [&](std::size_t g) {
            return weights_by_scores(heads[g].normalize, ops::block(mixed, g), cut(in.source, positions), in.from.real,
                                     in.queries, g, detail::drawn_of_part(in.mask, in.from.real, in.part, g), in.part);
        });
        const auto weights = ops::mix_heads(ops::stack(weighed), in.score.of_weights);
        auto all = ops::concat_heads(each_of(
            heads, [&](std::size_t h) { return ops::bmm(ops::block(weights, h), cut(in.values[h], positions)); }));
        // Tensors without rows do not tell the number of queries.
        if (B == 0) all = constant_like(all, shape_of_rank<3>{0, S, shape_of(all)[2]}, 0.0);
        auto kept = constant_like(all, shape_of_rank<3>{B, 0, 0}, 0.0);
        if (with_weights)  // [B,n,s·T]
            kept = ops::swap_axes(ops::reshaped(weights, shape_of_rank<3>{n, B, S * positions}));
        return outcome{std::move(all), std::move(kept), no_state{}};
    }

private:
    /// The number of positions visible to the last query of a block of one sentence, at least one; further keys and
    /// values are not needed. A score that carries sums reads the query's own position.
    static std::size_t reach(const auto& in)
    {
        constexpr bool cuts = std::is_same_v<std::remove_cvref_t<decltype(in.mask)>, causal> && !with_weights &&
                              !score_traits_of<std::remove_cvref_t<decltype(in.score.heads[0].score)>>().extends_keys;
        const std::size_t positions = shape_of(in.keys[0])[1], end = in.part.first + in.part.count;
        if (!cuts || in.from.real.batch() != 1) return positions;
        return std::min(positions, std::max(in.from.real[0] + end, in.part.all + 1) - in.part.all);
    }

    /// The first positions of keys or values, and of a mask.
    template <tensor X>
    static X cut(const X& x, std::size_t positions)
    {
        return positions < shape_of(x)[1] ? ops::positions_between(x, 0, positions) : x;
    }
    static boolean_mask_view<2> cut(const boolean_mask_view<2>& mask, std::size_t positions)
    {
        return {mask.data(), {mask.shape()[0], positions}};  // of one sentence, if `positions` is smaller
    }
    static no_mask cut(const no_mask& mask, std::size_t) { return mask; }
};

/// The contexts [B,count,n·V] of a part of the projected queries [B,S,n·K], and the weights if requested.
template <bool with_weights, class Mask>
auto talked(const auto& source, const auto& projected, const auto& memory, std::size_t step, const Mask& mask,
            const part_of_queries& part)
{
    const auto& [policies, keys, values] = source;
    const auto& any = detail::first_of(memory.of);
    const std::size_t B = memory.batch(), positions = memory.positions();
    const lengths_view real = visible_lengths(mask, any.real, positions);
    static_assert(std::is_convertible_v<const Mask&, lengths_view> || any_predicate_mask<Mask> || mask_of_rows<Mask>,
                  "heed: talking_heads takes causal{}, lengths, boolean masks and predicate masks");
    const auto& sees = asked_of_queries(mask, memory, part.all, attention_state<no_state>{{}, step});
    using family = family_of<decltype(policies.of_scores)>;
    auto seen = by_rows(family{}, talk<with_weights>{},
                        detail::input_of_block{std::type_identity<element_of<decltype(policies.of_scores)>>{}, part,
                                               heed::score::over::queries_from{step + part.first, 0, real}, policies,
                                               no_biases{}, no_biases{},
                                               ops::slice(projected, 1, part.first, part.first + part.count), keys,
                                               values, mask_of_part(shown(any.mask), part, B, positions),
                                               mask_of_part(shown(sees), part, B, positions)},
                        B, keys.size() * part.count * positions * 16);
    if constexpr (family::rank == family_rank::taped) {
        return seen;
    } else {
        return seen.map(owned{});
    }
}

}  // namespace detail

/// Talking heads: the scores of all heads are mixed before softmax, and their weights after it.
///
///     J_h = Q_h K_hᵀ,  L_g = Σ_h P_l[h,g] J_h,  W_g = softmax(L_g),  U_v = Σ_g P_w[g,v] W_g,  O_v = U_v V_v
///                                             Shazeer, Lan, Cheng, Ding and Hou 2020, section 4
///
///     talking_heads attend{multi_head{heads, W_Q, W_K, W_V, W_O}, P_l, P_w};
///
/// P_l and P_w are [n,n]; identity matrices leave the multi_head unchanged. Deviation: the numbers of heads of scores,
/// of weights and of values are equal; in the paper they may differ. The heads are a std::vector of one type, with a
/// stateless score that compares all queries at once, a normalizer that reads one row (`rowwise`), and a weighted sum.
/// Masks apply after the scores are mixed: a mask's `score_index::head` is a head of softmax, and that of
/// score::modified a head of scores. Additive masks are not supported.
///
/// Many queries are computed in blocks. Only the scores of one block and sentence, for all heads, are stored at a time:
/// about 2^18 numbers. The backward pass recomputes them. `step` returns the mixed weights U, [B,n,T], which may be
/// negative and need not sum to 1. Throws shape_error unless P_l and P_w are [n,n].
template <class Base, class Matrix>
struct talking_heads : mechanism<talking_heads<Base, Matrix>> {
    Base base;   // a multi_head
    Matrix P_l;  // [n,n], from heads of scores to heads of softmax
    Matrix P_w;  // [n,n], from heads of softmax to heads of values

    talking_heads() = default;
    talking_heads(Base heads, Matrix of_scores, Matrix of_weights)
        : base(std::move(heads)), P_l(std::move(of_scores)), P_w(std::move(of_weights))
    {}

    /// The memory of the multi_head.
    auto memory_of(const auto&... source) const { return base.memory_of(source...); }

    /// The memory of `extend`.
    auto extended(const auto& memory, const auto&... source) const { return base.extended(memory, source...); }

    /// The state before the first step of a batch.
    auto start(const auto& memory) const { return base.start(memory); }

    /// One query [B,Q]: its context [B,O], the mixed weights of each head [B,n,T], and the next state.
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& state = detail::states_of_several(*this, memory, given_state);
        const auto& query = detail::query_beside<2>(P_l, given);
        const scratch here;
        const auto projected = ops::reshaped(projected_by("the query", query), shape_of(query)[0], 1,
                                             shape_of(base.W_Q)[1]);  // [B,1,n·K]
        auto seen = block<2, true>(source_of(memory, projected), memory, projected, state, mask, 0, 1);
        auto context = base.from_heads(ops::step_of(seen.context, 0), query);
        return step_result{std::move(context), std::move(seen.weights), from_query(state, state.step + 1)};
    }

    /// Many queries: queries [B,S,Q] -> contexts [B,S,O], and the state after the last one. `mask`: as for attention,
    /// except that it cannot be additive.
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& given, const auto& given_state, const Mask& mask = {}) const
    {
        const auto& state = detail::states_of_several(*this, memory, given_state);
        const auto& queries = detail::query_beside<3>(P_l, given);
        const auto projected = projected_by("the queries", queries);
        const std::size_t S = shape_of(queries)[1], n = detail::count_of(base.heads);
        const std::size_t rows = std::max<std::size_t>(1, numbers_of_a_block / (n * memory.positions() + 1));
        const auto source = source_of(memory, projected);
        const auto some = [&](std::size_t first) {
            const scratch here;
            return block<3, false>(source, memory, projected, state, mask, first, std::min(rows, S - first)).context;
        };
        std::vector<decltype(some(0))> blocks;  // [B,s,n·V]
        for (std::size_t s = 0; s == 0 || s < S; s += rows) blocks.push_back(some(s));
        return sequence_result{base.from_heads(ops::append_all(blocks), queries), from_query(state, state.step + S)};
    }

    /// The mixed weights U of many queries, for each head: [B,n,S,T].
    template <class Mask>
    auto all_weights(const auto& memory, const auto& given, const auto& given_state, const Mask& mask) const
    {
        const auto& state = detail::states_of_several(*this, memory, given_state);
        const auto& queries = detail::query_beside<3>(P_l, given);
        const scratch here;
        const auto projected = projected_by("the queries", queries);
        const std::size_t S = shape_of(queries)[1];
        const auto seen = block<3, true>(source_of(memory, projected), memory, projected, state, mask, 0, S);
        return ops::reshaped(seen.weights, memory.batch(), detail::count_of(base.heads), S, memory.positions());
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return heed::talking_heads{visit("base", self.base), visit("P_l", self.P_l), visit("P_w", self.P_w)};
    }

private:
    static constexpr std::size_t numbers_of_a_block = std::size_t{1} << 18;

    /// `talked` for `count` of the projected queries [B,S,n·K], starting at number `first`.
    template <std::size_t R, bool with_weights>
    auto block(const auto& source, const auto& memory, const auto& projected, const auto& state, const auto& mask,
               std::size_t first, std::size_t count) const
    {
        const std::size_t S = shape_of(projected)[1];
        const auto& valid = detail::mask_given(mask);
        const auto& sees =
            detail::mask_of_heads<R>(valid, detail::first_of(memory.of), S, state.step, base.heads.size());
        return detail::talked<with_weights>(source, projected, memory, state.step, sees, {first, count, S});
    }

    auto projected_by(const char* name, const auto& queries) const  // [...,n·K]
    {
        return detail::projection(base, name, queries, base.W_Q, base.bias.query());
    }

    /// The policies, keys and values that all blocks share. If any is taped, all are variables; otherwise none is
    /// copied.
    auto source_of(const auto& memory, const auto& projected) const
    {
        using head = std::remove_cvref_t<decltype(base.heads[0])>;
        using keys = std::remove_cvref_t<decltype(memory.of[0].keys)>;
        using values = std::remove_cvref_t<decltype(memory.of[0].values)>;
        static_assert(
            rowwise<decltype(head::normalize)>,
            "heed: talking_heads: the heads' normalizer must be rowwise: it must read one row of scores only");
        static_assert(
            heed::score::over::scores_a_matrix<decltype(head::score), std::remove_cvref_t<decltype(projected)>, keys>,
            "heed: talking_heads: the heads' score must compare all queries at once: it needs `score_matrix`");
        static_assert(known_to_kernels_as<decltype(head::combine), kernels::weighted_sum_of_row>,
                      "heed: talking_heads: the heads' combiner must be combine::weighted_sum");
        constexpr bool taped = detail::taped_policy<head> || !plain_tensor<Matrix> ||
                               !plain_tensor<decltype(projected)> || !plain_tensor<keys> || !plain_tensor<values>;
        const shape_of_rank<2> square{base.heads.size(), base.heads.size()};
        require_shape("talking_heads", "P_l", shape_of(P_l), square, "one row and one column for each head");
        require_shape("talking_heads", "P_w", shape_of(P_w), square, "one row and one column for each head");
        const auto source = [&](const auto& bring) {
            const auto each = [&](const auto& get) { return detail::each_of(base.heads, get); };
            auto policies = detail::talking_policies{
                each([&](std::size_t h) { return map_parameters(base.heads[h], bring); }), bring(P_l), bring(P_w)};
            auto k = each([&](std::size_t h) { return bring(base.memory_of_head(memory, h).keys); });
            auto v = each([&](std::size_t h) { return bring(base.memory_of_head(memory, h).values); });
            return std::tuple{std::move(policies), std::move(k), std::move(v)};
        };
        if constexpr (taped) {
            using family = typename detail::recording<std::bool_constant<taped>>::family;
            return source(variables_beside<element_of<Matrix>>(family{}, [&](const auto& look) {
                (void)source(look);
                (void)look(projected);
            }));
        } else {
            return source(detail::as_workspace_tensor{});
        }
    }
};

template <class Base, class Matrix, class Matrix2>
talking_heads(Base, Matrix, Matrix2) -> talking_heads<Base, joint_tensor<Matrix, Matrix2>>;

}  // namespace heed::inline HEED_TARGET
