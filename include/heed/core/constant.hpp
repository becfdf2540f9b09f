// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/shared_tensor.hpp>
#include <heed/core/tensor.hpp>

/// Parts of a module that are neither trained nor saved.
namespace heed {

/// A tensor, or a module, that belongs to another module and is none of its parameters: a table that is computed, or
/// weights that stay as they are. It is a member of this type, and `parameters` passes it on:
///
///     template <class Matrix, class Table>
///     struct banded {
///         Matrix W;
///         Table near;
///         static auto parameters(auto& self, auto&& visit) { return mine::banded{visit("W", self.W), self.near}; }
///     };
///     mine::banded score{W, heed::constant{near}};
///
/// It is used like what it was made of. Of an array it is a shared_tensor: copies of it, those of a lifted module among
/// them, share the numbers.
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

}  // namespace detail

}  // namespace heed
