// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/core/compiled.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/parallel.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/tiles/backward.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/tiles/entmax_rule.hpp>
#include <heed/kernels/tiles/forward.hpp>
#include <heed/kernels/tiles/normalizer_rules.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/ops/operation.hpp>
#include <heed/simd/lookup_table.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace tiles = kernels::tiles;

/// How the queries of attend_tiled are split into heads, and which keys and values they share.
struct heads_of {
    std::size_t heads = 1;        // of the queries
    std::size_t groups = 1;       // of keys and values: head h reads group h · groups / heads
    double scale = 1;             // of the scores
    std::size_t first_query = 0;  // the index of the first query
    std::size_t first_head = 0;   // the index of the first head
    std::size_t sharing = 1;      // the number of consecutive rows of queries that share one row of keys and values
};

namespace detail {

using heed::detail::lane_memo;

/// Per-thread gradient buffers of a parameter; null if not required.
template <class T>
using shard_place = heed::detail::function_ref<T*, std::size_t>;

/// Every n-th tile, for one of several threads: one type for all ways to share, so that less is compiled.
struct every_so_many {
    std::size_t shards, shard;

    bool operator()(std::size_t tile) const { return tile % shards == shard; }
};

/// The rows of one head of one sentence, with index nth = sentence · heads + head, in [B,S,heads·width].
auto part_of_head(const auto& x, std::size_t heads, std::size_t nth)
{
    using element = std::remove_reference_t<decltype(*x.data)>;
    if (x.data == nullptr) return tiles::rows<element>{nullptr, 0};
    const std::size_t width = x.shape[2] / heads, rows = x.shape[1];
    return tiles::rows<element>{x.data + nth / heads * rows * x.shape[2] + nth % heads * width, x.shape[2]};
}
/// The rows of the group that a head reads.
auto part_of_group(const auto& x, const heads_of& how, std::size_t nth)
{
    const std::size_t group = nth % how.heads * how.groups / how.heads;
    return part_of_head(x, how.groups, nth / how.heads / how.sharing * how.groups + group);
}
/// One head of one sentence, with index nth, as the kernels read it.
template <class Compare, class T>
tiles::head<T> head_of(const in<T, 3>& queries, const in<T, 3>& keys, const in<T, 3>& values, const in<T, 1>& factors,
                       const lengths_view& real, const heads_of& how, std::size_t nth)
{
    tiles::head<T> of{part_of_head(queries, how.heads, nth),
                      part_of_group(keys, how, nth),
                      part_of_group(values, how, nth),
                      keys.shape[2] / how.groups,
                      values.shape[2] / how.groups,
                      queries.shape[1],
                      real[nth / how.heads],
                      static_cast<T>(how.scale),
                      real.sentence_of(nth / how.heads),
                      how.first_head + real.head_of(nth / how.heads) + nth % how.heads,
                      how.first_query};
    if constexpr (Compare::has_factors) {
        of.factor_count = factors.size() / how.heads;
        of.factors = factors.data + nth % how.heads * of.factor_count;
    }
    return of;
}

/// The kernels, for all heads of all sentences, independent of the function and the mask.
template <class Rule, class Compare>
struct attend_heads {
    const Rule& rule;

