// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <heed/ad/tape.hpp>
#include <heed/core/parameters.hpp>

namespace heed::inline HEED_TARGET::ad {

/// A parameter on a tape: its name, and a flat variable of its elements, [size].
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

/// Returns a module of the same kind with variables on the tape as parameters. No weight is copied: `module` must
/// outlive the recording and must not be moved.
template <class T, parameterized M>
auto lift(tape<T>& on, const M& module)
{
    return transform_parameters(module, detail::lifting_leaf<T>{on, nullptr});
}

/// As above; also adds each variable to `all`, in the order of for_each_parameter.
template <class T, parameterized M>
auto lift(tape<T>& on, const M& module, std::vector<named_variable<T>>& all)
{
    return transform_parameters(module, detail::lifting_leaf<T>{on, &all});
}

/// Fails to compile, with a single message: a tensor, of any shape, is not a module.
template <class T, tensor X>
    requires(!parameterized<X>)
auto lift(tape<T>& on, const X& x)
{
    static_assert(!tensor<X>, "heed: ad::lift takes a module with `parameters`; to make a single tensor a "
                              "variable, call `on.parameter(x)`");
    return on.parameter(x);
}

/// Deleted for temporaries: the variables would refer to destroyed weights.
template <class T, parameterized M>
auto lift(tape<T>& on, const M&& module) = delete;
template <class T, parameterized M>
auto lift(tape<T>& on, const M&& module, std::vector<named_variable<T>>& all) = delete;

}  // namespace heed::inline HEED_TARGET::ad
