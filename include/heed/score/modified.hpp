// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/place.hpp>
#include <heed/ops/modify.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// Where a step stands. No tensors.
struct stands {
    std::size_t query = 0, first_sentence = 0, head = 0;

    /// A part of a batch, computed by itself, begins at another sentence.
    stands map(auto&& f, const auto&...) const
    {
        stands part = *this;
        if constexpr (requires { f.block.first; }) part.first_sentence += f.block.first;
        return part;
    }
};

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
/// (core/lanes.hpp), and on dual numbers for its derivative. A table, a tensor of any rank, is a parameter: it learns,
/// however often f looks numbers up in it (core/tables.hpp). Queries count from 0, keys too. The base compares queries
/// with keys as it does alone; where tiles know the base, with softmax and a weighted sum, many queries are answered
/// tile by tile, and f runs within the tile. Weights per position only.
template <class Base, class Function, class Table = no_table>
struct modified {
    Base base;
    [[no_unique_address]] Table table;
    Function f;

    modified(Base one, Function function) : base(std::move(one)), table(), f(std::move(function)) {}
    modified(Base one, Table known, Function function)
        : base(std::move(one)), table(std::move(known)), f(std::move(function))
    {}

    static constexpr weight_kind weights = Base::weights;
    static constexpr bool reads_context = over::reads_context<Base>();

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const
    {
        return over::prepare(base, annotations, first);
    }
    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto& memory) const { return beside(score::stands{}, over::start(base, memory)); }
    auto recall(const auto& now, const auto& at, const auto&... memory) const
    {
        return beside({at.step, at.real.first_row(), now.head}, over::recall(base, now.base, at, memory...));
    }
    template <class Past>
    auto advance(Past&& now, const tensor auto& seen, const tensor auto& context, const auto& at) const
    {
        return beside(now.own(), over::advance(base, now.base, seen, context, at));
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& now) const
    {
        static_assert(weights == weight_kind::per_position,
                      "heed: score::modified changes one score for each position: its base has weights per position");
        return changed(over::match(base, projected, keys, now.base), {1, now.query, now.first_sentence, now.head});
    }
    auto operator()(const auto& query, const tensor auto& keys, const auto& now) const
    {
        return match(project(query), keys, now);
    }

    template <tensor Queries, tensor Keys>
        requires(over::matches_all<Base, Queries, Keys>)
    auto match_all(const Queries& queries, const Keys& keys, const over::queries_from& from) const
    {
        return changed(over::match_all(base, queries, keys, from),
                       {shape_of(queries)[1], from.first, from.sentence, from.head});
    }

    /// Scores [B·S,T] as f changes them.
    auto changed(const tensor auto& scores, const ops::rows_of_places& where) const
    {
        if constexpr (std::is_same_v<Table, no_table>) {
            return ops::modify_op{f}(scores, where);
        } else {
            return ops::modify_with_table_op{f}(scores, table, where);
        }
    }

    template <class Inner>
    static over::past<score::stands, Inner> beside(score::stands own, Inner inner)
    {
        return {own, std::move(inner)};
    }

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
