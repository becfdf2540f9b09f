// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/diagnostics.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/core/tensor.hpp>

/// Visits the parameters of a policy, a layer or a model.
///
/// A type with parameters has one static member function. It passes each parameter, by name, to a visitor, and builds
/// an object of the same kind from the visitor's results:
///
///     static auto parameters(auto& self, auto&& visit)
///     {
///         return score::additive{visit("W", self.W), visit("U", self.U), visit("v", self.v)};
///     }
///
/// For counting, optimizing and saving, the visitors return `visited`. Lifting onto a tape returns variables.
///
/// A member is a tensor, or has parameters itself, or is a container of such members: a std::vector, std::array or
/// std::tuple, whose elements are "layers.0", "layers.1" and so on, or a std::optional or std::unique_ptr, whose
/// content has the member's name. The result is of the same kind: for a std::vector, a std::vector of the visitor's
/// results.
///
/// The compiler rejects a tensor, or a module with parameters, that is not visited, since it would be neither trained
/// nor saved, unless it is a heed::constant.
namespace heed::inline HEED_TARGET {

/// A tensor or module that belongs to another module but is not trained: a computed table, or fixed weights. Declare
/// the member with this type; `parameters` passes it on:
///
///     template <class Matrix, class Table>
///     struct banded {
///         Matrix W;
///         Table near;
///         static auto parameters(auto& self, auto&& visit) { return mine::banded{visit("W", self.W), self.near}; }
///     };
///     mine::banded score{W, heed::constant{near}};
///
/// It is used like the wrapped object. An array becomes a shared_tensor: its copies, including those of a lifted
/// module, share the numbers.
template <class X>
struct constant : X {
    constant() = default;
    constant(X of) : X(std::move(of)) {}
    template <class Y>
        requires(!std::is_same_v<std::remove_cvref_t<Y>, X> && std::is_convertible_v<Y, X>)
    constant(Y&& of) : X(std::forward<Y>(of)) {}
};
template <class T, std::size_t N>
constant(array<T, N>) -> constant<shared_tensor<T, N>>;

template <tensor X>
struct tensor_traits<constant<X>> : tensor_traits<X> {};

namespace detail {

template <class X>
inline constexpr bool is_constant = false;
template <class X>
inline constexpr bool is_constant<constant<X>> = true;

// The types of a class's members: a structured binding finds those of an aggregate; template arguments replace those of
// any other class template. Other classes are not searched.

template <class... Member>
struct list_of_types {};

/// A list of types.
template <class... X>
constexpr list_of_types<std::remove_cvref_t<X>...> types_of(X&...)
{
    return {};
}

/// Converts only to the base classes of X.
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

/// The largest number of members up to sizeof...(at) that initialize an X; 0: none. The search goes from many to few:
/// fewer would use a member's default, which need not compile for every type of a template (`Bias bias{0};` where Bias
/// is a variable).
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

/// The number of members of an aggregate. 0 if a member does not convert from `anything`, if there are base classes,
/// which a structured binding does not take, or more than 16 members.
template <class X>
consteval std::size_t members_counted()
{
    if constexpr (std::is_aggregate_v<X> && !std::is_empty_v<X> && !std::is_array_v<X>) {
        if constexpr (!requires { X{base_of<X>{}}; }) {
            // A member has at least one byte, unless it is [[no_unique_address]]; fewer attempts save time.
            constexpr std::size_t bytes = sizeof(X) < 16 ? sizeof(X) : 16;
            constexpr std::size_t count = detail::members_up_to<X>(std::make_index_sequence<bytes + 1>{});
            if constexpr (count <= bytes) {
                return count;
            } else if constexpr (bytes < 16) {
                constexpr std::size_t more = detail::members_up_to<X>(std::make_index_sequence<17>{});
                return more > 16 ? 0 : more;
            }
        }
    }
    return 0;
}

/// The types of the first `count` members of an aggregate.
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

}  // namespace detail

/// The result of a visitor that returns nothing.
struct visited {};

namespace detail {

/// The stored form of a number argument: a double, which is fixed, or a tensor, which is trained.
template <class X>
using double_or_tensor = std::conditional_t<std::is_arithmetic_v<X>, double, X>;

/// The tensor as `visit` returns it, or the double.
template <class X>
auto visit_if_tensor(auto& visit, const char* name, X& x)
{
    if constexpr (std::is_arithmetic_v<X>) {
        return double{x};
    } else {
        return visit(name, x);
    }
}

/// Is a member a container of others?
template <class X>
inline constexpr bool holds_members_of = false;
template <class M>
inline constexpr bool holds_members_of<std::vector<M>> = !vector_of_numbers<std::vector<M>>;
template <class M, std::size_t N>
inline constexpr bool holds_members_of<std::array<M, N>> = true;
template <class... M>
inline constexpr bool holds_members_of<std::tuple<M...>> = true;
template <class M>
inline constexpr bool holds_members_of<std::optional<M>> = true;
template <class M>
inline constexpr bool holds_members_of<std::unique_ptr<M>> = true;
template <class X>
concept holds_members = holds_members_of<X>;

/// visitor(name, member) of each element of `several`, "layers.0" and so on, in a container of the same kind.
auto visit_members(std::string_view name, auto& several, const auto& visitor)
{
    using X = std::remove_cvref_t<decltype(several)>;
    [[maybe_unused]] const auto visit = [&](std::size_t i, auto& member) -> decltype(auto) {
        return visitor(std::string(name).append(".").append(std::to_string(i)), member);
    };
    if constexpr (is_vector<X>) {
        std::vector<decltype(visitor(name, several[0]))> results;
        results.reserve(several.size());
        for (std::size_t i = 0; i < several.size(); ++i) results.push_back(visit(i, several[i]));
        return results;
    } else if constexpr (requires { several[0]; }) {
        return [&]<std::size_t... i>(std::index_sequence<i...>)
        {
            return std::array<decltype(visitor(name, several[0])), sizeof...(i)>{visit(i, several[i])...};
        }
        (std::make_index_sequence<std::tuple_size_v<X>>{});
    } else if constexpr (requires { std::tuple_size<X>::value; }) {
        return [&]<std::size_t... i>(std::index_sequence<i...>)
        {
            return std::tuple<decltype(visitor(name, std::get<i>(several)))...>{visit(i, std::get<i>(several))...};
        }
        (std::make_index_sequence<std::tuple_size_v<X>>{});
    } else if constexpr (requires { several.get(); }) {  // the object behind a constant module is constant as well
        using M = typename X::element_type;
        std::conditional_t<std::is_const_v<std::remove_reference_t<decltype(several)>>, const M, M>* const to =
            several.get();
        using result = decltype(visitor(name, *to));
        return to == nullptr ? std::unique_ptr<result>{} : std::make_unique<result>(visitor(name, *to));
    } else {
        std::optional<decltype(visitor(name, *several))> result;
        if (several) result.emplace(visitor(name, *several));
        return result;
    }
}

#define HEED_SAYS_NOT_SHOWN                                                                                            \
    "heed: `parameters` does not visit a tensor, or a module with parameters, which would be neither trained nor "     \
    "saved: visit it, `visit(\"b\", self.b)`, or make the member a constant, "                                         \
    "`mine::policy{W, heed::constant{b}}`"
#define HEED_SAYS_NOT_A_MEMBER                                                                                         \
    "heed: `parameters` returns a constant for a member that is not a constant in the module: build the module with "  \
    "one, `mine::policy{W, heed::constant{b}}`, and let `parameters` pass it on"

/// Reports the required form of a member that `parameters` visits incorrectly.
template <class X>
consteval bool check_parameter()
{
    constexpr bool module = std::is_class_v<X> && !lazy_expression<X> && !vector_of_numbers<X>;
    static_assert(!lazy_expression<X>, HEED_SAYS_LAZY);
    static_assert(!vector_of_numbers<X>, HEED_SAYS_VECTOR);
    static_assert(
        module || lazy_expression<X> || vector_of_numbers<X>,
        "heed: `parameters` visits a member that is neither a tensor nor has `parameters` itself: "
        "omit members that are not trained; visit a std::vector, array, tuple, optional or unique_ptr of tensors or "
        "modules as a whole");
    return module;
}

/// Visits exactly the members that are shown; lists the tensors among them.
struct looking_visitor {
    named_shapes* list = nullptr;

