// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/attention/query.hpp>
#include <heed/core/transient.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/over.hpp>

/// Scores of another score that change with the gates between key and query: what score::forgetting and score::fading
/// have in common.
namespace heed::score {

/// The sum (F_i, 1) at the query that is answered, for each row.
template <class Sums>
struct sums_of_query {
    Sums sums;  // [B,2]

    auto map(auto&& f, const auto&... others) const
    {
        if constexpr (spares_rows<decltype(f)>) {
            return *this;
        } else {
            return score::sums_of_query{f(sums, others.sums...)};
        }
    }
};
template <class Sums>
sums_of_query(Sums) -> sums_of_query<Sums>;

/// Base class of a score that changes those of its `base` by the gates f_l = σ(w · x_l + b) between key and query:
///
///     changed(scores, sums)      scores [B·S,T], and as many Σ_{l=j+1..i} log f_l
///
/// Keys are prepared with the columns (1, −F_j), F_j = Σ_{l≤j} log f_l, before the base's: their inner product with
/// (F_i, 1) is that sum. `attention::extend` carries it on.
template <class Self, class Base, class Matrix, class Vector>
struct over_gates {
    Base base;
    Matrix w;  // [D,1]
    Vector b;  // [1]

    static constexpr weight_kind weights = Base::weights;
    static constexpr bool reads_context = over::reads_context<Base>();
    static constexpr bool reads_length = true;  // a query behind the last position stands there
    static constexpr bool widens_keys = true, counts_queries = true;

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const  // -> [B,T,2+A]
    {
        static_assert(weights == weight_kind::per_position,
                      "heed: score::forgetting and score::fading change one number for each position: their base has "
                      "weights per position");
        static_assert(!detail::widens_keys_of<Base>(),
                      "heed: score::forgetting and score::fading are not laid over each other: one of them will do");
        return ops::concat(ops::carried_sums(ops::log_sigmoid(ops::linear(annotations, w, b))),
                           over::prepare(base, annotations, first));
    }
    auto follow(const tensor auto& keys, const tensor auto& before) const { return ops::carry_sums(keys, before); }

    auto project(const auto& query) const { return over::project(base, query); }

    auto start(const auto& memory) const
    {
        return beside(score::sums_of_query{constant_like(memory.keys, shape_of_rank<2>{memory.batch(), 2}, 0.0)},
                      over::start(base, memory));
    }
    auto recall(const auto& now, const auto& at, const auto& memory) const
    {
        using keys = std::remove_cvref_t<decltype(memory.keys)>;
        if constexpr (detail::keys_grow<keys>) {
            return beside(score::sums_of_query{sums_in_rows(memory, at.step)},
                          over::recall(base, now.base, at, memory));
        } else {
            return beside(score::sums_of_query{ops::step_of(sums_at_queries(memory.keys, memory.real, at.step, 1), 0)},
                          over::recall(base, now.base, at, memory));
        }
    }
    template <class Past>
    auto advance(Past&& now, const tensor auto& seen, const tensor auto& context, const auto& at) const
    {
        return beside(now.own(), over::advance(base, now.base, seen, context, at));
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& now) const  // [B,T]
    {
        const std::size_t N = shape_of(keys)[2];
        return self().changed(over::match(base, projected, ops::columns_between(keys, 2, N), now.base),
                              ops::dot_each(now.sums, ops::columns_between(keys, 0, 2)));
    }
    auto operator()(const auto& query, const tensor auto& keys, const auto& now) const
    {
        return self().match(project(query), keys, now);
    }

    template <tensor Queries, tensor Keys>
        requires(over::matches_all<Base, Queries, Keys>)
    auto match_all(const Queries& queries, const Keys& keys, const over::queries_from& from) const  // [B·S,T]
    {
        const std::size_t N = shape_of(keys)[2];
        const auto sums = sums_at_queries(keys, from.real, from.first, shape_of(queries)[1]);
        return self().changed(over::match_all(base, queries, ops::columns_between(keys, 2, N), from),
                              ops::dot_all(sums, ops::columns_between(keys, 0, 2)));
    }

protected:
    over_gates(Base one, Matrix matrix, Vector vector)
        : base(std::move(one)), w(std::move(matrix)), b(std::move(vector))
    {}
    const Self& self() const { return static_cast<const Self&>(*this); }

    /// The sums (F_i, 1), [B,S,2], at queries the first of which is the first-th.
    template <class Keys>
    static auto sums_at_queries(const Keys& keys, const lengths_view& real, std::size_t first, std::size_t queries)
    {
        if constexpr (detail::shares_rows<Keys>) {
            return ops::carried_to(detail::as_transient{}(keys.of),
                                   std::span<const std::size_t>(keys.sentence, real.batch()), real, first, queries);
        } else {
            return ops::carried_to(keys, std::span<const std::size_t>{}, real, first, queries);
        }
    }

private:
    template <class Own, class Inner>
    static over::past<Own, Inner> beside(Own own, Inner inner)
    {
        return {std::move(own), std::move(inner)};
    }

    /// The sums [B,2] at one query of a growing memory, whose rows lie apart.
    static auto sums_in_rows(const auto& memory, std::size_t step)
    {
        using keys = std::remove_cvref_t<decltype(memory.keys)>;
        using T = detail::element_of_rows<keys>;
        const std::size_t B = memory.batch, N = shape_of(memory.keys.of)[2];
        ops::carry_sums_op::require_columns(shape_of(memory.keys.of));
        T* const sums = transient_family::take<T>(2 * B);
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t n = memory.real[b], at = detail::number_in_sentence(step, n, memory.positions);
            const T* const row = memory.keys.of.row(detail::row_asked(memory.keys, b));
            sums[2 * b] = n == 0 ? T(0) : -row[std::min(at, n - 1) * N + 1];
            sums[2 * b + 1] = 1;
        }
        return transient<T, 2>(sums, {B, 2});
    }
};

}  // namespace heed::score
