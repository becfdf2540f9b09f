// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <heed/core/errors.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/rows.hpp>
#include <heed/simd/simd.hpp>

namespace heed::ops {

/// y = exp(p − ‖x‖² / 2) / √m for each row: p [...,m], the products of x [...,D] with m random vectors.
///
///     ∂p += y ∂y,  ∂x −= x Σ_i y_i ∂y_i
///
/// With vectors ω ~ N(0, 1), y(a) · y(b) is exp(a · b) on average: Choromanski et al. 2021, lemma 1.
struct positive_features_op : operation<positive_features_op> {
    static constexpr ranks takes{1};

    static auto shape(const auto& products, const auto& x)
    {
        constexpr std::size_t R = rank_of<decltype(products)>;
        auto must = products.shape;
        must[R - 1] = x.shape[R - 1];
        require_shape("positive_features", "x", x.shape, must, "one row for each row of the products ", products.shape);
        return products.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> products, in<T, R> x, out<T, R> y)
    {
        const std::size_t m = products.shape[R - 1], D = x.shape[R - 1];
        detail::each_row(detail::rows_of(x.shape), 8 * m, [=](std::size_t i) {
            const T* const row = x.data + i * D;
            const T by = kernels::dot(D, row, row) / 2 + std::log(static_cast<plain_number<T>>(m)) / 2;
            simd::transform(
                m, y.data + i * m, [by](auto p) { return simd::exp(p - by); }, products.data + i * m);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> products, in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_products,
                         adjoint<T, R> d_x)
    {
        const std::size_t m = products.shape[R - 1], D = x.shape[R - 1];
        detail::each_row(detail::rows_of(x.shape), 2 * m, [=](std::size_t i) {
            const T *const is = y.data + i * m, *const back = d_y.data + i * m;
            if (d_products) {
                T* const d = d_products.data + i * m;
                simd::transform(
                    m, d, [](auto sum, auto v, auto w) { return simd::fma(v, w, sum); }, static_cast<const T*>(d), is,
                    back);
            }
            if (d_x) kernels::add_scaled(D, d_x.data + i * D, -kernels::dot(m, is, back), x.data + i * D);
        });
    }
};
inline constexpr positive_features_op positive_features{};

}  // namespace heed::ops
