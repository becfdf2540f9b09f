// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

/// Traits of a normalizer that wraps another one: those of the inner one.
namespace heed::detail {

/// Is its gradient the derivative of what it computes?
template <class Inner>
consteval bool differentiable_inside()
{
    if constexpr (requires { Inner::differentiable; }) {
        return Inner::differentiable;
    } else {
        return true;
    }
}

/// Do its results depend on a row's place in the batch?
template <class Inner>
consteval bool random_inside()
{
    if constexpr (requires { Inner::random; }) {
        return Inner::random;
    } else {
        return false;
    }
}

/// Does its state of a position change in a step that does not show it that position?
template <class Inner>
consteval bool ages_inside()
{
    if constexpr (requires { Inner::ages; }) {
        return Inner::ages;
    } else {
        return false;
    }
}

/// Do its weights depend on the length of a row itself, and not only on which positions a query sees? For example, the
/// place of a window may.
template <class Inner>
consteval bool reads_length_inside()
{
    if constexpr (requires { Inner::reads_length; }) {
        return Inner::reads_length;
    } else {
        return false;
    }
}

/// Does it return the same weights for e + c as for e?
template <class Inner>
consteval bool offset_ignored_inside()
{
    if constexpr (requires { Inner::ignores_offset; }) {
        return Inner::ignores_offset;
    } else {
        return false;
    }
}

}  // namespace heed::detail
