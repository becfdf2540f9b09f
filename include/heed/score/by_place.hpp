// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/ops/modify.hpp>
#include <heed/score/over.hpp>

/// Scores of another score that are changed with their places: what score::modified and score::relative have in common.
namespace heed::score {

/// The first of some sentences of a batch.
struct first_sentence {
    std::size_t number = 0;

    first_sentence rows(std::size_t begin, std::size_t) const { return {number + begin}; }
};

/// Where a step stands. No tensors, but a part of a batch knows its first sentence, and a window its first keys.
struct stands {
    static constexpr bool holds_no_tensors = true;

    std::size_t query = 0;
    score::first_sentence sentence{};
    std::size_t head = 0;
    std::span<const std::size_t> first_keys{};

    stands map(auto&& f, const auto&...) const
    {
        auto there = *this;
        if constexpr (requires { f.part(sentence); }) there.sentence = f.part(sentence);
        if constexpr (cuts_out_windows<decltype(f)>) there.first_keys = {f.where.begin, f.where.count.batch()};
        return there;
    }
};

/// Base class of a score that changes those of its member `base`, step by step and all queries at once:
///
///     changed(scores, queries, where)        scores [B·S,T] of projected queries [B,A] or [B,S,A], changed
template <class Self, class Base>
struct by_place {
    static constexpr weight_kind weights = Base::weights;
    static constexpr bool reads_context = over::reads_context<Base>();

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const
    {
        return over::prepare(self().base, annotations, first);
    }
    auto project(const auto& query) const { return over::project(self().base, query); }

    auto start(const auto& memory) const { return beside(score::stands{}, over::start(self().base, memory)); }
    auto recall(const auto& now, const auto& at, const auto&... memory) const
    {
        return beside({at.step, {at.real.first_row()}, at.head}, over::recall(self().base, now.base, at, memory...));
    }
    template <class Past>
    auto advance(Past&& now, const tensor auto& seen, const tensor auto& context, const auto& at) const
    {
        return beside(now.own(), over::advance(self().base, now.base, seen, context, at));
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& now) const
    {
        static_assert(weights == weight_kind::per_position,
                      "heed: score::modified changes one score for each position: its base has weights per position");
        return self().changed(over::match(self().base, projected, keys, now.base), projected,
                              {1, now.query, now.sentence.number, now.head, now.first_keys});
    }
    auto operator()(const auto& query, const tensor auto& keys, const auto& now) const
    {
        return match(project(query), keys, now);
    }

    template <tensor Queries, tensor Keys>
        requires(over::matches_all<Base, Queries, Keys>)
    auto match_all(const Queries& queries, const Keys& keys, const over::queries_from& from) const
    {
        return self().changed(over::match_all(self().base, queries, keys, from), queries,
                              {shape_of(queries)[1], from.first, from.sentence, from.head, {}});
    }

protected:
    by_place() = default;
    const Self& self() const { return static_cast<const Self&>(*this); }

private:
    template <class Inner>
    static over::past<score::stands, Inner> beside(score::stands own, Inner inner)
    {
        return {own, std::move(inner)};
    }
};

}  // namespace heed::score