    auto operator()(std::string_view name, auto& member) const
    {
        if constexpr (tensor<decltype(member)>) {
            if (list != nullptr) {
                const auto shape = shape_of(member);
                list->add(name, shape.data(), shape.size());
            }
        } else if constexpr (holds_members<std::remove_cvref_t<decltype(member)>>) {
            // The list keeps views of names, so everything in a member has the name of the member.
            return visit_members(name, member, [&](std::string_view, auto& each) { return (*this)(name, each); });
        } else {
            (void)check_parameter<std::remove_cvref_t<decltype(member)>>();
        }
        if constexpr (!holds_members<std::remove_cvref_t<decltype(member)>>) return visited{};
    }
};

}  // namespace detail

/// A type with a `parameters` function.
template <class M>
concept parameterized = requires(std::remove_cvref_t<M>& module)
{
    std::remove_cvref_t<M>::parameters(module, detail::looking_visitor{});
};

namespace detail {

/// Passes tensors, with their paths if `named`, to a leaf. The leaf is a named type, not a lambda in a template of the
/// module, so that modules share the code that is compiled for their parts.
template <class Leaf, bool named = true>
struct walking_visitor {
    struct no_path {};

    Leaf& leaf;
    std::conditional_t<named, std::string, no_path> prefix{};

