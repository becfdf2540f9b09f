// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <heed/ad/tape.hpp>
#include <heed/core/parameters.hpp>

namespace heed::inline HEED_TARGET::ad {

/// A parameter on a tape: its name, and a variable of its numbers in one row, [size].
template <class T>
struct named_variable {
    std::string name;
    var<T, 1> numbers;
};

namespace detail {

template <class T>
struct lifting_leaf {
    tape<T>& on;
    std::vector<named_variable<T>>* all;

    auto operator()(const std::string& name, const auto& tensor) const
    {
        const auto x = on.parameter(tensor);
        if (all != nullptr) all->push_back({name, {on, x.slot(), {x.size()}}});
        return x;
    }
};

}  // namespace detail

/// A module of the same kind whose parameters are variables on the tape. No weight is copied: the module must stay
/// alive and unmoved as long as the recording.
template <class T, parameterised M>
auto lift(tape<T>& on, const M& module)
{
    return transform_parameters(module, detail::lifting_leaf<T>{on, nullptr});
}

/// The same, and each variable is added to `all`, in the order of for_each_parameter.
template <class T, parameterised M>
auto lift(tape<T>& on, const M& module, std::vector<named_variable<T>>& all)
{
    return transform_parameters(module, detail::lifting_leaf<T>{on, &all});
}

/// Refused, in one sentence: a tensor is no module.
template <class T, tensor X>
    requires(!parameterised<X>)
auto lift(tape<T>& on, const X& x)
{
    static_assert(!tensor<X>,
                  "heed: ad::lift takes a module, whose `parameters` show its tensors; one tensor becomes a "
                  "variable by `on.parameter(x)`");
    return on.parameter(x);
}

/// Not of a temporary: the variables would refer to weights that are gone.
template <class T, parameterised M>
auto lift(tape<T>& on, const M&& module) = delete;
template <class T, parameterised M>
auto lift(tape<T>& on, const M&& module, std::vector<named_variable<T>>& all) = delete;

}  // namespace heed::inline HEED_TARGET::ad
