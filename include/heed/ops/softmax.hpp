// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <heed/kernels/softmax.hpp>
#include <heed/ops/rows.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace detail {

/// The shape of a tensor of any rank as [batch, positions, width] around one of its axes. Negative axes count from the
/// end.
template <std::size_t R>
shape_of_rank<3> around_axis(const char* name, const shape_of_rank<R>& x, int axis)
{
    static_assert(R > 0, "heed: the softmax of a single number is 1: give the tensor an axis");
    const int rank = static_cast<int>(R), at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank)
        detail::refuse(name, ": axis ", std::to_string(axis), " of a tensor ", x, "; it has axes 0 to ",
                       std::to_string(rank - 1), ", or -1 for the last");
    shape_of_rank<3> all{1, x[static_cast<std::size_t>(at)], 1};
    for (int i = 0; i < at; ++i) all[0] *= x[static_cast<std::size_t>(i)];
    for (int i = at + 1; i < rank; ++i) all[2] *= x[static_cast<std::size_t>(i)];
    return all;
}

/// A softmax for each row, or for each row and dimension.
template <class T>
void softmax(const shape_of_rank<3>& shape, bool per_dimension, const std::size_t* real, const T* x, T* y)
{
    if (per_dimension) return kernels::softmax_per_dimension(shape[0], shape[1], shape[2], real, x, y);
    kernels::softmax(shape[0], shape[1], real, x, y);
}
template <class T>
void softmax_backward(const shape_of_rank<3>& shape, bool per_dimension, const std::size_t* real, const T* y,
                      const T* d_y, T* d_x)
{
    if (per_dimension) return kernels::softmax_per_dimension_backward(shape[0], shape[1], shape[2], real, y, d_y, d_x);
    kernels::softmax_backward(shape[0], shape[1], real, y, d_y, d_x);
}

}  // namespace detail

/// α = softmax(e) over the positions of each row: e [B,T], or [B,T,D] with one softmax per dimension.
///
///     ∂e_j += α_j (∂α_j − Σ_k α_k ∂α_k)
///
/// Beyond a row's length, and in a row of length 0, weights and gradients are 0.
///
/// y = softmax(x) over one axis, with all its elements: `ops::softmax(x, axis)`, or `ops::softmax(x)` for the last
/// axis; x [...] of any rank except 0 -> [...]. If all elements are -inf, y is 0. Throws shape_error for an axis that x
/// does not have.
struct softmax_op : row_operation<softmax_op> {
    static constexpr const char* name = "softmax";
    static constexpr ranks takes{1};  // over an axis, any rank; with lengths, 2 or 3

    using row_operation<softmax_op>::operator();
    auto operator()(const tensor auto& x) const { return (*this)(x, -1); }

    using row_operation<softmax_op>::shape;
    static auto shape(const auto& x, int axis)
    {
        (void)detail::around_axis(name, x.shape, axis);
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, int axis, out<T, R> y)
    {
        const auto shape = detail::around_axis(name, x.shape, axis);
        detail::softmax(shape, shape[2] != 1, nullptr, x.data, y.data);
    }
    template <class T, std::size_t R>
    static void backward(in<T, R> x, int axis, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        const auto shape = detail::around_axis(name, x.shape, axis);
        detail::softmax_backward(shape, shape[2] != 1, nullptr, y.data, d_y.data, d_x.data);
    }

    template <class T, std::size_t R>
        requires(R == 2 || R == 3)
    static void forward(in<T, R> e, const lengths_view& real, out<T, R> weights)
    {
        detail::softmax(detail::by_position(e.shape), R == 3, real.data(), e.data, weights.data);
    }
    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, in<T, R> weights, in<T, R> d_weights, adjoint<T, R> d_e)
    {
        detail::softmax_backward(detail::by_position(e.shape), R == 3, real.data(), weights.data, d_weights.data,
                                 d_e.data);
    }
};
inline constexpr softmax_op softmax{};

/// y = log softmax(x) over one axis: x [...] of any rank except 0 -> [...]; `ops::log_softmax(x)`: the last axis.
///
///     y_j = x_j − log Σ_k exp(x_k)              ∂x_j += ∂y_j − exp(y_j) Σ_k ∂y_k
///
/// Exact where the softmax itself underflows. Where x is -inf, so is y, and the gradient is 0. For the loss of words
/// use `ops::cross_entropy`. Throws shape_error for an axis that x does not have.
struct log_softmax_op : operation<log_softmax_op> {
    static constexpr const char* name = "log_softmax";
    static constexpr ranks takes{1};

    using operation<log_softmax_op>::operator();
    auto operator()(const tensor auto& x) const { return (*this)(x, -1); }

    static auto shape(const auto& x, int axis)
    {
        (void)detail::around_axis(name, x.shape, axis);
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, int axis, out<T, R> y)
    {
        each_line(detail::around_axis(name, x.shape, axis), [=](std::size_t n, std::size_t at, std::size_t stride) {
            if (stride == 1) return kernels::detail::log_softmax_row(n, x.data + at, y.data + at);
            scratch here;
            T* const line = here.take<T>(n);
            for (std::size_t j = 0; j < n; ++j) line[j] = x.data[at + j * stride];
            kernels::detail::log_softmax_row(n, line, line);
            for (std::size_t j = 0; j < n; ++j) y.data[at + j * stride] = line[j];
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, int axis, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        each_line(detail::around_axis(name, x.shape, axis), [=](std::size_t n, std::size_t at, std::size_t stride) {
            if (stride == 1)
                return kernels::detail::log_softmax_row_backward(n, y.data + at, d_y.data + at, d_x.data + at);
            scratch here;
            T *const line = here.take<T>(3 * n), *const d_line = line + n, *const sum = d_line + n;
            for (std::size_t j = 0; j < n; ++j) {
                line[j] = y.data[at + j * stride];
                d_line[j] = d_y.data[at + j * stride];
                sum[j] = d_x.data[at + j * stride];
            }
            kernels::detail::log_softmax_row_backward(n, line, d_line, sum);
            for (std::size_t j = 0; j < n; ++j) d_x.data[at + j * stride] = sum[j];
        });
    }

private:
    /// f(elements, the offset of the first one, the stride) for each line along the middle axis.
    static void each_line(const shape_of_rank<3>& shape, const auto& f)
    {
        const std::size_t n = shape[1], width = shape[2];
        if (n == 0) return;
        detail::each_row(shape[0] * width, n,
                         [=](std::size_t line) { f(n, line / width * n * width + line % width, width); });
    }
};
inline constexpr log_softmax_op log_softmax{};

}  // namespace heed::inline HEED_TARGET::ops
