// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/tensor.hpp>
#include <heed/ops/shape.hpp>

/// Heads in tensors: concatenated in the last axis, [B,S,n·d], as an axis, [B,n,S,d], or as rows of a batch, [B·n,S,d].
namespace heed::inline HEED_TARGET {

/// Heads concatenated in the last axis, [B,S,n·d], read as [B,n,S,d]. X is a reference to a named tensor, which is not
/// copied and must outlive this; a temporary is stored.
template <class X>
struct split_tensor {
    X joined;
    std::size_t heads;

    shape_of_rank<4> shape() const  // [B,n,S,d]
    {
        const auto [B, S, N] = shape_of(joined);
        return {B, heads, S, N / heads};
    }
    /// The heads as a tensor [B,n,S,d]: a copy.
    auto apart() const
    {
        const auto [B, n, S, d] = shape();
        return ops::permuted(ops::reshaped(joined, shape_of_rank<4>{B, S, n, d}), 0, 2, 1, 3);
    }
};

/// x [B,S,n·d] as heads [B,n,S,d], for an attention's queries, keys and values; its contexts are split in the same way.
/// Throws shape_error unless the number of heads divides the last axis.
template <tensor X>
auto split_heads(X&& x, std::size_t heads)
{
    static_assert(rank_of<X> == 3, "heed: split_heads reads [B,S,n·d] as n heads [B,n,S,d]");
    const auto shape = shape_of(x);
    if (heads == 0 || shape[2] % heads != 0) {
        throw shape_error("split_heads: the last axis of " + shape_text(shape) + " cannot be split into " +
                          counted(heads, "head") + "; the number of heads must divide its size");
    }
    using kept =
        std::conditional_t<std::is_lvalue_reference_v<X>, const std::remove_cvref_t<X>&, std::remove_cvref_t<X>>;
    return split_tensor<kept>{std::forward<X>(x), heads};
}

/// Heads [B,n,S,d] concatenated to [B,S,n·d]: a copy, unless they are split.
template <class X>
X join_heads(split_tensor<X> heads)
{
    return std::forward<X>(heads.joined);
}
template <tensor X>
auto join_heads(const X& heads)
{
    static_assert(rank_of<X> == 4, "heed: join_heads takes heads [B,n,S,d]");
    const auto [B, n, S, d] = shape_of(heads);
    return ops::reshaped(ops::permuted(heads, 0, 2, 1, 3), shape_of_rank<3>{B, S, n * d});
}

namespace detail {

template <class X>
inline constexpr bool is_split = false;
template <class X>
inline constexpr bool is_split<split_tensor<X>> = true;

template <class X, std::size_t N>
concept tensor_with_axes = tensor<X> &&(rank_of<X> == N);

/// Queries, keys or values of heads.
template <class X>
concept tensor_of_heads = is_split<std::remove_cvref_t<X>> || tensor_with_axes<X, 4>;

/// The shape of heads, [B,H,d] or [B,H,S,d].
auto shape_of_heads(const tensor auto& x) { return shape_of(x); }
template <class X>
shape_of_rank<4> shape_of_heads(const split_tensor<X>& x)
{
    return x.shape();
}

/// The shape [B·n,...] of heads [B,n,...] as rows.
template <std::size_t N>
shape_of_rank<N - 1> shape_of_rows(const shape_of_rank<N>& heads)
{
    shape_of_rank<N - 1> rows;
    std::copy(heads.begin() + 1, heads.end(), rows.begin());
    rows[0] *= heads[0];
    return rows;
}

/// x in a different shape of the same size: a view of a plain tensor.
template <std::size_t N>
auto seen_as(const tensor auto& x, const shape_of_rank<N>& shape)
{
    return ops::reshaped(x, shape);
}
template <std::size_t N>
auto seen_as(const plain_tensor auto& x, const shape_of_rank<N>& shape)
{
    return tensor_view<const element_of<decltype(x)>, N>{view_of(x).data, shape};
}

/// seen_as for a const tensor, without copying an array that is passed as an rvalue.
template <std::size_t N, tensor X>
auto reshaped_in_place(const X& x, const shape_of_rank<N>& shape)
{
    return ops::reshaped(x, shape);
}
template <std::size_t N, class T, std::size_t R>
array<T, N> reshaped_in_place(array<T, R> x, const shape_of_rank<N>& shape)
{
    array<T, N> y;
    y.storage() = std::move(x.storage());
    y.resize(shape);
    return y;
}

/// Heads [B,n,...] as rows [B·n,...], without a copy if they are stored as rows.
auto seen_as_rows(const tensor auto& heads) { return detail::seen_as(heads, detail::shape_of_rows(shape_of(heads))); }
template <class X>
auto seen_as_rows(const split_tensor<X>& heads)
{
    const auto shape = detail::shape_of_rows(heads.shape());
    return detail::reshaped_in_place(heads.apart(), shape);
}

/// rows_of_heads for a memory, which owns its arrays: an array is copied, unless it is an rvalue.
template <class X>
auto rows_of_heads(X&& heads)
{
    using type = std::remove_cvref_t<X>;
    if constexpr (is_array<type>) {
        const auto shape = detail::shape_of_rows(shape_of(heads));
        return detail::reshaped_in_place(type(std::forward<X>(heads)), shape);
    } else {
        return detail::seen_as_rows(heads);
    }
}

/// Rows [B·n,...] as heads [B,n,...].
template <tensor X>
auto heads_of_rows(X x, std::size_t heads)
{
    const auto rows = shape_of(x);
    shape_of_rank<rank_of<X> + 1> shape;
    std::copy(rows.begin(), rows.end(), shape.begin() + 1);
    shape[0] = rows[0] / heads;
    shape[1] = heads;
    return detail::reshaped_in_place(std::move(x), shape);
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
