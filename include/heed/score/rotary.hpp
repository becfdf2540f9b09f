// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>

#include <heed/ops/rotate.hpp>
#include <heed/score/over.hpp>

namespace heed::score {

/// The number of the query that is answered. No tensors.
struct number_of_query {
    static constexpr bool holds_no_tensors = true;

    std::size_t query = 0;

    number_of_query map(auto&&, const auto&...) const { return *this; }
};

/// A score of queries and keys that are turned with their positions, so that inner products see only the distance
/// (rotary positions, RoPE).
///
///     e_{s,j} = score(R_s q_s, R_j k_j),  R_p turns each pair of numbers by p · base^(−2m/N)      Su et al. 2021, eq.
///     16
///
///     attention attend{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
///     score::rotary as_in_llama{score::scaled_dot{}, {10000, ops::turned_pairs::halves}};
///
/// Keys are turned once per batch, after the base has prepared them; `attention::extend` goes on with the next
/// position. Queries and keys count from 0, whatever the padding, and have an even width. No parameters beside the
/// base's; heads of a multi_head may share keys.
template <class Base>
struct rotary : over::another<rotary<Base>, Base> {
    using over::another<rotary<Base>, Base>::base;
    ops::rotation how{};

    static constexpr bool prepares_alike = true;

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const
    {
        return ops::rotate(over::prepare(base, annotations, first), first, how);
    }

    auto begin(const auto&) const { return number_of_query{}; }
    auto arrive(const auto&, const auto& at) const { return number_of_query{at.step}; }
    auto after(const auto& past, const tensor auto&, const tensor auto&, const auto&) const { return past.own(); }

    auto query(const tensor auto& projected, const auto& past) const  // [B,A]
    {
        return ops::rotate(projected, past.query, how);
    }
    auto query_all(const tensor auto& projected,
                   std::size_t first) const  // [B,S,A], the first of which is the first-th
    {
        return ops::rotate(projected, first, how);
    }

    template <tensor Queries, tensor Keys>
        requires(over::matches_all<Base, Queries, Keys>)
    auto match_all(const Queries& projected, const Keys& keys, const over::queries_from& from) const
    {
        return over::match_all(base, query_all(projected, from.first), keys, from);
    }

    static auto parameters(auto& self, auto&& visit) { return score::rotary{visit("base", self.base), self.how}; }
};

template <class Base>
rotary(Base) -> rotary<Base>;
template <class Base>
rotary(Base, ops::rotation) -> rotary<Base>;

}  // namespace heed::score
