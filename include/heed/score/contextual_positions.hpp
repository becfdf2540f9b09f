// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/inner_product.hpp>
#include <heed/ops/distances.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/keys_up_to_query.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// An inner product that also compares the query with the key's position, which the query itself counts: how many words
/// like it stand from the key up to its own place (contextual positions, CoPE).
///
///     e'_{ij} = a(q_i) · (k_j + z[p_ij]),  p_ij = min(p_max, Σ_{l=j..i} g_il),  g_il = σ(a(q_i) · k_l)
///     z[p] = (1 + ⌊p⌋ − p) z[⌊p⌋] + (p − ⌊p⌋) z[⌊p⌋ + 1]             Golovneva et al. 2024, section 4
///
///     score::contextual_positions counts{score::scaled_dot{}, positions};           // z: [A, p_max + 1]
///
/// a(q) is the base's: q / √A of scaled_dot. A column of `positions` for each position from 0 to p_max. Products with
/// all columns come first, [S, p_max + 1], so that no vector is added to a key. The gates are the scores themselves, as
/// in the paper. Deviation: the authors' program divides q · k by √A, but not q · z; z may as well be √A times as
/// large.
///
/// For self-attention with causal{}: the i-th query stands at the i-th position of the memory, or at the last one if
/// there are fewer. A key behind it has position 0. A position that only a mask hides is counted, one that a window
/// cuts off is not. Not in tiles: each query has the gates of all keys. Throws shape_error if there are no columns.
template <class Base, class Matrix>
struct contextual_positions {
    Base base;
    Matrix positions;

    static constexpr weight_kind weights = weight_kind::per_position;
    static constexpr bool reads_context = over::reads_context<Base>();
    static constexpr bool reads_length = true;  // a query behind the last position stands there
    static constexpr bool counts_queries = true;
    static_assert(detail::placeholder<Base> || known_to_kernels_as<Base, kernels::inner_product_score>,
                  "heed: score::contextual_positions compares the query with keys and with positions alike, by inner "
                  "products: its base is dot, scaled_dot or general");

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const
    {
        return over::prepare(base, annotations, first);
    }
    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto&) const { return keys_up_to_query{}; }
    auto recall(const keys_up_to_query&, const auto& at, const auto& memory) const
    {
        return keys_up_to_query::of_step(at.step, memory);
    }
    auto advance(const keys_up_to_query&, const tensor auto&, const auto&) const { return keys_up_to_query{}; }

    auto match(const tensor auto& projected, const tensor auto& keys, const keys_up_to_query& now) const  // [B,T]
    {
        return ops::add_contextual_positions(over::match(base, projected, keys, no_past{}),
                                             ops::linear(base.asking(projected), positions), now.count, now.first);
    }
    auto operator()(const auto& query, const tensor auto& keys, const keys_up_to_query& now) const
    {
        return match(project(query), keys, now);
    }

    auto match_all(const tensor auto& queries, const tensor auto& keys,
                   const over::queries_from& from) const  // [B·S,T]
    {
        const auto [B, S, A] = shape_of(queries);
        const auto now = keys_up_to_query::of_all(from, S);
        const auto of_positions = ops::linear(base.asking(queries), positions);  // [B,S,P]
        return ops::add_contextual_positions(over::match_all(base, queries, keys, from),
                                             ops::reshaped(of_positions, B * S, shape_of(of_positions)[2]), now.count,
                                             now.first);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto base = visit("base", self.base);
        auto positions = visit("positions", self.positions);
        return score::contextual_positions<decltype(base), decltype(positions)>{std::move(base), std::move(positions)};
    }
};

template <class Base, class Matrix>
contextual_positions(Base, Matrix) -> contextual_positions<Base, Matrix>;

}  // namespace heed::score
