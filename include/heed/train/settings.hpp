// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/core/parameters.hpp>

namespace heed::inline HEED_TARGET::train {

/// Calls f(number) for each numeric member of an optimizer's settings, in order, for checkpoints. `Settings` is an
/// aggregate of up to eight members.
template <class Settings, class F>
void each_number(Settings& settings, F f)
{
    using S = std::remove_const_t<Settings>;
    constexpr std::size_t count = heed::detail::members_counted<S>();
    static_assert(std::is_empty_v<S> || (count > 0 && count <= 8),
                  "heed: a checkpoint stores the numeric settings of an optimizer: make the settings of your "
                  "rule a struct of up to eight members, without constructors");
    const auto visit = [&f](auto&... members) {
        const auto one = [&f](auto& member) {
            if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(member)>>) f(member);
        };
        (one(members), ...);
    };
    if constexpr (count == 0) {}
#define HEED_VISIT(n, ...)                                                                                             \
    else if constexpr (count == n)                                                                                     \
    {                                                                                                                  \
        auto& [__VA_ARGS__] = settings;                                                                                \
        visit(__VA_ARGS__);                                                                                            \
    }
    HEED_VISIT(1, a)
    HEED_VISIT(2, a, b)
    HEED_VISIT(3, a, b, c)
    HEED_VISIT(4, a, b, c, d)
    HEED_VISIT(5, a, b, c, d, e)
    HEED_VISIT(6, a, b, c, d, e, g)
    HEED_VISIT(7, a, b, c, d, e, g, h)
    HEED_VISIT(8, a, b, c, d, e, g, h, i)
#undef HEED_VISIT
}

}  // namespace heed::inline HEED_TARGET::train
