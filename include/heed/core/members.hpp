// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include <heed/core/constant.hpp>
#include <heed/core/tensor.hpp>

/// The types of an object's members, of what is known of them when it is compiled: those of an aggregate by a
/// structured binding, those of any other class template by its template arguments. What is neither, such as a class
/// with a constructor that is no template, is not looked into.
namespace heed::detail {

template <class... Member>
struct list_of_types {};

/// The types of these.
template <class... X>
constexpr list_of_types<std::remove_cvref_t<X>...> types_of(X&...)
{
    return {};
}

/// Converts to the base classes of X alone.
template <class X>
struct base_of {
    template <class B>
        requires(std::is_base_of_v<B, X> && !std::is_same_v<B, X>)
    operator B() const { std::abort(); }
};

/// Converts to anything.
struct anything {
    template <class T>
    operator T() const
    {
        std::abort();  // it is never called; clang++ wants a body for types without linkage
    }
};
template <std::size_t>
using anything_at = anything;

/// The largest number of members up to sizeof...(at) that initialize an X; 0: none.
///
/// From many to few: with as many as X has, no member's default is looked at, which need not compile for every type of
/// a template (`Bias bias{0};` where Bias is a variable).
template <class X, std::size_t... at>
consteval std::size_t members_up_to(std::index_sequence<at...>)
{
    if constexpr (sizeof...(at) == 0) {
        return 0;
    } else if constexpr (requires { X{anything_at<at>{}...}; }) {
        return sizeof...(at);
    } else {
        return detail::members_up_to<X>(std::make_index_sequence<sizeof...(at) - 1>{});
    }
}

/// How many members has an aggregate? 0 for one that is not looked into: where a member does not take `anything`, where
/// there are base classes, which a structured binding does not take, and where there are more than 16.
template <class X>
consteval std::size_t members_counted()
{
    if constexpr (std::is_aggregate_v<X> && !std::is_empty_v<X> && !std::is_array_v<X>) {
        if constexpr (!requires { X{base_of<X>{}}; }) {
            constexpr std::size_t count = detail::members_up_to<X>(std::make_index_sequence<17>{});
            return count > 16 ? 0 : count;
        }
    }
    return 0;
}

/// The types of the first members of an aggregate that has so many.
template <std::size_t count, class X>
auto members_bound(X& x)
{
    if constexpr (count == 0) { return list_of_types<>{}; }
#define HEED_BIND(n, ...)                                                                                              \
    else if constexpr (count == n)                                                                                     \
    {                                                                                                                  \
        auto& [__VA_ARGS__] = x;                                                                                       \
        return detail::types_of(__VA_ARGS__);                                                                          \
    }
    HEED_BIND(1, a)
    HEED_BIND(2, a, b)
    HEED_BIND(3, a, b, c)
    HEED_BIND(4, a, b, c, d)
    HEED_BIND(5, a, b, c, d, e)
    HEED_BIND(6, a, b, c, d, e, f)
    HEED_BIND(7, a, b, c, d, e, f, g)
    HEED_BIND(8, a, b, c, d, e, f, g, h)
    HEED_BIND(9, a, b, c, d, e, f, g, h, i)
    HEED_BIND(10, a, b, c, d, e, f, g, h, i, j)
    HEED_BIND(11, a, b, c, d, e, f, g, h, i, j, k)
    HEED_BIND(12, a, b, c, d, e, f, g, h, i, j, k, l)
    HEED_BIND(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
    HEED_BIND(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
    HEED_BIND(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
    HEED_BIND(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
#undef HEED_BIND
}

template <class X>
struct template_arguments {
    using type = list_of_types<>;
};
template <template <class...> class X, class... A>
struct template_arguments<X<A...>> {
    using type = list_of_types<A...>;
};

template <template <class, std::size_t> class X, class A, std::size_t N>
struct template_arguments<X<A, N>> {
    using type = list_of_types<A>;
};

template <class X>
consteval auto members_known()
{
    if constexpr (constexpr std::size_t count = detail::members_counted<X>(); count > 0) {
        return decltype(detail::members_bound<count>(std::declval<X&>())){};
    } else {
        return typename template_arguments<X>::type{};
    }
}

}  // namespace heed::detail
