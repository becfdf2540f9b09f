// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <heed/core/dual_number.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/workspace.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>
#include <heed/policy/step_kernel.hpp>
#include <heed/score/keys_up_to_query.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y[r,j] = e[r,j] + z[r,p], p = min(P − 1, Σ_{l=j..i} σ(e[r,l])): e [R,T], z [R,P] -> [R,T]. i is the query's
/// position. Between integers p, z is interpolated linearly; p of a key after the query is 0.
///
///     with f = ⌊p⌋ and ∂p = (z[r,f+1] − z[r,f]) ∂y, or 0 where p = P − 1:
///     ∂z[r,f] += (1 + f − p) ∂y,  ∂z[r,f+1] += (p − f) ∂y
///     ∂e[r,l] += ∂y[r,l] + σ(e[r,l]) (1 − σ(e[r,l])) Σ_{j≤l} ∂p_j
struct add_contextual_positions_op : operation<add_contextual_positions_op> {
    static shape_of_rank<2> shape(const auto& e, const auto& z, const lengths_view& count, const lengths_view& first)
    {
        require_shape("add_contextual_positions", "the scores of positions", z.shape, {e.shape[0], z.shape[1]},
                      "one row for each row of scores ", e.shape);
        if (z.shape[1] == 0) {
            throw shape_error("add_contextual_positions: z is " + shape_text(z.shape) +
                              ", but needs at least one column, for position 0");
        }
        detail::require_places("add_contextual_positions", count, first, e.shape[0]);
        return e.shape;
    }

    template <class T>
    static void forward(in<T, 2> e, in<T, 2> z, const lengths_view& count, const lengths_view& first, out<T, 2> y)
    {
        const std::size_t positions = e.shape[1], P = z.shape[1];
        detail::each_row(e.shape[0], 64 * positions, [=, &count, &first](std::size_t r) {
            scratch here;
            T* const p = here.take<T>(positions);
            const T *const scores = e.data + r * positions, *const table = z.data + r * P;
            sum_gates(scores, positions, detail::keys_of_row(count, first, r, positions), p);
            for (std::size_t j = 0; j < positions; ++j) {
                const auto [f, part] = between(p[j], P);
                const T added = f + 1 < P ? table[f] + part * (table[f + 1] - table[f]) : table[f];
                y.data[r * positions + j] = scores[j] + added;
            }
        });
    }

