// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <heed/core/tensor.hpp>

/// How heed walks through the parameters of a policy, a layer or a model.
///
/// Whatever has parameters has one static member that shows each of them, by name, to a visitor, and builds a thing
/// of the same kind from what the visitor gives back:
///
///     static auto parameters(auto& self, auto&& visit)
///     {
///         return score::additive{visit("W", self.W), visit("U", self.U), visit("v", self.v)};
///     }
///
/// Counting, optimising and saving only look (they give `visited` back); lifting onto a tape gives back variables.
/// A member may be a tensor or again a thing with parameters.
namespace heed {

/// What a visitor gives back when it only looks.
struct visited {};

namespace detail {

struct looking_visitor {
    visited operator()(std::string_view, auto&) const { return {}; }
};

template <class Leaf>
struct walking_visitor {
    Leaf& leaf;
    std::string prefix;

    auto operator()(std::string_view name, auto& member) const
    {
        using type = std::remove_cvref_t<decltype(member)>;
        if constexpr (tensor<type>) {
            return leaf(prefix + std::string(name), member);
        } else {
            return type::parameters(member, walking_visitor{leaf, prefix + std::string(name) + "."});
        }
    }
};

}  // namespace detail

/// Something whose parameters can be walked through.
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

/// look(name, tensor) for every parameter, always in the same order.
template <parameterised M, class Look>
void for_each_parameter(M& module, Look&& look)
{
    transform_parameters(module, [&look](const std::string& name, auto& tensor) {
        look(name, tensor);
        return visited{};
    });
}

/// How many numbers the module has to learn.
template <parameterised M>
std::size_t parameter_count(const M& module)
{
    std::size_t count = 0;
    for_each_parameter(module, [&](const std::string&, const auto& tensor) {
        std::size_t size = 1;
        for (const std::size_t extent : shape_of(tensor)) size *= extent;
        count += size;
    });
    return count;
}

}  // namespace heed
