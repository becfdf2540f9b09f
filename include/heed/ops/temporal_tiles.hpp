// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/tiles/temporal.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/tiles.hpp>
#include <heed/simd/tables.hpp>

namespace heed::ops {

/// How the scores that a key had modulate those that follow: u = e − βL, L' = log(exp(L − δ) + exp(e)).
struct modulated_by_past {
    double strength = 1;  // β
    double decay = 0;     // δ

    /// e − strength·L, or e without a past.
    template <class V>
    V modulated(V e, V L) const
    {
        return functions::discount::value(e, L, number<V>(strength));
    }
    /// L after a step with score e.
    template <class V>
    V grown(V L, V e) const
    {
        return functions::logaddexp::value(L, e, number<V>(decay));
    }
    /// ∂e, and ∂L of the step before, of ∂L' = by, where L' is `after`.
    template <class V>
    V share_of_score(V e, V after, V by) const
    {
        return functions::logaddexp::share(e, after, by);
    }
    /// What of `by`, the derivative by L after a step, goes to L before it.
    template <class V>
    V share_of_past(V L, V after, V by) const
    {
        return functions::logaddexp::share(L - number<V>(decay), after, by);
    }
    /// ∂L of ∂u.
    template <class V>
    V slope_of_past(V L, V d_u) const
    {
        return functions::discount::slope_b(L, L, L, d_u, number<V>(strength));
    }

private:
    template <class V>
    static V number(double x)
    {
        return simd::splat(static_cast<std::remove_cvref_t<decltype(V{}[0])>>(x));
    }
};

/// Contexts of many queries in their order, where each key remembers the scores that it had, and what it remembers
/// after them:
///
///     u_tj = e_tj − β L_tj,  L_{t+1,j} = log(exp(L_tj − δ) + exp(e_tj)),  c_t = Σ_j softmax(u_t)_j v_j
///
/// with e = scale · Q Kᵀ, changed by the pair's function; after Sankaran et al. 2016, eq. 6-8. queries [B,S,d], keys
/// [B,T,d], values [B,T,D], history [B,T], table (any, where the function takes none) -> {contexts [B,S,D], history
/// [B,T]}. A history counts every score, also of a key that the mask hides from the query; behind `real` it stays as it
/// is. No [S,T] is ever stored: see kernels/tiles/temporal.hpp. Each sentence is one thread's.
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
            throw shape_error("score::modified: the table is empty, " + shape_text(table.shape));
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
                for (std::size_t b = begin; b < end; ++b)
                    tiles::forward_in_order<registers>(head_of(queries, keys, values, real, how, b), pair, mask, past,
                                                       rows_of(contexts, b), after.data + b * positions,
                                                       numbers + 2 * b * S);
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
                for (std::size_t b = begin; b < end; ++b) {
                    const tiles::head_gradients<T> to{rows_of(d_queries, b), rows_of(d_keys, b), rows_of(d_values, b),
                                                      d_table ? tables + shard * size : nullptr};
                    tiles::backward_in_order<registers>(head_of(queries, keys, values, real, how, b), pair, mask, past,
                                                        rows_of(contexts, b), numbers + 2 * b * S,
                                                        rows_of(d_contexts, b), history.data + b * positions,
                                                        d_after == nullptr ? nullptr : d_after + b * positions,
                                                        d_history ? d_history.data + b * positions : nullptr, to);
                }
            });
        });
        for (std::size_t shard = 0; d_table && shard < shards; ++shard)
            for (std::size_t i = 0; i < size; ++i) d_table.data[i] += tables[shard * size + i];
        // Behind the real positions nothing is remembered, and nothing forgotten.
        for (std::size_t b = 0; d_history && d_after != nullptr && b < queries.shape[0]; ++b)
            for (std::size_t j = real[b]; j < positions; ++j)
                d_history.data[b * positions + j] += d_after[b * positions + j];
    }

private:
    template <class View>
    static auto rows_of(const View& x, std::size_t b)
    {
        using element = std::remove_reference_t<decltype(*x.data)>;
        if (x.data == nullptr) return tiles::rows<element>{nullptr, 0};
        return tiles::rows<element>{x.data + b * x.shape[1] * x.shape[2], x.shape[2]};
    }
    template <class T>
    static tiles::head<T> head_of(const in<T, 3>& queries, const in<T, 3>& keys, const in<T, 3>& values,
                                  const lengths_view& real, const heads_of& how, std::size_t b)
    {
        return {rows_of(queries, b),
                rows_of(keys, b),
                rows_of(values, b),
                keys.shape[2],
                values.shape[2],
                queries.shape[1],
                real[b],
                static_cast<T>(how.scale),
                b,
                how.first_head,
                how.first_query};
    }
};
template <class Function, class Mask>
attend_in_order_op(Function, Mask, modulated_by_past) -> attend_in_order_op<Function, Mask>;

}  // namespace heed::ops