    /// `factors`: the comparison's factors of each head, consecutive; `of_heads`: the rule's number of each head
    /// (softmax: its sink), or null.
    template <class T>
    void forward(const tiles::score_mod<T>& mod, in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 1> factors,
                 const T* of_heads, const lengths_view& real, const heads_of& how, out<T, 3> contexts, T* numbers) const
    {
        const std::size_t S = queries.shape[1];
        // A rule with two passes is fastest if all scores of a block are kept: with many keys, use a narrow block.
        const bool narrow = Rule::two_passes && !tiles::keeps_scores<T, tiles::most_registers_of<T>>(keys.shape[1]);
        tiles::with_registers<T>(narrow ? 1 : S, [&](auto registers) {
            constexpr std::size_t lanes = tiles::lanes<T, registers>;
            const std::size_t blocks = (S + lanes - 1) / lanes, all = queries.shape[0] * how.heads * blocks;
            parallel_for(all, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                const simd::without_subnormals quick;
                scratch here;
                lane_memo memo(here.take<float>(lane_memo::room_for(S, keys.shape[1])), S, keys.shape[1]);
                for (std::size_t i = begin, after = begin; i < end; i = after) {
                    const std::size_t nth = i / blocks, s = i % blocks * lanes;
                    tiles::head<T> of = head_of<Compare>(queries, keys, values, factors, real, how, nth);
                    // One block at a time, so that a table with an entry for each query and key is read in order.
                    const std::size_t several = mod.learns ? 1 : tiles::blocks_at_once<registers, Compare, Rule>(of);
                    after = std::min({i + several, (nth + 1) * blocks, end});
                    const tiles::head<T> next =
                        head_of<Compare>(queries, keys, values, factors, real, how, std::min(after, end - 1) / blocks);
                    of.memo = &memo;
                    if (after < end) of.next = &next;
                    if (of_heads != nullptr) of.sink = of_heads[nth % how.heads];
                    tiles::forward<registers, Compare>(
                        tiles::query_block<T>{of, s, std::min((after - i) * lanes, S - s), mod},
                        rule_of_head(of_heads, nth % how.heads), part_of_head(contexts, how.heads, nth),
                        numbers + nth * S * Rule::numbers);
                }
            });
        });
    }

    /// `table_of_shard(i)`, `factors_of_shard(i)`, `of_heads_of_shard(i)`: the i-th thread's gradient buffers of the
    /// table, of the factors and of the rule's numbers [H], or null.
    template <class T>
    void backward(const tiles::score_mod<T>& mod, in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 1> factors,
                  const T* of_heads, const lengths_view& real, const heads_of& how, in<T, 3> contexts,
                  in<T, 3> d_contexts, const T* numbers, adjoint<T, 3> d_queries, adjoint<T, 3> d_keys,
                  adjoint<T, 3> d_values, const shard_place<T>& table_of_shard, const shard_place<T>& factors_of_shard,
                  const shard_place<T>& of_heads_of_shard) const
    {
        const std::size_t S = queries.shape[1], all_heads = queries.shape[0] * how.heads;
        const auto go_back = [&](auto registers, const tiles::head<T>& of, std::size_t nth, std::size_t b,
                                 std::size_t shard, const every_so_many& wants) {
            constexpr std::size_t lanes = tiles::lanes<T, registers>;
            const std::size_t s = b * lanes;
            T *const d_factors = factors_of_shard(shard), *const d_of_heads = of_heads_of_shard(shard);
            const std::size_t head = nth % how.heads;
            const tiles::head_gradients<T> to{part_of_head(d_queries, how.heads, nth),
                                              part_of_group(d_keys, how, nth),
                                              part_of_group(d_values, how, nth),
                                              table_of_shard(shard),
                                              d_factors == nullptr ? nullptr : d_factors + head * of.factor_count,
                                              d_of_heads == nullptr ? nullptr : d_of_heads + head};
            const tiles::forward_results<T> from{part_of_head(contexts, how.heads, nth),
                                                 numbers + nth * S * Rule::numbers,
                                                 part_of_head(d_contexts, how.heads, nth)};
            tiles::backward<registers, Compare>(tiles::query_block<T>{of, s, std::min(lanes, S - s), mod},
                                                rule_of_head(of_heads, head), from, to, wants);
        };
        tiles::with_registers<T>(S, [&](auto registers) {
            constexpr std::size_t lanes = tiles::lanes<T, registers>;
            const std::size_t blocks = (S + lanes - 1) / lanes, shards = threads();
            // Heads that share keys add to the same gradients: a thread takes a whole group.
            const std::size_t groups = keys.shape[0] * how.groups, in_group = how.sharing * how.heads / how.groups;
            if (groups >= 2 * shards || shards == 1 || Rule::sequential) {
                parallel_for(groups, 1, [&](std::size_t begin, std::size_t end, std::size_t shard) {
                    const simd::without_subnormals quick;
                    scratch here;
                    lane_memo memo(here.take<float>(lane_memo::room_for(S, keys.shape[1])), S, keys.shape[1]);
                    for (std::size_t nth = begin * in_group; nth < end * in_group; ++nth) {
                        tiles::head<T> of = head_of<Compare>(queries, keys, values, factors, real, how, nth);
                        of.memo = &memo;
                        for (std::size_t b = 0; b < blocks; ++b) go_back(registers, of, nth, b, shard, {1, 0});
                    }
                });
                return;
            }
            // Few groups: in each of threads() rounds, a thread has its own keys and its own queries.
            for (std::size_t nth = 0; nth < all_heads; ++nth) {
                for (std::size_t round = 0; round < shards; ++round) {
                    parallel_for(shards, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                        const simd::without_subnormals quick;
                        scratch here;
                        lane_memo memo(here.take<float>(lane_memo::room_for(S, keys.shape[1])), S, keys.shape[1]);
                        tiles::head<T> of = head_of<Compare>(queries, keys, values, factors, real, how, nth);
                        of.memo = &memo;
                        for (std::size_t shard = begin; shard < end; ++shard) {
                            for (std::size_t b = (shard + round) % shards; b < blocks; b += shards)
                                go_back(registers, of, nth, b, shard, {shards, shard});
                        }
                    });
                }
            }
        });
    }

