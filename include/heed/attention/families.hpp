// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/attention/query.hpp>
#include <heed/attention/state.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/transient.hpp>

/// Which family of tensors computes a step, and how results leave the workspace.
namespace heed::detail {

/// A tensor's plain counterpart.
struct untaped {
    template <tensor X>
    auto operator()(const X& x) const
    {
        if constexpr (plain_tensor<X>) {
            return x;
        } else {
            return array<element_of<X>, rank_of<X>>{};
        }
    }
};

template <class Policy>
inline constexpr bool taped_policy =
    !std::is_same_v<Policy, decltype(map_parameters(std::declval<const Policy&>(), untaped{}))>;

struct replace_by_visited {
    visited operator()(const auto&) const { return {}; }
};

template <class State>
using replaced_by_visited = decltype(std::declval<const State&>().map(replace_by_visited{}));

/// Can the tensors of a state be reached one by one? Not without a `map` that applies f, as a beam needs.
template <class State>
concept mappable_state = hook::map<State, any_map> &&
    (holds_no_tensors<State> || !std::is_same_v<State, replaced_by_visited<State>>);

/// The same of both parts of an attention_state.
template <class State>
concept reachable_state = mappable_state<decltype(State::normalize)> && mappable_state<decltype(State::score)>;

template <class State>
concept taped_state =
    reachable_state<State> && !std::is_same_v<State, decltype(std::declval<const State&>().map(untaped{}))>;
template <class Query>
concept taped_query =
    mappable_query<Query> && !std::is_same_v<Query, decltype(map_query(std::declval<const Query&>(), untaped{}))>;
template <class Mask>
concept taped_mask = !plain_tensor<decltype(Mask::bias)>;

/// An owning copy; beside another tensor, of that one.
struct owned {
    auto operator()(const plain_tensor auto& x) const { return copy_of(view_of(x)); }
    auto operator()(const plain_tensor auto&, const plain_tensor auto& x) const { return copy_of(view_of(x)); }
};

/// Writes a tensor into one that the caller keeps.
template <class T, std::size_t N>
void assign(array<T, N>& to, const plain_tensor auto& from)
{
    fit(to, shape_of(from));
    const auto view = view_of(from);
    if (to.data() == view.data) return;
    // Each thread copies what its own cache still holds.
    parallel_for(view.size(), std::size_t{1} << 13, [&](std::size_t begin, std::size_t end, std::size_t) {
        std::copy(view.data + begin, view.data + end, to.data() + begin);
    });
}

/// The same for every tensor of a state. `map` shows members as constants; the state itself is not one.
struct assign_each {
    visited operator()(const auto& to, const plain_tensor auto& from) const
    {
        assign(const_cast<std::remove_cvref_t<decltype(to)>&>(to), from);
        return {};
    }
};
template <class State>
void assign_state(State& to, const auto& from)
{
    (void)to.map(assign_each{}, from);
}

}  // namespace heed::detail
