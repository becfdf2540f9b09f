// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/cache_tensor.hpp>
#include <heed/ops/broadcast.hpp>
#include <heed/ops/rows.hpp>

/// Concatenating, splitting, slicing, reshaping and transposing tensors.
namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// Each of `Self::rows(shape)` rows of y is the row of a followed by that of b.
template <class Self>
struct two_joined : operation<Self> {
    template <class T, std::size_t R>
    static void forward(in<T, R> a, in<T, R> b, out<T, R> y)
    {
        const std::size_t rows = Self::rows(y.shape);
        if (rows == 0) return;
        const std::size_t n = a.size() / rows, m = b.size() / rows;
        for (std::size_t row = 0; row < rows; ++row) {
            y.data = std::copy_n(a.data + row * n, n, y.data);
            y.data = std::copy_n(b.data + row * m, m, y.data);
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> a, in<T, R> b, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_a, adjoint<T, R> d_b)
    {
        const std::size_t rows = Self::rows(y.shape);
        if (rows == 0) return;
        const std::size_t n = a.size() / rows, m = b.size() / rows;
        for (std::size_t row = 0; row < rows; ++row) {
            const T* const d = d_y.data + row * (n + m);
            if (d_a) kernels::add(n, d_a.data + row * n, d);
            if (d_b) kernels::add(m, d_b.data + row * m, d + n);
        }
    }
};

}  // namespace detail

/// y = [a; b] along the last axis: [...,N] and [...,M] -> [...,N+M].      ∂a += ∂y[...,:N],  ∂b += ∂y[...,N:]
struct concat_op : detail::two_joined<concat_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& a, const auto& b)
    {
        auto y = a.shape;
        y.back() = b.shape.back();
        require_shape("concat", "the second argument", b.shape, y, "all axes except the last must match the first, ",
                      a.shape);
        y.back() += a.shape.back();
        return y;
    }
    static std::size_t rows(const auto& y) { return detail::rows_of(y); }
};
inline constexpr concat_op concat{};

/// y = x with z appended along the second axis: [B,T,N] and [B,t,N] -> [B,T+t,N].      ∂x += ∂y[:,:T],  ∂z += ∂y[:,T:]
struct append_op : detail::two_joined<append_op> {
    static constexpr ranks takes{3, 3};

    static shape_of_rank<3> shape(const auto& x, const auto& z)
    {
        require_shape("append", "the second argument", z.shape, {x.shape[0], z.shape[1], x.shape[2]},
                      "the rows and width of the first, ", x.shape);
        return {x.shape[0], x.shape[1] + z.shape[1], x.shape[2]};
    }
    static std::size_t rows(const auto& y) { return y[0]; }
};
inline constexpr append_op append{};

/// y = x[:,s,:], step s of every row: x [B,S,N] -> [B,N].      ∂x[:,s,:] += ∂y
struct step_of_op : move_operation<step_of_op, std::size_t> {
    static constexpr ranks takes{3, 3};

    static shape_of_rank<2> shape(const auto& x, std::size_t s)
    {
        if (s >= x.shape[1])
            detail::refuse("step_of: step ", s, " of ", x.shape, ", which has only ",
                           heed::detail::number_of{x.shape[1], "step"});
        return {x.shape[0], x.shape[2]};
    }

    static void each_move(const auto& x, std::size_t s, auto move)
    {
        const std::size_t S = x[1], N = x[2];
        for (std::size_t b = 0; b < x[0]; ++b) move((b * S + s) * N, b * N, N);
    }
};
inline constexpr step_of_op step_of{};

