// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/cxx20.hpp>

/// The numbers among the settings of an optimiser's rule, for checkpoints: what a struct of settings, such as
/// kernels::adam_settings, need not list itself.
namespace heed::train {

namespace detail {

/// Converts to whatever a member is. Never evaluated.
struct anything {
    template <class T>
    operator T() const;
};

template <class S, std::size_t... I>
consteval bool takes(std::index_sequence<I...>)
{
    return requires { S{(static_cast<void>(I), anything{})...}; };
}

/// How many members an aggregate has, from 0 to 8; -1 for other types.
template <class S, int most = 9>
consteval int members_in()
{
    if constexpr (!std::is_aggregate_v<S> || most == 0) {
        return -1;
    } else if constexpr (std::is_empty_v<S>) {
        return 0;
    } else if constexpr (detail::takes<S>(std::make_index_sequence<most>())) {
        return most < 9 ? most : -1;
    } else {
        return detail::members_in<S, most - 1>();
    }
}

template <class F, class... Members>
void visit_numbers(F& f, Members&... members)
{
    const auto visit = [&f](auto& member) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(member)>>) f(member);
    };
    (visit(members), ...);
}

}  // namespace detail

/// f(number) for each member that is a number, in their order; others, such as the function that says which parameters
/// decay, are the program's own. `Settings` is an aggregate of up to eight members.
template <class Settings, class F>
void each_number(Settings& settings, F f)
{
    constexpr int count = detail::members_in<std::remove_const_t<Settings>>();
    static_assert(count >= 0,
                  "heed: a checkpoint keeps the numbers among an optimiser's settings: make those of a rule "
                  "of your own a struct of up to eight members, without constructors");
    if constexpr (count == 1) {
        auto& [a] = settings;
        detail::visit_numbers(f, a);
    } else if constexpr (count == 2) {
        auto& [a, b] = settings;
        detail::visit_numbers(f, a, b);
    } else if constexpr (count == 3) {
        auto& [a, b, c] = settings;
        detail::visit_numbers(f, a, b, c);
    } else if constexpr (count == 4) {
        auto& [a, b, c, d] = settings;
        detail::visit_numbers(f, a, b, c, d);
    } else if constexpr (count == 5) {
        auto& [a, b, c, d, e] = settings;
        detail::visit_numbers(f, a, b, c, d, e);
    } else if constexpr (count == 6) {
        auto& [a, b, c, d, e, g] = settings;
        detail::visit_numbers(f, a, b, c, d, e, g);
    } else if constexpr (count == 7) {
        auto& [a, b, c, d, e, g, h] = settings;
        detail::visit_numbers(f, a, b, c, d, e, g, h);
    } else if constexpr (count == 8) {
        auto& [a, b, c, d, e, g, h, i] = settings;
        detail::visit_numbers(f, a, b, c, d, e, g, h, i);
    }
}

}  // namespace heed::train
