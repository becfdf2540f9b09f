// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <heed/core/diagnostics.hpp>
#include <heed/core/tensor.hpp>

namespace heed::inline HEED_TARGET {

/// A constant tensor that is passed on without copying numbers. Made from a view it is a view: the numbers must outlive
/// it. Made from an array it owns them, as does every copy: copies share the numbers.
template <class T, std::size_t N>
class shared_tensor {
public:
    shared_tensor() = default;
    shared_tensor(const tensor_view<const T, N>& x) : view_(x) {}
    shared_tensor(const tensor_view<T, N>& x) : view_(x) {}
    shared_tensor(array<T, N> x)
        : owned_(std::make_shared<const array<T, N>>(std::move(x))), view_(heed::view_of(*owned_))
    {}

    const tensor_view<const T, N>& view() const { return view_; }
    const T* data() const { return view_.data; }
    const shape_of_rank<N>& shape() const { return view_.shape; }
    std::size_t size() const { return view_.size(); }

    /// One number: `x(b, t, d)`.
    template <std::integral... Indices>
        requires(sizeof...(Indices) == N)
    const T& operator()(Indices... indices) const
    {
        std::size_t at = 0, axis = 0;
        ((at = at * view_.shape[axis++] + static_cast<std::size_t>(indices)), ...);
        return view_.data[at];
    }

private:
    std::shared_ptr<const array<T, N>> owned_;
    tensor_view<const T, N> view_;
};

template <class T, std::size_t N>
struct tensor_traits<shared_tensor<T, N>> : tensor_traits<tensor_view<T, N>> {};

namespace detail {

template <class X>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<array<T, N>> = true;

template <class X>
inline constexpr bool is_view = false;
template <class T, std::size_t N>
inline constexpr bool is_view<tensor_view<T, N>> = true;

/// The common type of several tensors of one rank and one element type. None, if the ranks differ or a tensor is on a
/// tape; different element types are a compile-time error.
template <class First, class... Rest>
struct joint_of {};
template <class First, class... Rest>
    requires((std::is_same_v<First, Rest> && ...))
struct joint_of<First, Rest...> {
    using type = First;
};
template <tensor First, tensor... Rest>
    requires(!(std::is_same_v<First, Rest> && ...) && owning_tensor<First> && (owning_tensor<Rest> && ...) &&
             ((rank_of<First> == rank_of<Rest> && std::is_same_v<element_of<First>, element_of<Rest>>)&&...))
struct joint_of<First, Rest...> {
    using type = std::conditional_t<is_view<First> && (is_view<Rest> && ...),
                                    tensor_view<const element_of<First>, rank_of<First>>,
                                    shared_tensor<element_of<First>, rank_of<First>>>;
};

template <tensor First, tensor... Rest>
    requires(owning_tensor<First> && (owning_tensor<Rest> && ...) && !one_number_type<First, Rest...>)
struct joint_of<First, Rest...> {
    static_assert(one_number_type<First, Rest...>, HEED_SAYS_NUMBERS);
    using type = First;
};

}  // namespace detail

/// The matrix type of a policy, for its deduction guide: the common type of the arguments. For views of constant and of
/// mutable numbers, a view of constant numbers; for views and arrays a shared_tensor, which owns a copy of the arrays.
///
///     template <class W, class U, class Vector>
///     additive(W, U, Vector) -> additive<joint_tensor<W, U>, Vector>;
template <class... X>
using joint_tensor = typename detail::joint_of<X...>::type;

}  // namespace heed::inline HEED_TARGET
