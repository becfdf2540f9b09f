// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <heed/core/mask.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// Where in a sentence a query looks, and how weights fall off around that place.
namespace heed::ops {

/// p_b = S_b · sigmoid(v · z_b), a place within each row, S_b its length: z [B,P], v [P] -> [B].
struct place_in_row_op : operation<place_in_row_op> {
    static void check(const shape_of_rank<2>& z, const shape_of_rank<1>& v, const lengths& real)
    {
        require_shape("place_in_row", "v", v, {z[1]}, "as long as the rows of z ", z);
        if (z[0] != real.batch()) {
            throw shape_error("place_in_row: z is " + shape_text(z) + " but there are " + std::to_string(real.batch()) +
                              " sentences; give one row for each of them");
        }
    }

    template <class T>
    static void compute(std::size_t rows, std::size_t n, const std::size_t* real, const T* z, const T* v, T* p)
    {
        for (std::size_t b = 0; b < rows; ++b) p[b] = kernels::dot(n, z + b * n, v);
        simd::transform(
            rows, p, [](auto x) { return simd::sigmoid(x); }, static_cast<const T*>(p));
        for (std::size_t b = 0; b < rows; ++b) p[b] *= static_cast<T>(real[b]);
    }

    template <plain_tensor Z, plain_tensor V>
    auto plain(const Z& z, const V& v, const lengths& real) const
    {
        using T = element_of<Z>;
        check(shape_of(z), shape_of(v), real);
        array<T, 1> p(shape_of_rank<1>{real.batch()});
        compute<T>(real.batch(), shape_of(v)[0], real.data(), view_of(z).data, view_of(v).data, p.data());
        return p;
    }
};
inline constexpr place_in_row_op place_in_row{};

/// y[b,j] = x[b,j] · exp(−(s − p_b)² / 2σ²), s = begin_b + j being the place of j in the sentence: x [B,W], or [B,W,N]
/// with the same factor for all of a position's numbers; p [B].
struct gaussian_op : operation<gaussian_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& x, const shape_of_rank<1>& p, const std::vector<std::size_t>& begin)
    {
        static_assert(R == 2 || R == 3, "heed: gaussian takes weights [B,W] or [B,W,N]");
        require_shape("gaussian", "the centre", p, {x[0]}, "one for each row of the weights ", x);
        require_shape<1>("gaussian", "the list of first positions", {begin.size()}, {x[0]}, "one for each row");
    }

    /// exp(−(s − p)² / 2σ²) for each position: [B,W].
    template <class T>
    static void factors(std::size_t rows, std::size_t positions, const T* p, const std::size_t* begin, T sigma, T* f)
    {
        const T by = -1 / (2 * sigma * sigma);
        for (std::size_t b = 0; b < rows; ++b) {
            for (std::size_t j = 0; j < positions; ++j) {
                const T off = static_cast<T>(begin[b] + j) - p[b];
                f[b * positions + j] = by * off * off;
            }
        }
        simd::transform(
            rows * positions, f, [](auto x) { return simd::exp(x); }, static_cast<const T*>(f));
    }

    template <class T>
    static void compute(std::size_t positions, std::size_t width, const T* f, const T* x, T* y)
    {
        for (std::size_t i = 0; i < positions; ++i) {
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) y[k] = x[k] * f[i];
        }
    }

    template <plain_tensor X, plain_tensor P>
    auto plain(const X& x, const P& p, const std::vector<std::size_t>& begin, double sigma) const
    {
        using T = element_of<X>;
        const auto shape = shape_of(x);
        check(shape, shape_of(p), begin);
        auto f = storage_for<T, 2>(shape_of_rank<2>{shape[0], shape[1]});
        factors(shape[0], shape[1], static_cast<const T*>(view_of(p).data), begin.data(), static_cast<T>(sigma),
                f.data());
        auto y = storage_for<T, rank_of<X>>(shape);
        compute<T>(f.size(), rank_of<X> == 3 ? shape[rank_of<X> - 1] : 1, f.data(), view_of(x).data, y.data());
        return y;
    }
};
inline constexpr gaussian_op gaussian{};

/// y = x / Σ x over the positions of each row: x [B,T], or [B,T,N] with a sum for each of a position's numbers. Zeros
/// where the sum is 0.
struct divide_by_sum_op : operation<divide_by_sum_op> {
    /// sums [B,N], one for each column of each row.
    template <class T>
    static void compute(const shape_of_rank<3>& shape, const T* x, T* sums, T* y)
    {
        const auto [B, positions, N] = shape;
        std::fill_n(sums, B * N, T(0));
        for (std::size_t i = 0; i < B * positions; ++i) kernels::add(N, sums + i / positions * N, x + i * N);
        for (std::size_t i = 0; i < B * positions; ++i) {
            simd::transform(
                N, y + i * N, [](auto v, auto s) { return simd::select(s == T(0), simd::splat<T>(0), v / s); },
                x + i * N, static_cast<const T*>(sums + i / positions * N));
        }
    }

    template <std::size_t R>
    static shape_of_rank<3> as_columns(const shape_of_rank<R>& x)
    {
        static_assert(R == 2 || R == 3, "heed: divide_by_sum takes weights [B,T] or [B,T,N]");
        return {x[0], x[1], R == 3 ? x[R - 1] : 1};
    }

    template <plain_tensor X>
    auto plain(const X& x) const
    {
        using T = element_of<X>;
        const auto shape = as_columns(shape_of(x));
        auto sums = storage_for<T, 2>(shape_of_rank<2>{shape[0], shape[2]});
        auto y = storage_for<T, rank_of<X>>(shape_of(x));
        compute<T>(shape, view_of(x).data, sums.data(), y.data());
        return y;
    }
};
inline constexpr divide_by_sum_op divide_by_sum{};

}  // namespace heed::ops
