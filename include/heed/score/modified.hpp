// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/ops/modify.hpp>
#include <heed/score/by_place.hpp>
#include <heed/simd/place.hpp>

namespace heed::score {

/// A score that a function of the score and its place changes.
///
///     e'_{s,j} = f(e_{s,j}, place)        for example e − m_h (s − j): ALiBi, Press et al. 2022
///     e'_{s,j} = f(e_{s,j}, place, table)     for example e + b_h[s − j]: T5, Raffel et al. 2020
///
///     score::modified alibi{score::scaled_dot{}, [](auto e, place p) { return e - 0.1 * (p.query - p.key); }};
///     score::modified t5{score::scaled_dot{}, bias,      // [heads, 2 · reach + 1]
///                        [](auto e, place p, const auto& b) { return e + b(p.head, p.key - p.query + 16); }};
///
/// `f` takes a score of any kind (`auto`) and a place, and returns a score: it runs on registers of numbers
/// (simd/lanes.hpp), and on dual numbers for its derivative. A table, a tensor of any rank, is a parameter: it learns,
/// however often f looks numbers up in it (simd/tables.hpp). Queries count from 0, keys too. The base compares queries
/// with keys as it does alone; where tiles know the base, with softmax and a weighted sum, many queries are answered
/// tile by tile, and f runs within the tile. Weights per position only.
template <class Base, class Function, class Table = no_table>
struct modified : by_place<modified<Base, Function, Table>, Base> {
    Base base;
    HEED_NO_UNIQUE_ADDRESS Table table;
    Function f;

    modified(Base one, Function function) : base(std::move(one)), table(), f(std::move(function)) {}
    modified(Base one, Table known, Function function)
        : base(std::move(one)), table(std::move(known)), f(std::move(function))
    {}

    /// Scores [B·S,T] as f changes them.
    auto changed(const tensor auto& scores, const auto&, const ops::rows_of_places& where) const
    {
        if constexpr (std::is_same_v<Table, no_table>) {
            return ops::modify_op{f}(scores, where);
        } else {
            return ops::modify_op{f}(scores, table, where);
        }
    }

    /// What changes scores, and the table that it looks numbers up in.
    const Function& change(std::size_t) const { return f; }
    static constexpr bool looks_up = !std::is_same_v<Table, no_table>;
    const Table& looked_up(const tensor auto&) const { return table; }  // what the function sees

    static auto parameters(auto& self, auto&& visit)
    {
        if constexpr (std::is_same_v<Table, no_table>) {
            return score::modified{visit("base", self.base), self.f};
        } else {
            auto base = visit("base", self.base);
            auto table = visit("table", self.table);
            return score::modified{std::move(base), std::move(table), self.f};
        }
    }
};

template <class Base, class Function>
modified(Base, Function) -> modified<Base, Function>;
template <class Base, class Table, class Function>
modified(Base, Table, Function) -> modified<Base, Function, Table>;

}  // namespace heed::score