private:
    /// The rule with the number of this head, if any.
    decltype(auto) rule_of_head(const auto* of_heads, std::size_t head) const
    {
        if constexpr (kernels::tiles::learned_rule<Rule>) {
            return rule.of_head(of_heads[head]);
        } else {
            return static_cast<const Rule&>(rule);
        }
    }
};

/// The kernels without a function of scores, which heed::compiled contains.
template <class Compare, class T, class Mask, class Rule>
void tiled_forward(const Mask& mask, const Rule& rule, in<T, 3> queries, in<T, 3> keys, in<T, 3> values,
                   in<T, 1> factors, const T* of_heads, const lengths_view& real, const heads_of& how,
                   out<T, 3> contexts, T* numbers)
{
    const tiles::unmodified none;
    const tiles::score_mod_of<T, tiles::unmodified, Mask> mod(none, mask);
    attend_heads<Rule, Compare>{rule}.template forward<T>(mod, queries, keys, values, factors, of_heads, real, how,
                                                          contexts, numbers);
}
template <class Compare, class T, class Mask, class Rule>
void tiled_backward(const Mask& mask, const Rule& rule, in<T, 3> queries, in<T, 3> keys, in<T, 3> values,
                    in<T, 1> factors, const T* of_heads, const lengths_view& real, const heads_of& how,
                    in<T, 3> contexts, in<T, 3> d_contexts, const T* numbers, adjoint<T, 3> d_queries,
                    adjoint<T, 3> d_keys, adjoint<T, 3> d_values, const shard_place<T>& table_of_shard,
                    const shard_place<T>& factors_of_shard, const shard_place<T>& of_heads_of_shard)
{
    const tiles::unmodified none;
    const tiles::score_mod_of<T, tiles::unmodified, Mask> mod(none, mask);
    attend_heads<Rule, Compare>{rule}.template backward<T>(mod, queries, keys, values, factors, of_heads, real, how,
                                                           contexts, d_contexts, numbers, d_queries, d_keys, d_values,
                                                           table_of_shard, factors_of_shard, of_heads_of_shard);
}

// Contents of heed::compiled: inner products with these masks and rules.
using causal_and_window = both_masks<not_behind, sliding_window>;
// clang-format off
#define HEED_TILED(X, T, id, Rule, Mask, Compare) \
    X(T, tiled_forward_##id, void, tiled_forward<Compare>, \
      (const Mask& mask, const Rule& rule, in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 1> factors, const T* of_heads, const lengths_view& real, const heads_of& how, out<T, 3> contexts, T* numbers), \
      (mask, rule, queries, keys, values, factors, of_heads, real, how, contexts, numbers)) \
    X(T, tiled_backward_##id, void, tiled_backward<Compare>, \
      (const Mask& mask, const Rule& rule, in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 1> factors, const T* of_heads, const lengths_view& real, const heads_of& how, in<T, 3> contexts, in<T, 3> d_contexts, const T* numbers, adjoint<T, 3> d_queries, adjoint<T, 3> d_keys, adjoint<T, 3> d_values, const shard_place<T>& table, const shard_place<T>& factors_of, const shard_place<T>& numbers_of), \
      (mask, rule, queries, keys, values, factors, of_heads, real, how, contexts, d_contexts, numbers, d_queries, d_keys, d_values, table, factors_of, numbers_of))
