// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include <heed/kernels/coverage.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>

/// What scores that remember the weights of earlier steps are made of.
namespace heed::ops {

/// One step of coverage embeddings, see kernels/coverage.hpp: word [B,3N], weights α [B,T], by_weight [3N],
/// products c U [B,T,3N], coverage c [B,T,N] -> the new coverage [B,T,N].
struct coverage_gru_op : operation<coverage_gru_op> {
    static void check(const shape_of_rank<2>& word, const shape_of_rank<2>& weights, const shape_of_rank<1>& by_weight,
                      const shape_of_rank<3>& products, const shape_of_rank<3>& coverage)
    {
        const auto [B, T, N] = coverage;
        require_shape("coverage_gru", "the word", word, {B, 3 * N}, "three gates for each row of the coverage ",
                      coverage);
        require_shape("coverage_gru", "the weights", weights, {B, T}, "one for each position of the coverage");
        require_shape("coverage_gru", "the vector for the weights", by_weight, {3 * N}, "one number for each gate");
        require_shape("coverage_gru", "the product", products, {B, T, 3 * N}, "three gates for each position");
    }

    template <plain_tensor Y, plain_tensor A, plain_tensor W, plain_tensor U, plain_tensor C>
    auto plain(const Y& word, const A& weights, const W& by_weight, const U& products, const C& coverage) const
    {
        using T = element_of<C>;
        check(shape_of(word), shape_of(weights), shape_of(by_weight), shape_of(products), shape_of(coverage));
        const auto [B, positions, N] = shape_of(coverage);
        auto next = storage_for<T, 3>(shape_of(coverage));
        array<T, 1> gates(shape_of_rank<1>{B * 3 * N});
        kernels::coverage_update<T>({B, positions, N, view_of(word).data, view_of(weights).data,
                                     view_of(by_weight).data, view_of(products).data, view_of(coverage).data},
                                    gates.data(), next.data());
        return next;
    }
};
inline constexpr coverage_gru_op coverage_gru{};

/// keys[b,t,:] + x[b,t] v: keys [B,T,A], x [B,T], v [A] -> [B,T,A].
struct add_outer_op : operation<add_outer_op> {
    static void check(const shape_of_rank<3>& keys, const shape_of_rank<2>& x, const shape_of_rank<1>& v)
    {
        require_shape("add_outer", "x", x, {keys[0], keys[1]}, "one for each position of the keys ", keys);
        require_shape("add_outer", "v", v, {keys[2]}, "as long as a key of ", keys);
    }

    template <class T>
    static void compute(std::size_t rows, std::size_t width, const T* keys, const T* x, const T* v, T* y)
    {
        for (std::size_t i = 0; i < rows; ++i) {
            simd::transform(
                width, y + i * width, [f = simd::splat<T>(x[i])](auto k, auto u) { return simd::fma(f, u, k); },
                keys + i * width, v);
        }
    }

    template <plain_tensor K, plain_tensor X, plain_tensor V>
    auto plain(const K& keys, const X& x, const V& v) const
    {
        using T = element_of<K>;
        const auto shape = shape_of(keys);
        check(shape, shape_of(x), shape_of(v));
        auto y = storage_for<T, 3>(shape);
        compute<T>(shape[0] * shape[1], shape[2], view_of(keys).data, view_of(x).data, view_of(v).data, y.data());
        return y;
    }
};
inline constexpr add_outer_op add_outer{};

/// C + α / Φ: what a position has got, in parts of what it should get. [B,T] each. Φ counts for at least `least`:
/// nothing is divided by 0.
struct add_share_op : operation<add_share_op> {
    static constexpr double least = 1e-6;

    static void check(const shape_of_rank<2>& coverage, const shape_of_rank<2>& weights,
                      const shape_of_rank<2>& fertility)
    {
        require_shape("add_share", "the weights", weights, coverage, "one for each number of the coverage");
        require_shape("add_share", "the fertility", fertility, coverage, "one for each number of the coverage");
    }

    template <class T>
    static void compute(std::size_t n, const T* coverage, const T* weights, const T* fertility, T* y)
    {
        for (std::size_t i = 0; i < n; ++i) y[i] = coverage[i] + weights[i] / std::max(fertility[i], T(least));
    }

