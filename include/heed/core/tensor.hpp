// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

// The only file that includes xtensor. xtensor >= 0.26 moved its headers into folders.
#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xtensor.hpp>
#elif __has_include(<xtensor/xtensor.hpp>)
#include <xtensor/xtensor.hpp>
#else
#error "heed needs xtensor >= 0.24: install libxtensor-dev, or add its include folder"
#endif

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include <heed/core/errors.hpp>

/// Tensors. heed stores its data in xtensor's owning row-major containers; its kernels read plain memory through
/// `tensor_view`.
///
/// Three families of tensors run through the same policies: owning tensors (this file), workspace tensors in a thread's
/// workspace (core/workspace_tensor.hpp), and taped tensors (`ad::var`). Operations use only `tensor_traits`, so that
/// core does not depend on the tape.
namespace heed::inline HEED_TARGET {

static_assert(XTENSOR_DEFAULT_LAYOUT == xt::layout_type::row_major,
              "heed: tensors are row-major; do not change XTENSOR_DEFAULT_LAYOUT");

/// An owning row-major tensor with elements T and N axes.
template <class T, std::size_t N>
using array = xt::xtensor<T, N>;

/// The sizes of N axes, outermost first.
template <std::size_t N>
using shape_of_rank = std::array<std::size_t, N>;

/// Plain contiguous row-major memory with a shape; owns nothing.
template <class T, std::size_t N>
struct tensor_view {
    T* data = nullptr;
    shape_of_rank<N> shape{};

    std::size_t size() const
    {
        std::size_t count = 1;
        for (const std::size_t extent : shape) count *= extent;
        return count;
    }

    /// The i-th block along the first axis.
    tensor_view<T, N - 1> operator[](std::size_t i) const requires(N > 1)
    {
        tensor_view<T, N - 1> block;
        for (std::size_t axis = 1; axis < N; ++axis) block.shape[axis - 1] = shape[axis];
        block.data = data + i * block.size();
        return block;
    }

    operator tensor_view<const T, N>() const requires(!std::is_const_v<T>) { return {data, shape}; }
};

/// The traits of a tensor type: its element, its rank, and the family that computes with it.
template <class X>
struct tensor_traits;

/// If the arguments belong to several families, the family of the highest rank computes.
enum class family_rank { owning, workspace_tensor, taped };

/// Values in memory that the result owns: an operation computes and returns; nothing is recorded.
struct plain_family {
    static constexpr family_rank rank = family_rank::owning;

