// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>

#include <heed/core/mask.hpp>
#include <heed/kernels/distance.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// How alike two vectors are: their direction, their distance.
namespace heed::ops {

/// y = x / |x| along the last axis. A vector of length 0 (or so short that 1/|x| is not finite) stays 0 and gets the
/// gradient 0. Neither overflows nor underflows where x itself is an ordinary number.
struct unit_op : operation<unit_op> {
    /// 1/|x| as a product of two factors, of which each is an ordinary number; zeros for a vector without direction.
    template <class T>
    struct inverse_length {
        T first, second;
    };
    template <class T>
    static inverse_length<T> inverse(std::size_t n, const T* x)
    {
        using limits = std::numeric_limits<T>;
        const T squared = kernels::dot(n, x, x);
        if (squared >= limits::min() / limits::epsilon() && squared <= limits::max())
            return {T(1), 1 / std::sqrt(squared)};
        T most = 0, sum = 0;
        for (std::size_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
        if (most < limits::min()) return {T(0), T(0)};
        for (std::size_t i = 0; i < n; ++i) sum += x[i] / most * (x[i] / most);
        return {1 / most, 1 / std::sqrt(sum)};
    }

    template <class T>
    static void compute(std::size_t rows, std::size_t n, const T* x, T* y)
    {
        for (std::size_t r = 0; r < rows; ++r) {
            const auto by = inverse(n, x + r * n);
            simd::transform(
                n, y + r * n, [by](auto v) { return v * by.first * by.second; }, x + r * n);
        }
    }

    template <plain_tensor X>
    auto plain(const X& x) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, rank_of<X>>(shape_of(x));
        const std::size_t n = shape_of(x)[rank_of<X> - 1];
        compute<T>(n == 0 ? 0 : y.size() / n, n, view_of(x).data, y.data());
        return y;
    }
};
inline constexpr unit_op unit{};

/// A[b,s,t] = 1 / (1 + |x[b,s,:] - y[b,t,:]|), the Euclidean distance: x [B,S,D], y [B,T,D] -> [B,S,T], in (0, 1].
/// With the lengths of both: 0 outside, whatever is there. Yin et al. 2016, section 4 · SPEC SC12
///
/// Where x and y are the same vector the distance has a kink; the gradient there is 0.
struct match_matrix_op : operation<match_matrix_op> {
    static shape_of_rank<3> result_shape(const shape_of_rank<3>& x, const shape_of_rank<3>& y)
    {
        require_shape("match_matrix", "the second argument", y, {x[0], y[1], x[2]},
                      "as many rows and as wide as the first, ", x);
        return {x[0], x[1], y[1]};
    }
    static void check(const shape_of_rank<3>& result, const lengths& real_x, const lengths& real_y)
    {
        real_x.require("match_matrix, first argument", result[0], result[1]);
        real_y.require("match_matrix, second argument", result[0], result[2]);
    }

    /// real_x and real_y: the lengths, or nullptr if everything is real.
    template <class T>
    static void compute(const shape_of_rank<3>& shape, std::size_t D, const std::size_t* real_x,
                        const std::size_t* real_y, const T* x, const T* y, T* to)
    {
        const std::size_t S = shape[1], N = shape[2];
        const auto rows = [&](std::size_t first, std::size_t last, std::size_t) {
            for (std::size_t b = first; b < last; ++b) {
                const std::size_t xs = real_x != nullptr ? real_x[b] : S, ys = real_y != nullptr ? real_y[b] : N;
                for (std::size_t s = 0; s < S; ++s) {
                    for (std::size_t t = 0; t < N; ++t) {
                        const bool real = s < xs && t < ys;
                        to[(b * S + s) * N + t] = real ? similarity(D, x + (b * S + s) * D, y + (b * N + t) * D) : T(0);
                    }
                }
            }
        };
        parallel_for(shape[0], 1 + 65536 / (S * N * D + 1), rows);
    }
    template <class T>
    static T similarity(std::size_t D, const T* x, const T* y)
    {
        return 1 / (1 + std::sqrt(kernels::squared_distance(D, x, y)));
    }

    template <plain_tensor X, plain_tensor Y>
    auto plain(const X& x, const Y& y) const
    {
        auto to = storage_for<element_of<X>, 3>(result_shape(shape_of(x), shape_of(y)));
        compute<element_of<X>>(to.shape(), shape_of(x)[2], nullptr, nullptr, view_of(x).data, view_of(y).data,
                               to.data());
        return to;
    }
    template <plain_tensor X, plain_tensor Y>
    auto plain(const X& x, const Y& y, const lengths& real_x, const lengths& real_y) const
    {
        auto to = storage_for<element_of<X>, 3>(result_shape(shape_of(x), shape_of(y)));
        check(to.shape(), real_x, real_y);
        compute<element_of<X>>(to.shape(), shape_of(x)[2], real_x.data(), real_y.data(), view_of(x).data,
                               view_of(y).data, to.data());
        return to;
    }
};
inline constexpr match_matrix_op match_matrix{};

/// The same of one query a row: q [B,D], k [B,T,D] -> [B,T].
struct match_each_op : operation<match_each_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<2>& q, const shape_of_rank<3>& k)
    {
        require_shape("match_each", "the query", q, {k[0], k[2]}, "one row for each row of the keys ", k);
        return {k[0], k[1]};
    }

    template <plain_tensor Q, plain_tensor K>
    auto plain(const Q& q, const K& k) const
    {
        array<element_of<Q>, 2> to(result_shape(shape_of(q), shape_of(k)));
        const auto [B, positions, D] = shape_of(k);
        match_matrix_op::compute<element_of<Q>>({B, 1, positions}, D, nullptr, nullptr, view_of(q).data,
                                                view_of(k).data, to.data());
        return to;
    }
};
inline constexpr match_each_op match_each{};

}  // namespace heed::ops