    auto operator()(std::string_view name, auto& member) const
    {
        using type = std::remove_cvref_t<decltype(member)>;
        if constexpr (tensor<type> && named) {
            return leaf(path_to(name), member);
        } else if constexpr (tensor<type>) {
            return leaf(member);
        } else if constexpr (holds_members<type>) {
            return visit_members(named ? name : "", member, *this);
        } else if constexpr (check_parameter<type>()) {
            return type::parameters(member, walking_visitor{leaf, path_to(name, ".")});
        } else {
            return type(member);
        }
    }

private:
    auto path_to([[maybe_unused]] std::string_view name, [[maybe_unused]] const char* separator = "") const
    {
        auto path = prefix;
        if constexpr (named) path.append(name).append(separator);
        return path;
    }
};

/// A leaf that returns nothing.
template <class Look>
struct looking_leaf {
    Look& look;

    visited operator()(const std::string& name, auto& tensor) const
    {
        look(name, tensor);
        return {};
    }
};

struct counting_look {
    std::size_t count = 0;

    void operator()(const std::string&, const tensor auto& x) { count += view_of(x).size(); }
};

struct visited_leaf {
    visited operator()(const tensor auto&) const { return {}; }
};

/// The rest of a module after every tensor that it shows, including those of nested modules, is replaced with
/// `visited`.
template <class M>
using looked_at =
    decltype(M::parameters(std::declval<M&>(), walking_visitor<const visited_leaf, false>{visited_leaf{}}));

/// Is a part of this type `visited`? Then it was shown.
template <class X>
consteval bool any_shown();

template <class... X>
consteval bool any_shown_of(list_of_types<X...>)
{
    return (detail::any_shown<std::remove_cvref_t<X>>() || ...);
}

template <class X>
consteval bool any_shown()
{
    if constexpr (std::is_same_v<X, visited> || tensor<X>) {
        return std::is_same_v<X, visited>;
    } else if constexpr (std::is_same_v<typename template_arguments<X>::type, list_of_types<>>) {
        return std::is_class_v<X> && detail::any_shown_of(detail::members_known<X>());
    } else {
        return detail::any_shown_of(typename template_arguments<X>::type{});
    }
}

/// Is this member of such a rest a tensor that was not shown, or does it contain one?
template <class X>
consteval bool not_shown();

template <class... X>
consteval bool any_not_shown(list_of_types<X...>)
{
    return (detail::not_shown<std::remove_cvref_t<X>>() || ...);
}

template <class X>
consteval bool not_shown()
{
    if constexpr (is_constant<X>) {
        return false;
    } else if constexpr (tensor<X>) {
        return owning_tensor<X>;
    } else if constexpr (holds_members<X>) {
        return detail::any_not_shown(typename template_arguments<X>::type{});
    } else if constexpr (!std::is_class_v<X>) {
        return false;
    } else if constexpr (any_shown<X>()) {
        return detail::any_not_shown(detail::members_known<X>());
    } else if constexpr (requires { typename looked_at<X>; }) {  // a module: does it have parameters?
        return any_shown<looked_at<X>>() || detail::any_not_shown(detail::members_known<X>());
    } else {
        return false;
    }
}

template <class... X>
consteval std::size_t constants_among(list_of_types<X...>)
{
    return (std::size_t{is_constant<X>} + ... + 0);
}

/// Does a module show all of its tensors, except for constants?
template <class M>
consteval bool shows_all()
{
    using rest = looked_at<M>;
    if constexpr (std::is_class_v<rest>) {
        using left = decltype(detail::members_known<rest>());
        constexpr bool all = !detail::any_not_shown(left{});
        static_assert(all, HEED_SAYS_NOT_SHOWN);
        if constexpr (constexpr std::size_t constants = detail::constants_among(left{}); constants > 0) {
            constexpr bool marked = constants <= detail::constants_among(detail::members_known<M>());
            static_assert(marked, HEED_SAYS_NOT_A_MEMBER);
            return all && marked;
        } else {
            return all;
        }
    } else {
        return true;
    }
}

}  // namespace detail

/// Rebuilds a module with leaf(name, tensor) for each parameter; names are dotted paths, "decoder.gru.W".
template <parameterized M, class Leaf>
auto transform_parameters(M& module, Leaf&& leaf, std::string prefix = {})
{
    (void)detail::shows_all<std::remove_cvref_t<M>>();
    return std::remove_cvref_t<M>::parameters(
        module, detail::walking_visitor<std::remove_reference_t<Leaf>>{leaf, std::move(prefix)});
}

/// Rebuilds a module with leaf(tensor) for each parameter.
template <parameterized M, class Leaf>
auto map_parameters(M& module, const Leaf& leaf)
{
    (void)detail::shows_all<std::remove_cvref_t<M>>();
    return std::remove_cvref_t<M>::parameters(module, detail::walking_visitor<const Leaf, false>{leaf});
}

/// look(name, tensor) for every parameter, always in the same order.
template <parameterized M, class Look>
void for_each_parameter(M& module, Look&& look)
{
    transform_parameters(module, detail::looking_leaf<std::remove_reference_t<Look>>{look});
}

/// The total number of elements in all parameters.
template <parameterized M>
std::size_t parameter_count(const M& module)
{
    detail::counting_look look;
    for_each_parameter(module, look);
    return look.count;
}

/// A parameter of any shape: its name, and its numbers in one row, [size].
template <class T>
struct named_numbers {
    std::string name;
    tensor_view<T, 1> numbers;
};

namespace detail {

template <class T>
struct listing_look {
    std::vector<named_numbers<T>>& all;

    void operator()(const std::string& name, tensor auto& x) const
    {
        const auto values = view_of(x);
        constexpr bool constant = !std::is_const_v<T> && std::is_const_v<std::remove_pointer_t<decltype(values.data)>>;
        static_assert(!constant, "heed: a parameter is a view of constant numbers, which no optimizer may change: view "
                                 "numbers that are not const, or omit the view from `parameters`");
        if constexpr (!constant) all.push_back({name, {values.data, {values.size()}}});
    }
};

}  // namespace detail

/// All parameters of a module of T, in the order of for_each_parameter. Code that works on raw numbers iterates over
/// this list and is compiled once, not once per module.
template <class T, parameterized M>
std::vector<named_numbers<T>> numbers_of(M& module)
{
    std::vector<named_numbers<T>> all;
    for_each_parameter(module, detail::listing_look<T>{all});
    return all;
}

}  // namespace heed::inline HEED_TARGET