    template <class T>
    static void backward(in<T, 2> e, in<T, 2> z, const lengths_view& count, const lengths_view& first, in<T, 2>,
                         in<T, 2> d_y, adjoint<T, 2> d_e, adjoint<T, 2> d_z)
    {
        const std::size_t positions = e.shape[1], P = z.shape[1];
        detail::each_row(e.shape[0], 64 * positions, [=, &count, &first](std::size_t r) {
            scratch here;
            T* const p = here.take<T>(positions);
            const T *const scores = e.data + r * positions, *const table = z.data + r * P;
            const T* const d = d_y.data + r * positions;
            const std::size_t n = detail::keys_of_row(count, first, r, positions);
            sum_gates(scores, positions, n, p);
            in_double<T> before = 0;  // Σ_{j≤l} ∂p_j
            for (std::size_t j = 0; j < positions; ++j) {
                const auto [f, part] = between(p[j], P);
                const bool inside = f + 1 < P;
                if (d_z) d_z.data[r * P + f] += inside ? (1 - part) * d[j] : d[j];
                if (d_z && inside) d_z.data[r * P + f + 1] += part * d[j];
                if (!d_e) continue;
                if (j < n && inside && d[j] != T(0))
                    before += static_cast<in_double<T>>((table[f + 1] - table[f]) * d[j]);
                d_e.data[r * positions + j] += d[j];
                if (j < n) {
                    const T gate = sigmoid(scores[j]);
                    d_e.data[r * positions + j] += gate * (1 - gate) * static_cast<T>(before);
                }
            }
        });
    }

private:
    template <class T>
    static T sigmoid(T x)
    {
        using std::exp;
        const T power = exp(x < 0 ? x : -x);
        return x < 0 ? power / (1 + power) : 1 / (1 + power);
    }
    /// p of each key, before it is capped at the last position; 0 after the n keys up to the query. Summed in double.
    template <class T>
    static void sum_gates(const T* e, std::size_t positions, std::size_t n, T* p)
    {
        std::fill(p + n, p + positions, T(0));
        in_double<T> sum = 0;
        for (std::size_t j = n; j-- > 0;) p[j] = static_cast<T>(sum += static_cast<in_double<T>>(sigmoid(e[j])));
    }
    /// ⌊p⌋ and p − ⌊p⌋; (P − 1, 0) from the last position on.
    template <class T>
    static std::pair<std::size_t, T> between(T p, std::size_t P)
    {
        const double value = static_cast<double>(value_of(p));
        if (!(value < static_cast<double>(P - 1))) return {P - 1, T(0)};
        const auto f = static_cast<std::size_t>(value);
        return {f, p - static_cast<T>(static_cast<plain_number<T>>(f))};
    }
};
inline constexpr add_contextual_positions_op add_contextual_positions{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// An inner product that also compares the query with the key's contextual position: the number of words that match the
/// query, counted from the key up to the query (contextual positions, CoPE).
///
///     e'_{ij} = a(q_i) · (k_j + z[p_ij]),  p_ij = min(p_max, Σ_{l=j..i} g_il),  g_il = σ(a(q_i) · k_l)
///     z[p] = (1 + ⌊p⌋ − p) z[⌊p⌋] + (p − ⌊p⌋) z[⌊p⌋ + 1]             Golovneva et al. 2024, section 4
///
///     score::contextual_positions counts{score::scaled_dot{}, positions};           // z: [A, p_max + 1]
///
/// a(q) is the base's projection: q / √A for scaled_dot. `positions` has a column for each position from 0 to p_max;
/// throws shape_error if it has none. Products with all columns are computed first, [S, p_max + 1], so no vector is
/// added to a key. Deviation: the authors' program divides q · k by √A, but not q · z; a z that is √A times as large is
/// equivalent.
///
/// For self-attention with causal{}: the i-th query is at the i-th position of the memory, or at the last one if there
/// are fewer. A key after the query has position 0. Positions hidden only by a mask are counted; positions cut off by a
/// window are not. Not computed in tiles: each query needs the gates of all keys.
template <class Base, class Matrix>
struct contextual_positions : over::around<contextual_positions<Base, Matrix>, Base> {
    using over::around<contextual_positions<Base, Matrix>, Base>::base;
    Matrix positions;

    static constexpr score_traits traits = traits_around_score<Base>([](score_traits& own) {
        own.reads_length = own.reads_query_position = true;  // a query after the last position is placed there
        own.needs_all_positions = true;
    });
    static_assert(detail::placeholder<Base> || known_to_kernels_as<Base, kernels::inner_product_score>,
                  "heed: score::contextual_positions compares the query with both keys and positions, by inner "
                  "products: its base must be dot, scaled_dot or general");

    auto init_state(const auto&) const { return keys_up_to_query{}; }
    auto observe_query(const keys_up_to_query&, const auto& at, const auto& memory) const
    {
        return keys_up_to_query::of_step(at.step, memory);
    }
    auto update_state(const auto&, const tensor auto&, const tensor auto&, const auto&) const
    {
        return keys_up_to_query{};
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const keys_up_to_query& now) const  // [B,T]
    {
        return ops::add_contextual_positions(over::match(base, projected, keys, no_score_state{}),
                                             ops::linear(base.asking(projected), positions), now.count, now.first);
    }

    auto score_matrix(const tensor auto& queries, const tensor auto& keys,
                      const over::queries_from& from) const  // [B·S,T]
    {
        const auto [B, S, A] = shape_of(queries);
        const auto now = keys_up_to_query::of_all(from, S);
        const auto of_positions = ops::linear(base.asking(queries), positions);  // [B,S,P]
        return ops::add_contextual_positions(over::score_matrix(base, queries, keys, from),
                                             ops::reshaped(of_positions, B * S, shape_of(of_positions)[2]), now.count,
                                             now.first);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::contextual_positions{visit("base", self.base), visit("positions", self.positions)};
    }
};

template <class Base, class Matrix>
contextual_positions(Base, Matrix) -> contextual_positions<Base, Matrix>;

}  // namespace heed::inline HEED_TARGET::score
