// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include <heed/core/workspace_tensor.hpp>
#include <heed/ops/rotate.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query_numbers.hpp>
#include <heed/policy/score_hooks.hpp>
#include <heed/policy/state.hpp>
#include <heed/score/over.hpp>

namespace heed::inline HEED_TARGET::score {

/// The number of the current query. No tensors.
struct number_of_query {
    static constexpr bool holds_no_tensors = true;

    std::size_t query = 0;

    number_of_query map(auto&&, const auto&...) const { return *this; }
};

/// A score of queries and keys rotated by their positions, so that inner products depend on the distance alone
/// (rotary positions, RoPE).
///
///     e_{s,j} = score(R_s q_s, R_j k_j)                                   Su et al. 2021, eq. 16
///     R_p rotates each pair of dimensions by p · base^(−2m/N)
///
///     attention attend{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
///     score::rotary as_in_llama{score::scaled_dot{}, {10000, ops::turned_pairs::halves}};
///     score::rotary of_the_first_32{score::scaled_dot{}, {.width = 32}};
///
/// Keys are rotated once per batch, after the base has prepared them; `attention::extend` continues with the next
/// position. Queries and keys count from 0, regardless of padding; in a KV cache each sentence has its own position
/// (policy/query_numbers.hpp). `ops::rotate` rotates by arbitrary positions or tables. The rotated width is even. Heads
/// of a multi_head may share keys. No deviation. Throws shape_error for an odd width, or if the query does not have one
/// row for each sentence.
template <class Base>
struct rotary : over::score_adaptor<rotary<Base>, Base> {
    using over::score_adaptor<rotary<Base>, Base>::base;
    ops::rotation how{};

    static constexpr score_traits traits =
        traits_around_score<Base>([](score_traits& own) { own.prepares_alike = own.reads_query_position = true; });

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const
    {
        return ops::rotate(over::prepare(base, annotations, first), first, how);
    }

    auto init_state(const auto&) const { return number_of_query{}; }
    auto observe_query(const auto&, const auto& at) const { return number_of_query{at.step}; }
    auto observe_query(const auto&, const auto& at, const auto& memory) const
    {
        using keys = std::remove_cvref_t<decltype(memory.keys)>;
        if constexpr (detail::keys_grow<keys>) {
            using T = detail::element_of_rows<keys>;
            const std::size_t B = memory.batch;
            T* const numbers = workspace_family::take<T>(B);
            for (std::size_t b = 0; b < B; ++b) {
                numbers[b] = static_cast<T>(
                    detail::number_in_sentence(at.step, detail::next_position_of(memory, b), memory.next_position));
            }
            return score::row_state{workspace_tensor<T, 2>(numbers, {B, 1})};
        } else {
            return number_of_query{at.step};
        }
    }
    auto update_state(const auto&, const tensor auto&, const tensor auto&, const auto& at) const
    {
        return number_of_query{at.step};
    }

    auto query(const tensor auto& projected, const auto& state) const  // [B,A]
    {
        if constexpr (requires { state.state; }) {
            const auto numbers = view_of(state.state);
            const std::size_t B = numbers.shape[0];
            require_shape("score::rotary", "the projected query", shape_of(projected), {B, shape_of(projected)[1]},
                          "one row for each sentence of the memory");
            std::size_t* const positions = workspace_family::take<std::size_t>(B);
            std::transform(numbers.data, numbers.data + B, positions,
                           [](auto number) { return static_cast<std::size_t>(number); });
            return ops::rotate(projected, std::span<const std::size_t>(positions, B), how);
        } else {
            return ops::rotate(projected, state.query, how);
        }
    }
    auto query_all(const tensor auto& projected,
                   std::size_t first) const  // [B,S,A], from number `first` on
    {
        return ops::rotate(projected, first, how);
    }

    template <tensor Queries, tensor Keys>
        requires(over::scores_a_matrix<Base, Queries, Keys>)
    auto score_matrix(const Queries& projected, const Keys& keys, const over::queries_from& from) const
    {
        return over::score_matrix(base, query_all(projected, from.first), keys, from);
    }

    static auto parameters(auto& self, auto&& visit) { return score::rotary{visit("base", self.base), self.how}; }
};

template <class Base>
rotary(Base, ops::rotation = {}) -> rotary<Base>;

}  // namespace heed::inline HEED_TARGET::score
