// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/family.hpp>
#include <heed/core/parameters.hpp>

/// Several mechanisms beside each other: of one kind in a std::vector, or of different kinds in a std::tuple.
namespace heed {

namespace detail {

template <class M>
std::size_t count_of(const std::vector<M>& several)
{
    return several.size();
}
template <class... M>
constexpr std::size_t count_of(const std::tuple<M...>&)
{
    return sizeof...(M);
}

template <class M>
const M& nth(const std::vector<M>& several, std::size_t i)
{
    return several[i];
}
template <class M>
M& nth(std::vector<M>& several, std::size_t i)
{
    return several[i];
}
template <class Tuple, std::size_t i>
auto& nth(Tuple& several, std::integral_constant<std::size_t, i>)
{
    return std::get<i>(several);
}

template <class M>
const M& first_of(const std::vector<M>& several)
{
    return several.front();
}
template <class... M>
const auto& first_of(const std::tuple<M...>& several)
{
    return std::get<0>(several);
}

/// The type of the first index: a constant for a tuple.
template <class Several>
struct index_of_first {
    using type = std::size_t;
};
template <class... M>
struct index_of_first<std::tuple<M...>> {
    using type = std::integral_constant<std::size_t, 0>;
};
template <class Several>
using first_index = typename index_of_first<Several>::type;

/// f(i) for each, from the first to the last: a std::vector of the results, or a std::tuple. For a tuple, i is a
/// constant.
template <class M, class F>
auto each_of(const std::vector<M>& several, F&& f)
{
    std::vector<decltype(f(std::size_t{0}))> results;
    results.reserve(several.size());
    for (std::size_t i = 0; i < several.size(); ++i) results.push_back(f(i));
    return results;
}
template <class... M, class F>
auto each_of(const std::tuple<M...>&, F&& f)
{
    return [&f]<std::size_t... i>(std::index_sequence<i...>)
    {
        return std::tuple<decltype(f(std::integral_constant<std::size_t, i>{}))...>{
            f(std::integral_constant<std::size_t, i>{})...};
    }
    (std::index_sequence_for<M...>{});
}

/// The same for what f does, without results.
template <class M, class F>
void for_each_of(const std::vector<M>& several, F&& f)
{
    for (std::size_t i = 0; i < several.size(); ++i) f(i);
}
template <class... M, class F>
void for_each_of(const std::tuple<M...>&, F&& f)
{
    [&f]<std::size_t... i>(std::index_sequence<i...>) { (f(std::integral_constant<std::size_t, i>{}), ...); }
    (std::index_sequence_for<M...>{});
}

/// The first tensor that is on a tape, or the last one.
template <class First, class... Rest>
const auto& taped_among(const First& first, const Rest&... rest)
{
    if constexpr (sizeof...(Rest) == 0 || !plain_tensor<First>) {
        return first;
    } else {
        return taped_among(rest...);
    }
}

/// get(x) of each as a std::vector of tensors of one family.
template <class M, class Get>
auto collect(const std::vector<M>& several, Get&& get)
{
    std::vector<std::remove_cvref_t<decltype(get(several[0]))>> all;
    all.reserve(several.size());
    for (const M& x : several) all.push_back(get(x));
    return all;
}
template <class... M, class Get>
auto collect(const std::tuple<M...>& several, Get&& get)
{
    return std::apply(
        [&get](const auto&... x) {
            const auto& beside = taped_among(get(x)...);
            return std::vector{same_family(beside, get(x))...};
        },
        several);
}

/// "no heads; give at least one", and the same number of each.
inline void require_some(const char* where, std::size_t count)
{
    if (count == 0) throw error(std::string(where) + ": there is none; give at least one");
}
inline void require_as_many(const char* where, const char* what, std::size_t is, std::size_t must)
{
    if (is != must) {
        throw shape_error(std::string(where) + ": " + what + " is for " + std::to_string(is) + " but there are " +
                          std::to_string(must) + "; take the one that this mechanism made");
    }
}

/// Their parameters, under "<name>.0.", "<name>.1." and so on.
template <class Several, class Visit>
auto parameters_of(const char* name, Several& several, Visit&& visit)
{
    return each_of(several, [&](auto i) {
        return visit(std::string(name) + "." + std::to_string(std::size_t{i}), nth(several, i));
    });
}

}  // namespace detail

/// What several mechanisms remember between steps; an ordinary value.
template <class States>
struct several_states {
    States of;             // one state for each
    std::size_t step = 0;  // how many queries were answered

    /// Each takes the one that it has become on a tape, see attention_state.
    template <class Taped>
        requires(!std::is_same_v<Taped, States>)
    several_states& operator=(const several_states<Taped>& taped)
    {
        detail::require_as_many("the states", "what is assigned", detail::count_of(taped.of), detail::count_of(of));
        detail::for_each_of(of, [&](auto i) { detail::nth(of, i) = detail::nth(taped.of, i); });
        step = taped.step;
        return *this;
    }

    /// The same with f applied to every tensor: how a beam selects hypotheses.
    auto map(auto&& f) const
    {
        auto mapped = detail::each_of(of, [&](auto i) { return detail::nth(of, i).map(f); });
        return several_states<decltype(mapped)>{std::move(mapped), step};
    }
};

/// What one batch offers to several mechanisms.
template <class Memories>
struct several_memories {
    Memories of;  // one memory for each

    std::size_t batch() const { return detail::first_of(of).batch(); }
    std::size_t positions() const { return detail::first_of(of).positions(); }
};

}  // namespace heed