#define HEED_TILED_UNDER_MASKS(X, T, id, Rule) \
    HEED_TILED(X, T, id##_full, Rule, tiles::unmasked, tiles::inner_product) \
    HEED_TILED(X, T, id##_causal, Rule, heed::not_behind, tiles::inner_product) \
    HEED_TILED(X, T, id##_window, Rule, heed::sliding_window, tiles::inner_product) \
    HEED_TILED(X, T, id##_causal_window, Rule, causal_and_window, tiles::inner_product)
#define HEED_OPERATIONS_OF_TILES(X, T) \
    HEED_TILED_UNDER_MASKS(X, T, softmax, tiles::softmax) \
    HEED_TILED_UNDER_MASKS(X, T, sigmoid, tiles::sigmoid) \
    HEED_TILED_UNDER_MASKS(X, T, sparsemax, tiles::sparse_weights<1>) \
    HEED_TILED_UNDER_MASKS(X, T, entmax15, tiles::sparse_weights<2>)
// clang-format on
HEED_COMPILED_KERNELS(HEED_OPERATIONS_OF_TILES)

}  // namespace detail

/// A function of the score with its table; a function without a table ignores it.
template <class Function, class T, std::size_t N>
auto function_with(const Function& f, const in<T, N>& table)
{
    if constexpr (std::is_same_v<Function, kernels::tiles::unmodified>) {
        return kernels::tiles::unmodified{};
    } else if constexpr (std::is_invocable_v<const Function&, pack<T>, score_index>) {
        return f;
    } else {
        return kernels::tiles::modified_by_table<Function, lane_table<T, N>>{f, {table.data, table.shape}};
    }
}

/// Contexts of many queries, separately for each head:
///
///     C = W(scale · Q Kᵀ) V            queries [B,S,H·d], keys [B,T,G·d], values [B,T,G·D] -> [B,S,H·D]
///
/// or with another comparison of kernels/tiles/comparisons.hpp instead of Q Kᵀ. Heads are adjacent in the last axis. No
/// [S,T] is ever stored: see kernels/tiles/tiles.hpp. `real`: the number of real keys of each sentence; the padding is
/// not read. A query without a key gets a context and a gradient of 0. Gradients are bit-identical for a given number
/// of threads.
///
///     with the weights A = W(E), E = scale · Q Kᵀ, and ∂E from ∂A = ∂C Vᵀ by the derivative of W:
///     ∂V += Aᵀ ∂C,  ∂Q += scale · ∂E K,  ∂K += scale · ∂Eᵀ Q
///
/// Parameters of the policies may follow the values: the comparison's factors, such as v [H·d] of additive scores, a
/// number for each head, of_heads [H], and a table for the function of the score. Policies without these get any
/// factors [H·d], -inf, and any table. softmax's number is the head's sink s_h, entmax's its a
/// (kernels/tiles/entmax_rule.hpp).
///
///     w_j = exp(e_j) / (exp(s_h) + Σ_k exp(e_k)),  ∂s_h −= Σ w_{s_h} (∂c · c), w_{s_h} the sink's own weight
///     ∂table[k] += Σ ∂f/∂(entry k) ∂e
template <class Pair = kernels::tiles::unmodified, class Mask = kernels::tiles::unmasked,
          class Rule = kernels::tiles::softmax, class Compare = kernels::tiles::inner_product>
struct attend_tiled_op : operation<attend_tiled_op<Pair, Mask, Rule, Compare>> {
    HEED_NO_UNIQUE_ADDRESS Pair pair{};
    HEED_NO_UNIQUE_ADDRESS Mask mask{};
    HEED_NO_UNIQUE_ADDRESS Rule rule{};

    attend_tiled_op() = default;
    attend_tiled_op(Pair changes, Mask hides, Rule weighs = {}, Compare = {})
        : pair(std::move(changes)), mask(std::move(hides)), rule(std::move(weighs))
    {}

    static shape_of_rank<3> shape(const auto& queries, const auto& keys, const auto& values, const lengths_view& real,
                                  const heads_of& how)
    {
        const auto q = queries.shape, k = keys.shape, v = values.shape;
        if (how.heads == 0 || how.groups == 0 || how.sharing == 0 || how.heads % how.groups != 0 ||
            q[2] % how.heads != 0 || (how.heads > 1 && how.sharing > 1) || k[2] % how.groups != 0 ||
            v[2] % how.groups != 0 || q[2] / how.heads != k[2] / how.groups)
            detail::refuse(
                "attend_tiled: queries ", q, " of ", how.heads, " heads, keys ", k, " and values ", v, " of ",
                how.groups,
                "; heads must be a multiple of groups, and a head's queries must have the width of its keys");
        require_shape("attend_tiled", "the keys", k, {q[0] / how.sharing, k[1], k[2]},
                      "one row for each group of query rows that share it");
        require_shape("attend_tiled", "the values", v, {k[0], k[1], v[2]}, "one for each key");
        real.require("attend_tiled", q[0], k[1]);
        return {q[0], q[1], how.heads * (v[2] / how.groups)};
    }

    static shape_of_rank<3> shape(const auto& queries, const auto& keys, const auto& values, const auto& factors,
                                  const auto& of_heads, const auto& table, const lengths_view& real,
                                  const heads_of& how)
    {
        if constexpr (Compare::has_factors) {
            const std::size_t dimensions = queries.shape[2],
                              columns = factors.size() / std::max<std::size_t>(1, dimensions);
            require_shape("attend_tiled", "the factors of the score", factors.shape,
                          {dimensions * (requires { Compare::of_distances; } ? columns / 2 * 2 + 1 : 1)},
                          "one for each dimension of the queries, or for each distance and dimension");
        }
        require_shape("attend_tiled", "the vector of per-head numbers", of_heads.shape, {how.heads},
                      "one for each head");
        if (table.size() == 0 && queries.size() > 0)
            detail::refuse("score::modified: the table is empty, ", table.shape, "; give at least one number");
        return shape(queries, keys, values, real, how);
    }

    static std::size_t saved(const auto& queries, const auto&... others)
    {
        const heads_of& how = std::get<sizeof...(others) - 1>(std::tie(others...));
        return queries.shape[0] * how.heads * queries.shape[1] * Rule::numbers;
    }

    template <class T>
    void forward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, const heads_of& how,
                 out<T, 3> contexts, T* numbers) const
    {
        static_assert(!Compare::has_factors,
                      "heed: pass the factors of the comparison to attend_tiled after the values");
        static_assert(!learns, "heed: pass the numbers of the rule to attend_tiled after the values");
        forward_of<T>(pair, queries, keys, values, in<T, 1>{}, no_numbers<T>, real, how, contexts, numbers);
    }
    template <class T, std::size_t N>
    void forward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 1> factors, in<T, 1> of_heads, in<T, N> table,
                 const lengths_view& real, const heads_of& how, out<T, 3> contexts, T* numbers) const
    {
        forward_of<T>(function_with(pair, table), queries, keys, values, factors, of_heads.data, real, how, contexts,
                      numbers);
    }

    template <class T>
    void backward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, const lengths_view& real, const heads_of& how,
                  in<T, 3> contexts, in<T, 3> d_contexts, const T* numbers, adjoint<T, 3> d_queries,
                  adjoint<T, 3> d_keys, adjoint<T, 3> d_values) const
    {
        const auto nobody = [](std::size_t) -> T* { return nullptr; };
        backward_of<T>(pair, queries, keys, values, in<T, 1>{}, no_numbers<T>, real, how, contexts, d_contexts, numbers,
                       d_queries, d_keys, d_values, nobody, nobody, nobody);
    }
    template <class T, std::size_t N>
    void backward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 1> factors, in<T, 1> of_heads, in<T, N> table,
                  const lengths_view& real, const heads_of& how, in<T, 3> contexts, in<T, 3> d_contexts,
                  const T* numbers, adjoint<T, 3> d_queries, adjoint<T, 3> d_keys, adjoint<T, 3> d_values,
                  adjoint<T, 1> d_factors, adjoint<T, 1> d_of_heads, adjoint<T, N> d_table) const
    {
        scratch here;
        const of_shards<T> to_table(here, d_table), to_factors(here, d_factors),
            to_heads(here, learns ? d_of_heads : adjoint<T, 1>{});
        backward_of<T>(function_with(pair, table), queries, keys, values, factors, of_heads.data, real, how, contexts,
                       d_contexts, numbers, d_queries, d_keys, d_values, to_table, to_factors, to_heads);
        to_table.finish();
        to_factors.finish();
        to_heads.finish();
        if (!learns && d_of_heads) to_sinks(of_heads, how, contexts, d_contexts, numbers, d_of_heads);
    }