    template <class T, std::size_t N>
    using tensor_type = array<T, N>;
};

template <class T, std::size_t N>
struct tensor_traits<tensor_view<T, N>> {
    using element = std::remove_const_t<T>;
    using family = plain_family;
    static constexpr std::size_t rank = N;
};

template <class T, std::size_t N>
struct tensor_traits<array<T, N>> : tensor_traits<tensor_view<T, N>> {};

namespace detail {

/// The family that records, for code that must not name it; ad/operation.hpp defines it. `On` delays the lookup until a
/// taped tensor exists.
template <class On>
struct recording {
    using family = void;
};

}  // namespace detail

/// A tensor of any family: xt::xtensor, heed::tensor_view, heed::workspace_tensor or ad::var.
template <class X>
concept tensor = requires
{
    tensor_traits<std::remove_cvref_t<X>>::rank;
};

/// The type of a tensor's elements.
template <class X>
using element_of = typename tensor_traits<std::remove_cvref_t<X>>::element;

/// The family of a tensor: plain_family, workspace_family or ad::taped_family.
template <class X>
using family_of = typename tensor_traits<std::remove_cvref_t<X>>::family;

/// The number of a tensor's axes.
template <class X>
inline constexpr std::size_t rank_of = tensor_traits<std::remove_cvref_t<X>>::rank;

/// A tensor with its values in memory: owned, viewed or in a workspace. Operations on it are not recorded.
template <class X>
concept plain_tensor = tensor<X> &&(family_of<X>::rank < family_rank::taped);

/// A tensor that owns its values, or views values with another owner.
template <class X>
concept owning_tensor = plain_tensor<X> &&(family_of<X>::rank == family_rank::owning);

namespace detail {

/// Is an argument of type X&& a temporary that owns its numbers? A reference to it would dangle after the full
/// expression. A temporary view or workspace tensor owns no numbers.
template <class X>
inline constexpr bool dies_with_its_numbers = !std::is_lvalue_reference_v<X> && !std::is_trivially_destructible_v<X>;

#define HEED_SAYS_TEMPORARY                                                                                            \
    "heed: the result refers to its argument, a temporary that owns its numbers and is destroyed with this "           \
    "statement: store it in a variable, `const auto x = make();`, and pass x"

/// The family of higher rank; arguments that are not tensors do not count.
template <class Family, class X>
struct greater_family {
    using type = Family;
};
template <class Family, tensor X>
    requires(Family::rank < family_of<X>::rank)
struct greater_family<Family, X> {
    using type = family_of<X>;
};
template <class Family, class... X>
struct family_among {
    using type = Family;
};
template <class Family, class First, class... Rest>
struct family_among<Family, First, Rest...> {
    using type = typename family_among<typename greater_family<Family, First>::type, Rest...>::type;
};

}  // namespace detail

/// The family that computes with these arguments: taped if any argument is. Arguments that are not tensors do not
/// count.
template <class... X>
using common_family_of = typename detail::family_among<plain_family, std::remove_cvref_t<X>...>::type;

/// The shape of a tensor of any rank: {B, T} for [B,T].
template <tensor X>
shape_of_rank<rank_of<X>> shape_of(const X& x)
{
    if constexpr (requires { x.shape(); }) {
        return x.shape();
    } else {
        return x.shape;
    }
}

template <class T, std::size_t N>
tensor_view<const T, N> view_of(const array<T, N>& x)
{
    return {x.data(), x.shape()};
}
template <class T, std::size_t N>
tensor_view<T, N> view_of(array<T, N>& x)
{
    return {x.data(), x.shape()};
}
template <class T, std::size_t N>
tensor_view<const T, N> view_of(const array<T, N>&&)
{
    static_assert(sizeof(T) == 0, HEED_SAYS_TEMPORARY);
    return {};
}
template <class T, std::size_t N>
tensor_view<T, N> view_of(const tensor_view<T, N>& x)
{
    return x;
}

/// The view of a tensor that is a class with a view: a shared, workspace or cache tensor.
template <tensor X>
    requires requires(const X& x) { x.view().shape; }
tensor_view<const element_of<X>, rank_of<X>> view_of(X&& x)
{
    static_assert(!detail::dies_with_its_numbers<X>, HEED_SAYS_TEMPORARY);
    return x.view();
}

// xtensor's constructors have one name for all targets (core/target.hpp). With `flatten`, these functions contain them.

/// A new tensor with uninitialized elements.
template <class T, std::size_t N>
[[gnu::flatten]] array<T, N> uninitialized(const shape_of_rank<N>& shape)
{
    typename array<T, N>::strides_type strides;
    std::ptrdiff_t size = 1;
    for (std::size_t axis = N; axis-- > 0; size *= static_cast<std::ptrdiff_t>(shape[axis])) strides[axis] = size;
    return array<T, N>(typename array<T, N>::storage_type(static_cast<std::size_t>(size)), shape_of_rank<N>(shape),
                       std::move(strides));
}

/// A new tensor with every element equal to value.
template <class T, std::size_t N>
[[gnu::flatten]] array<T, N> filled(const shape_of_rank<N>& shape, T value)
{
    return array<T, N>(shape, value);
}

/// A new tensor of zeros with these sizes: `zeros<float>(2, 3)` is [2,3]. (`array<float, 1>({3})` is the one number 3.)
template <class T, std::integral... Sizes>
array<T, sizeof...(Sizes)> zeros(Sizes... sizes)
{
    return filled<T, sizeof...(Sizes)>({static_cast<std::size_t>(sizes)...}, T(0));
}

/// An owning copy of a plain tensor.
template <class T, std::size_t N>
[[gnu::flatten]] array<std::remove_const_t<T>, N> copy_of(const tensor_view<T, N>& x)
{
    auto copy = uninitialized<std::remove_const_t<T>>(x.shape);
    for (std::size_t i = 0, n = x.size(); i < n; ++i) copy.data()[i] = x.data[i];
    return copy;
}

/// Gives `storage` this shape; allocates only when the shape changes.
template <class T, std::size_t N>
[[gnu::flatten]] void fit(array<T, N>& storage, const shape_of_rank<N>& shape)
{
    if (!same_shape(storage.shape(), shape)) storage.resize(shape);
}

}  // namespace heed::inline HEED_TARGET
