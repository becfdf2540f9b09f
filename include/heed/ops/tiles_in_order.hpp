// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/tiles/temporal.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/tiles.hpp>

namespace heed::inline HEED_TARGET::ops {

/// Contexts of many queries in order, where each key keeps a history of its scores; also returns the final history:
///
///     u_tj = e_tj − β L_tj,  L_{t+1,j} = log(exp(L_tj − δ) + exp(e_tj)),  c_t = Σ_j softmax(u_t)_j v_j
///
/// with e = scale · Q Kᵀ, changed by the pair's function; after Sankaran et al. 2016, eq. 6-8. queries [B,S,d], keys
/// [B,T,d], values [B,T,D], history [B,T], table (any, if the function takes none) -> {contexts [B,S,D], history
/// [B,T]}. A history includes every score, even of keys that are masked for the query; after `real` it is unchanged. No
/// [S,T] is ever stored: see kernels/tiles/temporal.hpp. Each sentence is computed by one thread.
template <class Function, class Mask>
struct attend_in_order_op : operation<attend_in_order_op<Function, Mask>> {
    Function f;
    Mask mask;
    modulated_by_past past;

    attend_in_order_op(Function changes, Mask hides, modulated_by_past remembers)
        : f(std::move(changes)), mask(std::move(hides)), past(remembers)
    {}

    static auto shape(const auto& queries, const auto& keys, const auto& values, const auto& history, const auto& table,
                      const lengths_view& real, const heads_of& how)
    {
        if (table.size() == 0 && queries.size() > 0)
            throw shape_error("score::modified: the table is empty, " + shape_text(table.shape) +
                              "; give at least one number");
        require_shape("attend_in_order", "the history", history.shape, {keys.shape[0], keys.shape[1]},
                      "one number for each key");
        return std::tuple{attend_tiled.shape(queries, keys, values, real, how), history.shape};
    }
    static auto results(auto contexts, auto history) { return std::pair{std::move(contexts), std::move(history)}; }

    static std::size_t saved(const auto& queries, const auto&, const auto&, const auto&, const auto&,
                             const lengths_view&, const heads_of&)
    {
        return 2 * queries.shape[0] * queries.shape[1];
    }

    template <class T, std::size_t N>
    void forward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 2> history, in<T, N> table,
                 const lengths_view& real, const heads_of& how, out<T, 3> contexts, out<T, 2> after, T* numbers) const
    {
        const auto pair = function_with(f, table);
        const std::size_t S = queries.shape[1], positions = keys.shape[1];
        std::copy_n(history.data, history.size(), after.data);
        tiles::with_registers<T>(positions, [&](auto registers) {
            parallel_for(queries.shape[0], 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                const simd::without_subnormals quick;
                for (std::size_t b = begin; b < end; ++b)
                    tiles::forward_in_order<registers>(
                        tiles::remembering_head{
                            detail::head_of<tiles::inner_product>(queries, keys, values, in<T, 1>{}, real, how, b),
                            pair, mask, past},
                        detail::part_of_head(contexts, 1, b), after.data + b * positions, numbers + 2 * b * S);
            });
        });
    }

    template <class T, std::size_t N>
    void backward(in<T, 3> queries, in<T, 3> keys, in<T, 3> values, in<T, 2> history, in<T, N> table,
                  const lengths_view& real, const heads_of& how, const std::tuple<in<T, 3>, in<T, 2>>& made,
                  const std::tuple<in<T, 3>, in<T, 2>>& derivatives, const T* numbers, adjoint<T, 3> d_queries,
                  adjoint<T, 3> d_keys, adjoint<T, 3> d_values, adjoint<T, 2> d_history, adjoint<T, N> d_table) const
    {
        const auto pair = function_with(f, table);
        const in<T, 3>& contexts = std::get<0>(made);
        in<T, 3> d_contexts = std::get<0>(derivatives);
        const T* const d_after = std::get<1>(derivatives).data;
        const std::size_t S = queries.shape[1], positions = keys.shape[1], size = table.size(), shards = threads();
        scratch here;
        if (d_contexts.data == nullptr) {
            T* const none = here.take<T>(contexts.size());
            std::fill_n(none, contexts.size(), T(0));
            d_contexts = {none, contexts.shape};
        }
        T* const tables = d_table ? here.take<T>(shards * size) : nullptr;
        if (d_table) std::fill_n(tables, shards * size, T(0));
        tiles::with_registers<T>(positions, [&](auto registers) {
            parallel_for(queries.shape[0], 1, [&](std::size_t begin, std::size_t end, std::size_t shard) {
                const simd::without_subnormals quick;
                for (std::size_t b = begin; b < end; ++b) {
                    const tiles::head_gradients<T> to{
                        detail::part_of_head(d_queries, 1, b), detail::part_of_head(d_keys, 1, b),
                        detail::part_of_head(d_values, 1, b), d_table ? tables + shard * size : nullptr};
                    const tiles::forward_results<T> from{detail::part_of_head(contexts, 1, b), numbers + 2 * b * S,
                                                         detail::part_of_head(d_contexts, 1, b)};
                    const tiles::history_gradients<T> to_history{d_after == nullptr ? nullptr : d_after + b * positions,
                                                                 d_history ? d_history.data + b * positions : nullptr};
                    tiles::backward_in_order<registers>(
                        tiles::remembering_head{
                            detail::head_of<tiles::inner_product>(queries, keys, values, in<T, 1>{}, real, how, b),
                            pair, mask, past},
                        from, history.data + b * positions, to_history, to);
                }
            });
        });
        for (std::size_t shard = 0; d_table && shard < shards; ++shard)
            for (std::size_t i = 0; i < size; ++i) d_table.data[i] += tables[shard * size + i];
        // After the real positions the history is unchanged.
        for (std::size_t b = 0; d_history && d_after != nullptr && b < queries.shape[0]; ++b)
            for (std::size_t j = real[b]; j < positions; ++j)
                d_history.data[b * positions + j] += d_after[b * positions + j];
    }
};
template <class Function, class Mask>
attend_in_order_op(Function, Mask, modulated_by_past) -> attend_in_order_op<Function, Mask>;

}  // namespace heed::inline HEED_TARGET::ops
