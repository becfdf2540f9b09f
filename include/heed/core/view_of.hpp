// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include <heed/core/diagnostics.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/tensor.hpp>

/// Views of numbers that are not in heed's arrays: tensors that own nothing. The numbers must outlive them.
///
///     view_of(pointer, rows, columns)            any memory, row-major, of any rank: view_of(pointer, B, T, D)
///     view_of(numbers), view_of(numbers, B, N)   std::vector, std::array, std::span and others with data() and size()
///     view_of(matrix)                            Eigen's matrices, vectors and maps, row-major
///     view_of(mdspan)                            std::mdspan, Kokkos' views and others with extent(i)
///
/// If the numbers are const, so are those of the view; an optimizer or `io::take` then refuses to write them.
namespace heed::inline HEED_TARGET {

namespace detail {

template <class T>
concept viewed_number = std::floating_point<std::remove_const_t<T>> || dual_element<std::remove_const_t<T>>;

/// The type that x.data() points to.
template <class X>
using pointed_to = std::remove_pointer_t<decltype(std::data(std::declval<X&>()))>;

/// A matrix of Eigen: rows() and cols(), and a storage order that is known at compile time.
template <class X>
concept eigen_matrix = !tensor<X> && requires(X & x)
{
    x.data();
    x.rows();
    x.cols();
    x.innerStride();
    x.outerStride();
    std::remove_cvref_t<X>::IsRowMajor;
    std::remove_cvref_t<X>::IsVectorAtCompileTime;
};

/// Has extent(i), and data_handle() or data().
template <class X>
concept mdspan_like = !tensor<X> && !eigen_matrix<X> && requires(X & x)
{
    x.extent(0);
}
&&(
    requires(X& x) { x.data_handle(); } || requires(X & x) { x.data(); });

/// Has only data() and size().
template <class X>
concept row_of_numbers = !tensor<X> && !std::is_array_v<X> && !lazy_expression<std::remove_cvref_t<X>> &&
                         !eigen_matrix<X> && !mdspan_like<X> && requires(X & x)
{
    std::size(x);
    requires viewed_number<pointed_to<X>>;
};

/// Does this object own its numbers? A container does, a span or a map does not.
template <class X>
consteval bool owns_numbers()
{
    if constexpr (eigen_matrix<X>) {
        return std::is_same_v<X, typename X::PlainObject>;
    } else {
        return requires { std::tuple_size<X>::value; }
        || !std::is_trivially_destructible_v<X>;  // a std::array
    }
}

/// An argument that may be viewed: not a temporary that owns its numbers.
template <class X>
consteval bool may_be_viewed()
{
    constexpr bool gone = !std::is_lvalue_reference_v<X> && owns_numbers<std::remove_cvref_t<X>>();
    static_assert(!gone, HEED_SAYS_TEMPORARY);
    return !gone;
}

template <std::integral Size>
std::size_t size_of_axis(Size size)
{
    if constexpr (std::is_signed_v<Size>) {
        if (size < 0) throw shape_error("view_of: a size is " + std::to_string(size) + "; sizes must not be negative");
    }
    return static_cast<std::size_t>(size);
}

/// The number of axes of an mdspan-like: a static function rank(), or a constant rank.
template <class X>
consteval std::size_t axes_of()
{
    if constexpr (requires { static_cast<std::size_t>(X::rank()); }) {
        return static_cast<std::size_t>(X::rank());
    } else {
        return static_cast<std::size_t>(X::rank);
    }
}

}  // namespace detail

/// The numbers from `data` on, row-major, with these sizes: `view_of(pointer, rows, columns)`. Throws shape_error for a
/// negative size, and for a null pointer to more than 0 numbers.
template <detail::viewed_number T, std::integral... Sizes>
    requires(sizeof...(Sizes) > 0)
tensor_view<T, sizeof...(Sizes)> view_of(T* data, Sizes... sizes)
{
    const tensor_view<T, sizeof...(Sizes)> view{data, {detail::size_of_axis(sizes)...}};
    if (data == nullptr && view.size() > 0)
        throw shape_error("view_of: " + shape_text(view.shape) + " numbers from a null pointer");
    return view;
}

/// The numbers of a std::vector, std::array, std::span or other contiguous container, [size], or with these sizes if
/// their product is its size: `view_of(numbers, rows, columns)`. Throws shape_error if it is not.
template <class X, std::integral... Sizes>
    requires(detail::row_of_numbers<std::remove_reference_t<X>>)
auto view_of(X&& numbers, Sizes... sizes)
{
    using T = detail::pointed_to<std::remove_reference_t<X>>;
    constexpr std::size_t N = sizeof...(Sizes) == 0 ? 1 : sizeof...(Sizes);
    if constexpr (!detail::may_be_viewed<X>()) {
        return tensor_view<T, N>{};
    } else {
        const auto size = static_cast<std::size_t>(std::size(numbers));
        tensor_view<T, N> view{std::data(numbers), {size}};
        if constexpr (sizeof...(Sizes) > 0) view.shape = {detail::size_of_axis(sizes)...};
        if (view.size() != size)
            throw shape_error("view_of: " + shape_text(view.shape) + " needs " + counted(view.size(), "number") +
                              ", but there are " + std::to_string(size));
        return view;
    }
}

/// The numbers of an Eigen matrix [rows,columns] that is declared Eigen::RowMajor, or of a vector [size]. A block of a
/// wider matrix, with rows that are not contiguous, throws shape_error.
template <class X>
    requires(detail::eigen_matrix<std::remove_reference_t<X>>)
auto view_of(X&& matrix)
{
    using eigen = std::remove_cvref_t<X>;
    using T = std::remove_pointer_t<decltype(matrix.data())>;
    constexpr bool vector = bool(eigen::IsVectorAtCompileTime), row_major = vector || bool(eigen::IsRowMajor);
    static_assert(row_major,
                  "heed: this matrix is column-major, the default of Eigen, and heed's tensors are row-major: declare "
                  "it with Eigen::RowMajor, or view its transpose by `heed::view_of(m.data(), m.cols(), m.rows())`");
    constexpr std::size_t N = vector ? 1 : 2;
    if constexpr (!detail::may_be_viewed<X>() || !row_major) {
        return tensor_view<T, N>{};
    } else {
        const auto rows = static_cast<std::size_t>(matrix.rows()), columns = static_cast<std::size_t>(matrix.cols());
        const auto inner = static_cast<std::size_t>(matrix.innerStride()),
                   outer = static_cast<std::size_t>(matrix.outerStride());
        if ((inner != 1 && rows * columns > 1) || (!vector && outer != columns && rows > 1)) {
            throw shape_error(
                "view_of: this matrix " + shape_text(shape_of_rank<2>{rows, columns}) +
                " is a block of a wider matrix, so its rows are not contiguous; copy it into a separate matrix");
        }
        if constexpr (vector) {
            return tensor_view<T, 1>{matrix.data(), {rows * columns}};
        } else {
            return tensor_view<T, 2>{matrix.data(), {rows, columns}};
        }
    }
}

/// The numbers of a std::mdspan or a similar type: extent(i), data_handle() or data(), a static rank, and stride(i) if
/// the layout may differ from row-major. Throws shape_error if it does.
template <class X>
    requires(detail::mdspan_like<std::remove_reference_t<X>>)
auto view_of(X&& numbers)
{
    const auto data = [&numbers] {
        if constexpr (requires { numbers.data_handle(); }) {
            return numbers.data_handle();
        } else {
            return numbers.data();
        }
    }();
    using T = std::remove_pointer_t<std::remove_const_t<decltype(data)>>;
    constexpr std::size_t N = detail::axes_of<std::remove_cvref_t<X>>();
    if constexpr (!detail::may_be_viewed<X>()) {
        return tensor_view<T, N>{};
    } else {
        tensor_view<T, N> view{data, {}};
        for (std::size_t axis = 0; axis < N; ++axis) view.shape[axis] = static_cast<std::size_t>(numbers.extent(axis));
        if constexpr (requires { numbers.stride(0); }) {
            std::size_t must = 1;
            for (std::size_t axis = N; axis-- > 0; must *= view.shape[axis]) {
                if (view.shape[axis] > 1 && view.size() > 0 && static_cast<std::size_t>(numbers.stride(axis)) != must) {
                    throw shape_error("view_of: axis " + std::to_string(axis) + " of " + shape_text(view.shape) +
                                      " has stride " + std::to_string(numbers.stride(axis)) + " but must have " +
                                      std::to_string(must) + "; heed's tensors are row-major (layout_right)");
                }
            }
        }
        return view;
    }
}

}  // namespace heed::inline HEED_TARGET