private:
    static constexpr bool learns = kernels::tiles::learned_rule<Rule>;
    template <class T>
    static constexpr const T* no_numbers = nullptr;

    template <class T, class Function>
    void forward_of(const Function& f, const auto&... in) const
    {
        if constexpr (std::is_same_v<Function, tiles::unmodified>) {
            detail::tiled_forward<Compare, T>(mask, rule, in...);
        } else {
            const tiles::score_mod_of<T, Function, Mask> mod(f, mask);
            detail::attend_heads<Rule, Compare>{rule}.template forward<T>(mod, in...);
        }
    }
    template <class T, class Function>
    void backward_of(const Function& f, const auto&... in) const
    {
        if constexpr (std::is_same_v<Function, tiles::unmodified>) {
            detail::tiled_backward<Compare, T>(mask, rule, in...);
        } else {
            const tiles::score_mod_of<T, Function, Mask> mod(f, mask);
            detail::attend_heads<Rule, Compare>{rule}.template backward<T>(mod, in...);
        }
    }

    template <class T>
    static void to_sinks(in<T, 1> sinks, const heads_of& how, in<T, 3> contexts, in<T, 3> d_contexts, const T* numbers,
                         adjoint<T, 1> d_sinks)
    {
        const std::size_t S = contexts.shape[1], width = contexts.shape[2] / how.heads;
        for (std::size_t b = 0; b < contexts.shape[0]; ++b) {
            for (std::size_t s = 0; s < S; ++s) {
                for (std::size_t h = 0; h < how.heads; ++h) {
                    const std::size_t at = ((b * S + s) * how.heads + h) * width;
                    using std::exp;
                    const T pulled = kernels::dot(width, contexts.data + at, d_contexts.data + at);
                    const T* const z = numbers + (b * how.heads + h) * S * Rule::numbers + s;  // [numbers][queries]
                    d_sinks.data[h] -= exp(sinks.data[h] - z[0]) * z[S] * pulled;
                }
            }
        }
    }

    /// Per-thread gradient buffers of a parameter; null if not required.
    template <class T>
    class of_shards {
    public:
        template <std::size_t N>
        of_shards(scratch& here, const adjoint<T, N>& wanted) : size_(wanted ? wanted.size() : 0)
        {
            if (!wanted) return;
            first_ = wanted.data;
            others_ = here.take<T>((threads() - 1) * size_);
            std::fill_n(others_, (threads() - 1) * size_, T(0));
        }
        T* operator()(std::size_t shard) const
        {
            return first_ == nullptr || shard == 0 ? first_ : others_ + (shard - 1) * size_;
        }
        /// Adds the buffers of the other threads to that of the first.
        void finish() const
        {
            for (std::size_t shard = 1; first_ != nullptr && shard < threads(); ++shard)
                for (std::size_t i = 0; i < size_; ++i) first_[i] += others_[(shard - 1) * size_ + i];
        }

    private:
        std::size_t size_;
        T *first_ = nullptr, *others_ = nullptr;
    };
};
inline constexpr attend_tiled_op<> attend_tiled{};

}  // namespace heed::inline HEED_TARGET::ops