/// The inverse of step_of, in place: y [B,N] becomes step s of x [B,S,N]. Throws shape_error unless y fits and s
/// exists.
template <class T>
void put_step(array<T, 3>& x, std::size_t s, const plain_tensor auto& y)
{
    static_assert(rank_of<decltype(y)> == 2, "heed: put_step puts a step [B,N] into [B,S,N]");
    const auto [B, S, N] = shape_of(x);
    require_shape("put_step", "the step", shape_of(y), {B, N}, "one row for each row of ", shape_of(x));
    if (s >= S)
        detail::refuse("put_step: step ", s, " of ", shape_of(x), ", which has only ",
                       heed::detail::number_of{S, "step"});
    for (std::size_t b = 0; b < B; ++b) std::copy_n(view_of(y).data + b * N, N, x.data() + (b * S + s) * N);
}

/// y = x[i], the i-th block along the first axis: x [S,B,N] -> [B,N]. A view on the tape and in the workspace.
///
///     ∂x[i] += ∂y
struct block_op : operation<block_op> {
    static constexpr ranks takes{1};

    static auto piece(const auto& x, std::size_t i)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        if (i >= x.shape[0])
            detail::refuse("block: block ", i, " of ", x.shape, ", which has only ", x.shape[0],
                           " blocks; blocks count from 0");
        piece_of<R - 1> part;
        std::copy_n(x.shape.begin() + 1, R - 1, part.shape.begin());
        part.offset = i * detail::numbers_in(part.shape);
        return part;
    }
};
inline constexpr block_op block{};

/// y = the same elements in a different shape: x [...] -> a shape with the same number of elements. A view on the tape
/// and in the workspace. One size may be -1 and is computed from the others. Throws shape_error if the sizes do not
/// fit.
///
///     ops::reshaped(x, 2, -1)      ops::reshaped(x, shape_of_rank<2>{2, 12})
///
///     ∂x += ∂y, elementwise
struct reshaped_op : operation<reshaped_op> {
    template <tensor X, std::size_t R>
    auto operator()(const X& x, const shape_of_rank<R>& shape) const
    {
        return operation::operator()(x, shape);
    }
    template <tensor X, std::integral... Sizes>
    auto operator()(const X& x, Sizes... sizes) const
    {
        constexpr std::size_t R = sizeof...(Sizes);
        constexpr auto missing = static_cast<std::size_t>(-1);
        const std::size_t size = view_of(x).size();
        shape_of_rank<R> shape{static_cast<std::size_t>(sizes)...};
        if (const auto open = std::find(shape.begin(), shape.end(), missing); open != shape.end()) {
            if (std::find(open + 1, shape.end(), missing) != shape.end())
                detail::refuse("reshaped: two sizes are -1; at most one can be computed from the others");
            *open = 1;
            const std::size_t others = detail::numbers_in(shape);
            if (others == 0 || size % others != 0)
                detail::refuse("reshaped: ", shape_of(x), " has ", size,
                               " elements, but the product of the other sizes, ", others,
                               ", does not divide that number");
            *open = size / others;
        }
        return operation::operator()(x, shape);
    }

    template <std::size_t R>
    static piece_of<R> piece(const auto& x, const shape_of_rank<R>& shape)
    {
        if (detail::numbers_in(shape) != x.size())
            detail::refuse("reshaped: ", x.shape, " as ", shape, ", which has a different number of elements");
        return {0, shape};
    }
};
inline constexpr reshaped_op reshaped{};

/// y = x with indices first … last − 1 of one axis; axes count from 0: x [...,K,...] -> [...,last − first,...].
///
///     ops::slice(x, 1, 0, 4)       the first four indices of the second axis
///
///     ∂x[...,first + i,...] += ∂y[...,i,...]
struct slice_op : move_operation<slice_op, std::size_t, std::size_t, std::size_t> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, std::size_t axis, std::size_t first, std::size_t last)
    {
        auto y = x.shape;
        if (axis >= y.size() || first > last || last > y[axis])
            detail::refuse("slice: ", first, " to ", last, " of axis ", axis, " of ", x.shape,
                           "; axes count from 0, and the end is at most the size of the axis");
        y[axis] = last - first;
        return y;
    }

    static void each_move(const auto& x, std::size_t axis, std::size_t first, std::size_t last, auto move)
    {
        std::size_t before = 1, behind = 1;
        for (std::size_t i = 0; i < axis; ++i) before *= x[i];
        for (std::size_t i = axis + 1; i < x.size(); ++i) behind *= x[i];
        const std::size_t whole = x[axis] * behind, kept = (last - first) * behind;
        move.each(before, kept, [=](std::size_t i) { move(i * whole + first * behind, i * kept, kept); });
    }
};
inline constexpr slice_op slice{};

