// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <heed/core/parallel.hpp>
#include <heed/kernels/simd.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/operation.hpp>

/// Units that make one number of two: maxout (Goodfellow et al. 2013) and gated linear units (Dauphin et al. 2017).
namespace heed::ops {

namespace detail {

/// The shape with half as long a last axis. Throws shape_error if that has no half.
template <std::size_t R>
shape_of_rank<R> half_of(const char* where, shape_of_rank<R> shape, const char* because)
{
    if (shape[R - 1] % 2 != 0) {
        throw shape_error(std::string(where) + ": x is " + shape_text(shape) +
                          ", but its last axis must be even: " + because);
    }
    shape[R - 1] /= 2;
    return shape;
}

}  // namespace detail

/// y_i = max(x_2i, x_2i+1), the greater of each pair of neighbours: x [...,2N] -> [...,N]. Goodfellow et al. 2013;
/// Bahdanau et al. 2015, A.2.2.
///
///     ∂x of the greater one += ∂y_i; of the first one if they are equal
struct maxout_op : operation<maxout_op> {
    static auto shape(const auto& x) { return detail::half_of("maxout", x.shape, "pairs of neighbours"); }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) y.data[i] = std::max(x.data[2 * i], x.data[2 * i + 1]);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        for (std::size_t i = 0; i < y.size(); ++i) {
            const bool second = x.data[2 * i + 1] > x.data[2 * i];
            d_x.data[2 * i] += second ? T(0) : d_y.data[i];
            d_x.data[2 * i + 1] += second ? d_y.data[i] : T(0);
        }
    }
};
inline constexpr maxout_op maxout{};

/// y = a ⊙ σ(b), gated linear units: x [...,2N], a in its first half and b in its second -> [...,N]. Dauphin et al.
/// 2017; Gehring et al. 2017, section 3.2.
///
///     ∂a += ∂y ⊙ σ(b),  ∂b += ∂y ⊙ a ⊙ σ(b) (1 - σ(b))
struct glu_op : operation<glu_op> {
    static auto shape(const auto& x) { return detail::half_of("glu", x.shape, "values, then as many gates"); }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        using simd::vec;
        const std::size_t N = y.shape[R - 1];
        each_row(y, [&](std::size_t row) {
            const T* const a = x.data + row * 2 * N;
            simd::transform(
                N, y.data + row * N, [](vec<T> value, vec<T> gate) { return value * simd::sigmoid(gate); }, a, a + N);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        using simd::vec;
        const std::size_t N = y.shape[R - 1];
        each_row(y, [&](std::size_t row) {
            const T *const a = x.data + row * 2 * N, *const b = a + N, *const d = d_y.data + row * N;
            T *const d_a = d_x.data + row * 2 * N, *const d_b = d_a + N;
            simd::transform(
                N, d_a, [](vec<T> sum, vec<T> gate, vec<T> dy) { return sum + dy * simd::sigmoid(gate); },
                static_cast<const T*>(d_a), b, d);
            simd::transform(
                N, d_b,
                [](vec<T> sum, vec<T> value, vec<T> gate, vec<T> dy) {
                    const vec<T> s = simd::sigmoid(gate);
                    return sum + dy * value * (s * (1 - s));
                },
                static_cast<const T*>(d_b), a, b, d);
        });
    }

private:
    /// f(row) for each row of y; threads share the rows.
    static void each_row(const auto& y, const auto& f)
    {
        const std::size_t N = y.shape.back();
        parallel_for(N == 0 ? 0 : y.size() / N, kernels::detail::rows_a_shard(N),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t row = begin; row < end; ++row) f(row);
                     });
    }
};
inline constexpr glu_op glu{};

}  // namespace heed::ops
