// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/mistakes.hpp>
#include <heed/core/tensor.hpp>

/// How heed walks through the parameters of a policy, a layer or a model.
///
/// A type with parameters has one static member function. It shows each of them, by name, to a visitor, and builds an
/// object of the same kind from what the visitor returns:
///
///     static auto parameters(auto& self, auto&& visit)
///     {
///         return score::additive{visit("W", self.W), visit("U", self.U), visit("v", self.v)};
///     }
///
/// Counting, optimising and saving only look: their visitors return `visited`. Lifting onto a tape returns variables. A
/// member is a tensor, or has parameters itself.
namespace heed {

/// The result of a visitor that returns nothing.
struct visited {};

namespace detail {

/// Says what a member that `parameters` shows should be instead.
template <class X>
consteval bool check_parameter()
{
    constexpr bool module = std::is_class_v<X> && !lazy_expression<X> && !is_vector<X>;
    static_assert(!lazy_expression<X>, HEED_SAYS_LAZY);
    static_assert(!vector_of_numbers<X>, HEED_SAYS_VECTOR);
    static_assert(module || lazy_expression<X> || vector_of_numbers<X>,
                  "heed: `parameters` shows its visitor a member that is neither a tensor nor has `parameters` itself: "
                  "leave out what is not trained; `visit_each(\"layers\", self.layers, visit)` shows a std::vector of "
                  "modules one by one");
    return module;
}

/// Looks at the members that are shown, and at no more; lists the tensors among them.
struct looking_visitor {
    named_shapes* list = nullptr;

    auto operator()(std::string_view name, auto& member) const
    {
        if constexpr (tensor<decltype(member)>) {
            if (list != nullptr) {
                const auto shape = shape_of(member);
                list->add(name, shape.data(), shape.size());
            }
        } else {
            (void)check_parameter<std::remove_cvref_t<decltype(member)>>();
        }
        return visited{};
    }
};

/// Depends on the leaf alone, not on the module, so that modules share what is compiled for their parts. A leaf is
/// therefore a named type, not a lambda in a template of the module.
template <class Leaf>
struct walking_visitor {
    Leaf& leaf;
    std::string prefix;

    auto operator()(std::string_view name, auto& member) const
    {
        using type = std::remove_cvref_t<decltype(member)>;
        if constexpr (tensor<type>) {
            return leaf(path_to(name), member);
        } else if constexpr (check_parameter<type>()) {
            return type::parameters(member, walking_visitor{leaf, path_to(name, ".")});
        } else {
            return type(member);
        }
    }

private:
    std::string path_to(std::string_view name, const char* separator = "") const
    {
        std::string path = prefix;
        return path.append(name).append(separator);
    }
};

/// A leaf that only looks.
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

}  // namespace detail

/// A type whose parameters can be visited.
template <class M>
concept parameterised = requires(std::remove_cvref_t<M>& module)
{
    std::remove_cvref_t<M>::parameters(module, detail::looking_visitor{});
};

/// A module of the same kind whose parameters are leaf(name, tensor); names are dotted paths, "decoder.gru.W".
template <parameterised M, class Leaf>
auto transform_parameters(M& module, Leaf&& leaf, std::string prefix = {})
{
    return std::remove_cvref_t<M>::parameters(
        module, detail::walking_visitor<std::remove_reference_t<Leaf>>{leaf, std::move(prefix)});
}

namespace detail {

/// Walks without making names.
template <class Leaf>
struct nameless_visitor {
    const Leaf& leaf;

    auto operator()(std::string_view, auto& member) const
    {
        using type = std::remove_cvref_t<decltype(member)>;
        if constexpr (tensor<type>) {
            return leaf(member);
        } else if constexpr (check_parameter<type>()) {
            return type::parameters(member, *this);
        } else {
            return type(member);
        }
    }
};

}  // namespace detail

/// A module of the same kind whose parameters are leaf(tensor).
template <parameterised M, class Leaf>
auto map_parameters(M& module, const Leaf& leaf)
{
    return std::remove_cvref_t<M>::parameters(module, detail::nameless_visitor<Leaf>{leaf});
}

/// look(name, tensor) for every parameter, always in the same order.
template <parameterised M, class Look>
void for_each_parameter(M& module, Look&& look)
{
    transform_parameters(module, detail::looking_leaf<std::remove_reference_t<Look>>{look});
}

/// How many numbers all parameters have together.
template <parameterised M>
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
        all.push_back({name, {values.data, {values.size()}}});
    }
};

}  // namespace detail

/// All parameters of a module of T, in the order of for_each_parameter. Code that works on raw numbers walks this list
/// and is compiled once, not once per module.
template <class T, parameterised M>
std::vector<named_numbers<T>> numbers_of(M& module)
{
    std::vector<named_numbers<T>> all;
    for_each_parameter(module, detail::listing_look<T>{all});
    return all;
}

}  // namespace heed