/// y = x with permuted axes: axis k of y is axis axes[k] of x.
///
///     ops::permuted(x, 0, 2, 1)    [B,T,N] -> [B,N,T]
///
///     ∂x += ∂y, elementwise
struct permuted_op : operation<permuted_op> {
    template <tensor X, std::integral... Axes>
    auto operator()(const X& x, Axes... axes) const
    {
        static_assert(sizeof...(Axes) == rank_of<X>,
                      "heed: permuted takes each axis once, as in `permuted(x, 0, 2, 1)`");
        return operation::operator()(x, shape_of_rank<sizeof...(Axes)>{static_cast<std::size_t>(axes)...});
    }

    template <std::size_t R>
    static shape_of_rank<R> shape(const auto& x, const shape_of_rank<R>& axes)
    {
        shape_of_rank<R> y{}, seen{};
        for (std::size_t k = 0; k < R; ++k) {
            if (axes[k] >= R || std::exchange(seen[axes[k]], 1) != 0)
                detail::refuse("permuted: the axes ", axes, " of ", x.shape, "; give each axis once, counted from 0");
            y[k] = x.shape[axes[k]];
        }
        return y;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, const shape_of_rank<R>& axes, out<T, R> y)
    {
        each_run(x.shape, axes, y.shape, [&](std::size_t from, std::size_t to, std::size_t n, std::size_t step) {
            for (std::size_t i = 0; i < n; ++i) y.data[to + i] = x.data[from + i * step];
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, const shape_of_rank<R>& axes, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        each_run(x.shape, axes, y.shape, [&](std::size_t from, std::size_t to, std::size_t n, std::size_t step) {
            for (std::size_t i = 0; i < n; ++i) d_x.data[from + i * step] += d_y.data[to + i];
        });
    }

private:
    /// f(from, to, n, step) for each run along the last axis of y.
    template <std::size_t R>
    static void each_run(const shape_of_rank<R>& x, const shape_of_rank<R>& axes, const shape_of_rank<R>& y, auto&& f)
    {
        static_assert(R <= detail::strided_walk::most);
        shape_of_rank<R> strides;
        std::size_t step = 1;
        for (std::size_t axis = R; axis-- > 0; step *= x[axis]) strides[axis] = step;
        if constexpr (R == 0) {
            f(0, 0, 1, 1);
        } else {
            detail::strided_walk walk;
            for (std::size_t k = 0; k + 1 < R; ++k) walk.add(y[k], strides[axes[k]]);
            for (std::size_t i = 0, runs = detail::rows_of(y); i < runs; ++i)
                f(walk(i), i * y[R - 1], y[R - 1], strides[axes[R - 1]]);
        }
    }
};
inline constexpr permuted_op permuted{};

/// y = x[first … last − 1, :]: x [K,N] -> [last − first,N]. A view, on the tape and off it: the matrix must outlive the
/// result.
///
///     ∂x[first + i] += ∂y[i]
struct slice_rows_op : operation<slice_rows_op> {
    static constexpr ranks takes{2, 2};

    static piece_of<2> piece(const auto& x, std::size_t first, std::size_t last)
    {
        if (first > last || last > x.shape[0])
            detail::refuse("slice_rows: rows ", first, " to ", last, " of ", x.shape, ", which has ", x.shape[0],
                           " rows");
        return {first * x.shape[1], {last - first, x.shape[1]}};
    }

    template <tensor X>
    auto operator()(const X& x, std::size_t first, std::size_t last) const
    {
        if constexpr (owning_tensor<X> && rank_of<X> == 2) {
            const auto part = piece(detail::argument(x), first, last);
            return in<element_of<X>, 2>{view_of(x).data + part.offset, part.shape};
        } else {
            return operation::operator()(x, first, last);
        }
    }
};
inline constexpr slice_rows_op slice_rows{};

/// y = x[:, first … first + count − 1], for a batch of one sentence or none: x [1,T] or [1,T,N] -> [1,count] or
/// [1,count,N]. On the tape and in the workspace it shares the memory of x.
///
///     ∂x[:, first + t] += ∂y[:, t]
struct positions_between_op : operation<positions_between_op> {
    static constexpr ranks takes{2, 3};

    static auto piece(const auto& x, std::size_t first, std::size_t count)
    {
        auto shape = x.shape;
        if (shape[0] > 1 || first > shape[1] || count > shape[1] - first)
            detail::refuse("positions_between: ", counted(count, "position"), " from ", first, " on of ", shape,
                           "; they must be within one sentence, [1,T] or [1,T,N]");
        shape[1] = count;
        return piece_of<rank_of<decltype(x)>>{first * detail::width_of(shape), shape};
    }
};
inline constexpr positions_between_op positions_between{};

namespace detail {

#define HEED_SAYS_LIST                                                                                                 \
    "heed: this operation takes one std::vector of tensors of one type, as in `ops::stack(std::vector{a, b})`: "       \
    "stack takes any rank, concat_heads rank 1 or more, append_all rank 3"

template <class X>
inline constexpr bool is_list_of_tensors = false;
template <tensor X>
inline constexpr bool is_list_of_tensors<std::vector<X>> = true;

/// An operation on a list of tensors: `shape(parts)`, and `rows(shape of a part)`, the number of rows: each row of y is
/// the row of the first part, followed by that of the second, and so on. Its backward is in ad/lists.hpp.
template <class Self>
struct list_operation {
    template <tensor X>
    auto operator()(const std::vector<X>& parts) const
    {
        static_assert(Self::takes.have(rank_of<X>), HEED_SAYS_LIST);
        using family = family_of<X>;
        const Self& self = static_cast<const Self&>(*this);
        if constexpr (family::rank == family_rank::taped) {
            return family::call(self, parts);
        } else {
            using make = results_of<family, element_of<X>>;
            auto y = make::make(self.shape(parts));
            self.forward(parts, make::writable(y));
            return y;
        }
    }
    template <tensor X, class T, std::size_t R>
    static void forward(const std::vector<X>& parts, out<T, R> y)
    {
        const std::size_t rows = Self::rows(shape_of(parts.front()));
        for (std::size_t row = 0; row < rows; ++row) {
            for (const X& part : parts) {
                const auto from = view_of(part);
                const std::size_t n = from.size() / rows;
                y.data = std::copy_n(from.data + row * n, n, y.data);
            }
        }
    }
    template <class First, class... X>
        requires(!is_list_of_tensors<First> || sizeof...(X) > 0)
    auto operator()(const First& first, const X&...) const
    {
        static_assert(is_list_of_tensors<First> && sizeof...(X) == 0, HEED_SAYS_LIST);
        return first;
    }
};

/// The shape of tensors concatenated along an axis. Throws shape_error if they differ in another axis.
template <tensor X>
auto shape_of_joined(const std::string& name, const char* verb, const std::vector<X>& parts, std::size_t axis,
                     const char* must_be)
{
    if (parts.empty()) detail::refuse(name, ": nothing to ", verb, "; give at least one tensor");
    auto y = shape_of(parts.front());
    y[axis] = 0;
    for (const X& part : parts) {
        auto must = shape_of(parts.front());
        must[axis] = shape_of(part)[axis];
        require_shape(name, "a part", shape_of(part), must, must_be);
        y[axis] += must[axis];
    }
    return y;
}

}  // namespace detail

/// y[i] = x_i, blocks of equal shape stacked: S times [B,N] -> [S,B,N].
///
///     ∂x_i += ∂y[i]                              on the tape: ad/lists.hpp
struct stack_op : detail::list_operation<stack_op> {
    static constexpr ranks takes{};

    template <tensor X>
    static auto shape(const std::vector<X>& parts)
    {
        if (parts.empty()) detail::refuse("stack: nothing to stack; give at least one tensor");
        shape_of_rank<rank_of<X> + 1> y;
        y[0] = parts.size();
        const auto first = shape_of(parts.front());
        std::copy(first.begin(), first.end(), y.begin() + 1);
        for (const X& part : parts)
            require_shape("stack", "a part", shape_of(part), first, "the shape of the first part");
        return y;
    }
    static std::size_t rows(const auto&) { return 1; }
};
inline constexpr stack_op stack{};

/// y = x_1, x_2, … concatenated along the second axis: [B,n_1,N], [B,n_2,N], … -> [B,n_1+n_2+…,N].
///
///     ∂x_1 += ∂y[:,:n_1], and so on              on the tape: ad/lists.hpp
struct append_all_op : detail::list_operation<append_all_op> {
    static constexpr ranks takes{3, 3};

    template <tensor X>
        requires(rank_of<X> == 3)
    static auto shape(const std::vector<X>& parts)
    {
        return detail::shape_of_joined("append_all", "append", parts, 1,
                                       "all axes except the second must match the first part");
    }
    static std::size_t rows(const shape_of_rank<3>& part) { return part[0]; }
};
inline constexpr append_all_op append_all{};

/// y = [a; b; …] along the last axis: [...,n_1], [...,n_2], … -> [...,n_1+n_2+…].
///
///     ∂a += ∂y[…, its columns], and so on        on the tape: ad/lists.hpp
struct concat_heads_op : detail::list_operation<concat_heads_op> {
    static constexpr ranks takes{1};

    template <tensor X>
    static auto shape(const std::vector<X>& parts)
    {
        return detail::shape_of_joined("concat_heads", "join", parts, rank_of<X> - 1,
                                       "all axes except the last must match the first part");
    }
    static std::size_t rows(const auto& part) { return detail::rows_of(part); }
};
inline constexpr concat_heads_op concat_heads{};

/// y[..., i] = x[..., columns[i]] along the last axis: W [K,V] -> [K,n], b [V] -> [n]. An output layer for some words.
///
///     ∂x[..., columns[i]] += ∂y[..., i]
struct columns_of_op : move_operation<columns_of_op, std::span<const std::uint32_t>> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, std::span<const std::uint32_t> columns)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        for (const std::uint32_t column : columns) {
            if (column >= x.shape[R - 1])
                detail::refuse("columns_of: column ", column, " of ", x.shape, ", which has only ", x.shape[R - 1],
                               " columns; columns count from 0");
        }
        auto y = x.shape;
        y[R - 1] = columns.size();
        return y;
    }

    static void each_move(const auto& x, std::span<const std::uint32_t> columns, auto move)
    {
        const std::size_t V = x.back(), n = columns.size(), rows = V == 0 ? 0 : detail::rows_of(x);
        detail::each_row(rows, n, [=](std::size_t r) {
            for (std::size_t i = 0; i < n; ++i) move(r * V + columns[i], r * n + i);
        });
    }
};
inline constexpr columns_of_op columns_of{};

