// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/attention/query_numbers.hpp>
#include <heed/attention/rows.hpp>
#include <heed/core/transient.hpp>
#include <heed/ops/all_pairs.hpp>
#include <heed/ops/carried_sums.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/inner_product.hpp>
#include <heed/score/over.hpp>

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

/// A score that fades with what was forgotten since: each position has a gate, and the score of a key falls by the
/// gates of all later positions up to the query's own (forgetting attention, FoX).
///
///     e'_{i,j} = e_{i,j} + D_{i,j},  D_{i,j} = Σ_{l=j+1..i} log f_l,  f_l = σ(w · x_l + b)
///                                             Lin, Nikishin, He and Courville 2025, section 3
///
///     attention attend{score::forgetting{score::scaled_dot{}, w, b}, normalize::softmax{}, combine::weighted_sum{}};
///
/// D_{i,j} = F_i − F_j with F_j = Σ_{l≤j} log f_l: keys are prepared with (1, −F_j) before the base's, so that an inner
/// product of queries (F_i, 1, q) is e + D, within tiles, too; other bases get D added. `attention::extend` carries the
/// sum on. x_l are the annotations.
///
/// Deviation: in a multi_head the annotations are those of the head, x W_K, so that each head's gate, with its own w
/// and b, reads the head's keys; in the paper and the authors' program it reads all of x. Their w starts as other
/// matrices do, and b at 0. What their "Pro" block has besides (norms, an output gate, shifted keys) is not part of
/// this.
///
/// For self-attention: the i-th query stands at the i-th position of the memory, or at the last one if there are fewer.
/// F_i shifts all scores of a query alike: softmax does not see it, but sigmoid, sinks and temporal normalizers do.
/// Meant with causal{}: later keys get more, not less. No positions are needed in words or scores. Lie it over all
/// other scores but `modified`. Weights per position only. F is rounded to the tensors' type, an error of 1e-4 at F =
/// −1000 in float.
template <class Base, class Matrix, class Vector>
struct forgetting {
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
                      "heed: score::forgetting adds one number for each position: its base has weights per position");
        static_assert(!detail::widens_keys_of<Base>(), "heed: score::forgetting over score::forgetting: one will do");
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
        using past = std::remove_cvref_t<decltype(now.base)>;
        using comparing = std::remove_cvref_t<decltype(over::innermost(base))>;
        if constexpr (known_to_kernels_as<comparing, kernels::inner_product_score> &&
                      !over::changes_keys<Base, std::remove_cvref_t<decltype(keys)>, past>()) {
            const auto asked = over::innermost(base).asking(over::query(base, projected, now.base));
            return ops::dot_each(ops::concat(now.sums, asked), keys);
        } else {
            const std::size_t N = shape_of(keys)[2];
            return ops::add_alike(over::match(base, projected, ops::columns_between(keys, 2, N), now.base),
                                  ops::dot_each(now.sums, ops::columns_between(keys, 0, 2)));
        }
    }
    auto operator()(const auto& query, const tensor auto& keys, const auto& now) const
    {
        return match(project(query), keys, now);
    }

    template <tensor Queries, tensor Keys>
        requires(over::matches_all<Base, Queries, Keys>)
    auto match_all(const Queries& queries, const Keys& keys, const over::queries_from& from) const  // [B·S,T]
    {
        const std::size_t N = shape_of(keys)[2];
        const auto sums = sums_at_queries(keys, from.real, from.first, shape_of(queries)[1]);
        return ops::add_alike(over::match_all(base, queries, ops::columns_between(keys, 2, N), from),
                              ops::dot_all(sums, ops::columns_between(keys, 0, 2)));
    }

    /// Queries [B,S,A] as they are multiplied with keys: (F_i, 1, q).
    auto asked_all(const tensor auto& asked, const auto& memory, std::size_t first) const
    {
        return ops::concat(sums_at_queries(memory.keys, memory.real, first, shape_of(asked)[1]), asked);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto base = visit("base", self.base);
        auto w = visit("w", self.w);
        auto b = visit("b", self.b);
        return score::forgetting<decltype(base), decltype(w), decltype(b)>{std::move(base), std::move(w), std::move(b)};
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
};

template <class Base, class Matrix, class Vector>
forgetting(Base, Matrix, Vector) -> forgetting<Base, Matrix, Vector>;

}  // namespace heed::score
