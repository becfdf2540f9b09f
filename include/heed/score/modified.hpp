// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/ops/modify.hpp>
#include <heed/score/over.hpp>
#include <heed/simd/score_index.hpp>

namespace heed::inline HEED_TARGET::score {

/// The index of a step. No tensors, but a part of a batch holds its first sentence, and a window its first keys.
struct stands {
    static constexpr bool holds_no_tensors = true;

    std::size_t query = 0;
    lengths_view sentences{};
    std::size_t head = 0;
    std::span<const std::size_t> first_keys{};

    stands map(auto&& f, const auto&...) const
    {
        auto there = *this;
        if constexpr (requires { f.part(sentences); }) {
            if (sentences.batch() > 0) there.sentences = f.part(sentences);
        }
        if constexpr (cuts_out_windows<decltype(f)>) there.first_keys = {f.where.begin, f.where.count.batch()};
        return there;
    }
};

/// Base class of a score that changes its base's scores by their index, for one step and for all queries at once:
///
///     changed(scores, queries, where)        the changed scores [B·S,T] of projected queries [B,A] or [B,S,A]
template <class Self, class Base>
struct by_place : over::around<Self, Base> {
    using over::around<Self, Base>::around;

    static constexpr score_traits traits =
        traits_around_score<Base>([](score_traits& own) { own.needs_all_positions = true; });

    auto init_state(const auto&) const { return score::stands{}; }
    auto observe_query(const auto&, const auto& at) const { return score::stands{at.step, at.real, at.head}; }
    auto update_state(const auto&, const tensor auto&, const tensor auto&, const auto&) const
    {
        return score::stands{};
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& now) const
    {
        static_assert(
            score_traits_of<Base>().weights == weight_kind::per_position,
            "heed: score::modified changes one score for each position: its base must have weights per position");
        return this->self().changed(
            over::match(this->base, projected, keys, now.base), projected,
            {1, now.query, now.sentences.first_row(), now.head, now.first_keys, now.sentences.heads()});
    }

    template <tensor Queries, tensor Keys>
        requires(over::scores_a_matrix<Base, Queries, Keys>)
    auto score_matrix(const Queries& queries, const Keys& keys, const over::queries_from& from) const
    {
        return this->self().changed(
            over::score_matrix(this->base, queries, keys, from), queries,
            {shape_of(queries)[1], from.first, from.real.first_row(), from.head, {}, from.real.heads()});
    }
};

/// A score changed by a function of the score and its index.
///
///     e'_{s,j} = f(e_{s,j}, index)            for example e − m_h (s − j): ALiBi, Press et al. 2022
///     e'_{s,j} = f(e_{s,j}, index, table)     for example e + b_h[s − j]: T5, Raffel et al. 2020
///
///     score::modified alibi{score::scaled_dot{}, [](auto e, score_index p) { return e - 0.1 * (p.query - p.key); }};
///     score::modified t5{score::scaled_dot{}, bias,      // [heads, 2 · reach + 1]
///                        [](auto e, score_index p, const auto& b) { return e + b(p.head, p.key - p.query + 16); }};
///
/// `f` takes a score of any type (`auto`) and an index, and returns a score: it runs on SIMD registers (simd/pack.hpp),
/// and on dual numbers for its derivative. A table, a tensor of any rank, is a parameter: it is trained, and f may read
/// it any number of times (simd/lookup_table.hpp). Queries and keys count from 0. The base compares as it does alone;
/// where tiles support it, with softmax and a weighted sum, f runs within the tile. Weights per position only.
template <class Base, class Function, class Table = no_table>
struct modified : by_place<modified<Base, Function, Table>, Base> {
    HEED_NO_UNIQUE_ADDRESS Table table;
    Function f;

    static_assert(
        !std::is_same_v<Table, no_table> ||
            std::is_invocable_v<const Function&, const pack<float>&, const score_index&>,
        "heed: a function of scores takes a score and its index, `[](auto e, score_index p) { return e; }`: the "
        "index has batch, head, query and key; with a table, `[](auto e, score_index p, const auto& table)`");

    modified(Base one, Function function) : by_place<modified, Base>(std::move(one)), table(), f(std::move(function)) {}
    modified(Base one, Table known, Function function)
        : by_place<modified, Base>(std::move(one)), table(std::move(known)), f(std::move(function))
    {}

    /// Scores [B·S,T] changed by f.
    auto changed(const tensor auto& scores, const auto&, const ops::rows_of_places& where) const
    {
        if constexpr (looks_up) {
            return ops::modify_op{f}(scores, table, where);
        } else {
            return ops::modify_op{f}(scores, where);
        }
    }

    /// The function that changes scores.
    const Function& change(std::size_t, std::size_t) const { return f; }
    static constexpr bool looks_up = !std::is_same_v<Table, no_table>;
    /// The table that it reads.
    const Table& looked_up(const tensor auto&) const { return table; }

    static auto parameters(auto& self, auto&& visit)
    {
        if constexpr (looks_up) {
            return score::modified{visit("base", self.base), visit("table", self.table), self.f};
        } else {
            return score::modified{visit("base", self.base), self.f};
        }
    }
};

}  // namespace heed::inline HEED_TARGET::score