/// y = x[..., first … last − 1], some columns: x [...,N] -> [...,last − first].      ∂x[..., first + i] += ∂y[..., i]
struct slice_columns_op : move_operation<slice_columns_op, std::size_t, std::size_t> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, std::size_t first, std::size_t last)
    {
        auto y = x.shape;
        if (first > last || last > y.back())
            detail::refuse("slice_columns: columns ", first, " to ", last, " of ", y, ", which has ", y.back(),
                           " columns");
        y.back() = last - first;
        return y;
    }

    static void each_move(const auto& x, std::size_t first, std::size_t last, auto move)
    {
        const std::size_t N = x.back(), n = last - first, rows = N == 0 ? 0 : detail::rows_of(x);
        detail::each_row(rows, n, [=](std::size_t r) { move(r * N + first, r * n, n); });
    }
};
inline constexpr slice_columns_op slice_columns{};

/// y_p = x[..., p·n … p·n + n − 1], the last axis split into equal parts: x [...,P·n] -> P times [...,n].
///
///     ∂x[…, columns of the p-th] += ∂y_p         on the tape: ad/lists.hpp
struct split_heads_op {
    /// The shape of each part.
    static auto shape(const auto& x, std::size_t parts)
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        if (parts == 0 || x.shape[R - 1] % parts != 0)
            detail::refuse("split_heads: the last axis of ", x.shape, " cannot be split into ", parts,
                           " equal parts; the number of parts must divide its size");
        auto y = x.shape;
        y.back() /= parts;
        return y;
    }

    template <tensor X>
    auto operator()(const X& x, std::size_t parts) const
    {
        static_assert(rank_of<X> > 0, "heed: split_heads splits the last axis of a tensor, and a scalar has no axes");
        using family = family_of<X>;
        if constexpr (family::rank == family_rank::taped) {
            return family::call(*this, x, parts);
        } else {
            const std::size_t n = shape(detail::argument(x), parts).back();
            std::vector<typename family::template tensor_type<element_of<X>, rank_of<X>>> y;
            y.reserve(parts);
            for (std::size_t p = 0; p < parts; ++p) y.push_back(slice_columns(x, p * n, (p + 1) * n));
            return y;
        }
    }
};
inline constexpr split_heads_op split_heads{};