    template <plain_tensor C, plain_tensor A, plain_tensor F>
    auto plain(const C& coverage, const A& weights, const F& fertility) const
    {
        using T = element_of<C>;
        check(shape_of(coverage), shape_of(weights), shape_of(fertility));
        auto y = storage_for<T, 2>(shape_of(coverage));
        compute<T>(y.size(), view_of(coverage).data, view_of(weights).data, view_of(fertility).data, y.data());
        return y;
    }
};
inline constexpr add_share_op add_share{};

/// Each position with its neighbours: x [B,T] -> y [B,T,2k+1], y[b,t,i] = x[b,t+i-k], 0 beyond the sentence.
struct neighbourhood_op : operation<neighbourhood_op> {
    /// copy(offset in x, offset in y, elements) for each position.
    template <class Copy>
    static void each_position(const shape_of_rank<2>& x, std::size_t reach, Copy&& copy)
    {
        for (std::size_t b = 0; b < x[0]; ++b) {
            for (std::size_t t = 0; t < x[1]; ++t) {
                const std::size_t first = t > reach ? t - reach : 0, last = std::min(x[1], t + reach + 1);
                copy(b * x[1] + first, (b * x[1] + t) * (2 * reach + 1) + first + reach - t, last - first);
            }
        }
    }

    template <plain_tensor X>
    auto plain(const X& x, std::size_t reach) const
    {
        using T = element_of<X>;
        const shape_of_rank<2> shape = shape_of(x);
        auto y = filled<T, 3>({shape[0], shape[1], 2 * reach + 1}, T(0));
        each_position(shape, reach, [&](std::size_t from, std::size_t to, std::size_t n) {
            std::copy_n(view_of(x).data + from, n, y.data() + to);
        });
        return y;
    }
};
inline constexpr neighbourhood_op neighbourhood{};

/// k filters of odd width r slide over the positions: x [B,T], F [k,r] -> y [B,T,k],
/// y[b,t,n] = Σ_i F[n,i] x[b,t+i-(r-1)/2], zeros beyond the sentence. Filters are not mirrored, as in every toolkit.
struct convolve_op : operation<convolve_op> {
    static void check(const shape_of_rank<2>& filters)
    {
        if (filters[1] % 2 == 0) {
            throw shape_error("convolve: the filters are " + shape_text(filters) +
                              ", but their width must be odd: as much to the left of a position as to the right");
        }
    }

    /// A row of x with (r-1)/2 zeros before and behind it.
    template <class T>
    static void pad(std::size_t positions, std::size_t reach, const T* x, T* padded)
    {
        std::fill_n(padded, reach, T(0));
        std::copy_n(x, positions, padded + reach);
        std::fill_n(padded + reach + positions, reach, T(0));
    }

    /// padded: scratch of T + r - 1.
    template <class T>
    static void compute(const shape_of_rank<2>& shape, const shape_of_rank<2>& filters, const T* x, const T* F,
                        T* padded, T* y)
    {
        const auto [k, r] = filters;
        for (std::size_t b = 0; b < shape[0]; ++b) {
            pad(shape[1], r / 2, x + b * shape[1], padded);
            for (std::size_t t = 0; t < shape[1]; ++t) {
                for (std::size_t n = 0; n < k; ++n) *y++ = kernels::dot(r, padded + t, F + n * r);
            }
        }
    }

    template <plain_tensor X, plain_tensor M>
    auto plain(const X& x, const M& filters) const
    {
        using T = element_of<X>;
        const shape_of_rank<2> shape = shape_of(x), form = shape_of(filters);
        check(form);
        auto y = storage_for<T, 3>(shape_of_rank<3>{shape[0], shape[1], form[0]});
        array<T, 1> padded(shape_of_rank<1>{shape[1] + form[1] - 1});
        compute<T>(shape, form, view_of(x).data, view_of(filters).data, padded.data(), y.data());
        return y;
    }
};
inline constexpr convolve_op convolve{};

}  // namespace heed::ops
