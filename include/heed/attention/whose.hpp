// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <type_traits>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>

/// Whose tensor does not fit. An operation deep inside of a policy knows that x [2,5] does not fit a matrix [6,4];
/// where attention calls the policy it is known that x was the query:
///
///     score::additive: the query [2,5] does not fit W [6,4], U [8,4], v [4] (linear: …)
///
/// The calls are function-try-blocks: nothing is done unless an operation throws.
namespace heed::detail {

/// A tensor, and what it is there: "the query". Of what is no tensor, the name alone.
struct named : named_shape {
    template <class X>
    [[gnu::noinline, gnu::cold]] named(const char* what, const X& x)
    {
        if constexpr (tensor<X>) {
            const auto extents = shape_of(x);
            named_shape::operator=({what, extents.data(), extents.size()});
        } else {
            named_shape::operator=({what, nullptr, 0});
        }
    }
};

/// Throws an error that names the policy, the first of these tensors, and what it should fit: the others and the
/// policy's own parameters; unless `found` names a policy already.
template <class Policy>
[[noreturn, gnu::noinline, gnu::cold]] void throw_whose(const shape_error& found, const Policy& policy,
                                                        std::initializer_list<named_shape> those)
{
    named_shapes tensors(those);
    if constexpr (!std::is_empty_v<Policy> && parameterised<Policy>)
        (void)Policy::parameters(const_cast<Policy&>(policy), looking_visitor{&tensors});
    throw_named_shape_error(found, __PRETTY_FUNCTION__, tensors);
}

}  // namespace heed::detail