/// y[i] = x[rows[i]] along the first axis: x [B,...] -> [rows,...]. Rows may be repeated or omitted, for example to
/// continue with the surviving hypotheses of a beam.
///
///     ∂x[rows[i]] += ∂y[i]
struct rows_of_op : move_operation<rows_of_op, std::span<const std::size_t>> {
    static constexpr ranks takes{1};

    static auto shape(const auto& x, std::span<const std::size_t> rows)
    {
        static_assert(rank_of<decltype(x)> > 0, "heed: rows_of takes a tensor with at least one axis");
        auto y = x.shape;
        for (const std::size_t row : rows) {
            if (row >= y[0])
                detail::refuse("rows_of: row ", row, " of ", y, ", which has only ",
                               heed::detail::number_of{y[0], "row"}, "; rows count from 0");
        }
        y[0] = rows.size();
        return y;
    }

    static void each_move(const auto& x, std::span<const std::size_t> rows, auto move)
    {
        std::size_t n = 1;
        for (std::size_t axis = 1; axis < x.size(); ++axis) n *= x[axis];
        move.each(rows.size(), n, [&](std::size_t i) { move(rows[i] * n, i * n, n); });
    }

    /// Any contiguous list of row numbers.
    template <class X, class Rows>
    auto operator()(const X& x, const Rows& rows) const
    {
        if constexpr (std::is_convertible_v<const Rows&, std::span<const std::size_t>>) {
            return operation::operator()(x, std::span<const std::size_t>(rows));
        } else {
            return operation::operator()(x, rows);
        }
    }
    template <class T>
    auto operator()(const cache_tensor<T>& x, std::span<const std::size_t> rows) const
    {
        return x.rows(rows);
    }
};
inline constexpr rows_of_op rows_of{};

