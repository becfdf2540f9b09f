// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/core/mask.hpp>
#include <heed/core/parameters.hpp>
#include <heed/policy/hooks.hpp>

/// The states of policies: structs with a member `map(f, others...)` that applies f to each tensor.
namespace heed::inline HEED_TARGET {

/// The state of a stateless normalizer.
struct no_state {
    no_state map(auto&&, const auto&...) const { return {}; }
};

/// The state of a stateless score. A distinct type, so that two empty members can share an address.
struct no_score_state {
    no_score_state map(auto&&, const auto&...) const { return {}; }
};

/// Does f, passed to the `map` of a state, apply only to tensors with positions? Then the state leaves tensors without
/// positions, such as [B,R], unchanged.
template <class F>
concept spares_rows = requires
{
    std::remove_cvref_t<F>::spares_rows;
};

/// Does f cut windows `f.where` out of tensors with positions? Then the state also stores where its positions begin.
template <class F>
concept cuts_out_windows = requires
{
    requires std::is_same_v<std::remove_cvref_t<decltype(std::declval<const std::remove_cvref_t<F>&>().where)>,
                            window_view>;
};

namespace detail {

/// Is this state the same for all rows, so that `map` need not apply f? Such a state is empty, or declares `static
/// constexpr bool holds_no_tensors = true;`.
template <class State>
inline constexpr bool holds_no_tensors = std::is_empty_v<State>;
template <class State>
    requires requires { State::holds_no_tensors; }
inline constexpr bool holds_no_tensors<State> = State::holds_no_tensors;

struct any_map {
    auto operator()(const auto& x, const auto&...) const { return x; }
};

struct replace_by_visited {
    visited operator()(const auto&) const { return {}; }
};

template <class State>
using replaced_by_visited = decltype(std::declval<const State&>().map(replace_by_visited{}));

/// Can the tensors of a state be visited one by one? This requires a `map` that applies f, as beam search needs.
template <class State>
concept mappable_state = hook::map<State, any_map> &&
    (holds_no_tensors<State> || !std::is_same_v<State, replaced_by_visited<State>>);

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