/// y[b,:] = x, repeated for every sentence: x [N] -> [B,N].      ∂x += Σ_b ∂y[b,:]
struct repeat_op : move_operation<repeat_op, std::size_t> {
    static constexpr ranks takes{1, 1};

    static shape_of_rank<2> shape(const auto& x, std::size_t batch) { return {batch, x.shape[0]}; }

    static void each_move(const auto& x, std::size_t batch, auto move)
    {
        for (std::size_t b = 0; b < batch; ++b) move(0, b * x[0], x[0]);
    }
};
inline constexpr repeat_op repeat{};

/// y[b,s] = x[s,b], the first two axes swapped: [S,B,N] -> [B,S,N] or the reverse, also [S,B,M,N] -> [B,S,M,N].
///
///     ∂x[s,b] += ∂y[b,s]
struct swap_axes_op : move_operation<swap_axes_op> {
    static constexpr ranks takes{3, 4};

    static auto shape(const auto& x)
    {
        static_assert(rank_of<decltype(x)> >= 3, "heed: swap_axes takes [S,B,N] or [S,B,M,N]; for [S,T] see transpose");
        auto y = x.shape;
        std::swap(y[0], y[1]);
        return y;
    }

    static void each_move(const auto& x, auto move)
    {
        const std::size_t S = x[0], B = x[1], N = x.size() == 3 ? x[2] : x[2] * x[3];
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t s = 0; s < S; ++s) move((s * B + b) * N, (b * S + s) * N, N);
        }
    }
};
inline constexpr swap_axes_op swap_axes{};

/// y[b,t,s] = x[b,s,t], the last two axes swapped: [B,S,T] -> [B,T,S], or [S,T] -> [T,S].      ∂x[b,s,t] += ∂y[b,t,s]
struct transpose_op : move_operation<transpose_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x)
    {
        auto y = x.shape;
        std::swap(y[y.size() - 2], y[y.size() - 1]);
        return y;
    }

    static void each_move(const auto& x, auto move)
    {
        const std::size_t S = x[x.size() - 2], N = x[x.size() - 1], B = x.size() == 3 ? x[0] : 1;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t s = 0; s < S; ++s) {
                std::size_t from = (b * S + s) * N, to = b * N * S + s;
                for (std::size_t t = 0; t < N; ++t, ++from, to += S) move(from, to);
            }
        }
    }
};
inline constexpr transpose_op transpose{};

/// y = x at the first known[b] positions of row b, z at the others: x [B,T',N], z [B,T,N] -> [B,T,N], or without N.
///
///     ∂x[b,t] += ∂y[b,t] for t < known[b],  ∂z[b,t] += ∂y[b,t] for the others
///
/// Throws shape_error if a row has more known positions than x or z.
struct join_positions_op : operation<join_positions_op> {
    static auto shape(const auto& x, const auto& z, const lengths_view& known)
    {
        auto must = z.shape;
        must[1] = x.shape[1];
        require_shape("join_positions", "the first argument", x.shape, must,
                      "the shape of the second except for its positions, ", z.shape);
        known.require("join_positions", x.shape[0], std::min(x.shape[1], z.shape[1]));
        return z.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, R> z, const lengths_view& known, out<T, R> y)
    {
        each_row_of(x.shape, z.shape, known, [&](std::size_t b_x, std::size_t b_y, std::size_t first, std::size_t row) {
            std::copy_n(x.data + b_x, first, y.data + b_y);
            std::copy_n(z.data + b_y + first, row - first, y.data + b_y + first);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> z, const lengths_view& known, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x,
                         adjoint<T, R> d_z)
    {
        each_row_of(x.shape, z.shape, known, [&](std::size_t b_x, std::size_t b_y, std::size_t first, std::size_t row) {
            if (d_x) kernels::add(first, d_x.data + b_x, d_y.data + b_y);
            if (d_z) kernels::add(row - first, d_z.data + b_y + first, d_y.data + b_y + first);
        });
    }

private:
    /// f(offset of the row in x, in y, the number of its elements that come from x, its total number of elements) for
    /// each row.
    template <std::size_t R>
    static void each_row_of(const shape_of_rank<R>& x, const shape_of_rank<R>& y, const lengths_view& known,
                            const auto& f)
    {
        const std::size_t N = detail::width_of(y);
        for (std::size_t b = 0; b < y[0]; ++b) f(b * x[1] * N, b * y[1] * N, known[b] * N, y[1] * N);
    }
};
inline constexpr join_positions_op join_positions{};

}  // namespace heed::inline HEED_TARGET::ops
