// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/score/dot.hpp>
#include <heed/simd/simd.hpp>

namespace heed::inline HEED_TARGET::ops {

/// y = exp(p − ‖x‖² / 2) / √m for each row: p [...,m], the products of x [...,D] with m random vectors.
///
///     ∂p += y ∂y,  ∂x −= x Σ_i y_i ∂y_i
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

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// Scores a query against a key by the inner product of their features.
///
///     e_j = φ(q) · φ(k_j)                     Katharopoulos et al. 2020, eq. 4
///
///     attention linear{score::kernel{score::elu_plus_one{}}, normalize::ratio{}, combine::weighted_sum{}};
///
/// φ is any function from [...,D] to nonnegative features [...,F]; normalize::ratio then turns the scores into weights,
/// and many queries take linear time (attention/execute/linear.hpp). Q = D. The parameters are φ's.
template <class Features>
struct kernel : inner_product<kernel<Features>> {
    Features features;

    explicit kernel(Features map) : features(std::move(map)) {}

    static constexpr score_traits traits{
        .weights = weight_kind::per_position, .prepares_alike = std::is_empty_v<Features>, .nonnegative = true};

    auto prepare(const tensor auto& annotations) const { return features(annotations); }
    auto project(const tensor auto& query) const { return features(query); }

    static auto parameters(auto& self, auto&& visit)
    {
        auto features = visit("features", self.features);
        return score::kernel<decltype(features)>{std::move(features)};
    }
};

/// φ(x) = elu(x) + 1, one feature for each dimension: Katharopoulos et al. 2020, eq. 7. No parameters.
struct elu_plus_one {
    auto operator()(const tensor auto& x) const { return ops::elu_plus_one(x); }  // [...,D] -> [...,D]
    static auto parameters(auto&, auto&&) { return score::elu_plus_one{}; }
};

/// Random features: the expectation of their inner product is exp(q · k / √D), so that attention estimates softmax's
/// (Performer):
///
///     φ(x) = exp(x' Ω − ‖x'‖² / 2) / √m,  x' = x / D^¼        Choromanski et al. 2021, lemma 1 and eq. 5
///
///     score::positive_random{nn::gaussian<float>(random, D, m, 1)}
///
/// The columns of Ω [D,m] are independent and normal; orthogonal columns, as in the paper, improve the estimate. Ω is a
/// parameter; it stays fixed unless it is given to an optimizer. Deviations from the authors' program: no stabilizing
/// constant is subtracted in the exponent, so ‖x‖² / √D should stay below about 100 in float, and 1e-6 is not added.
template <class Matrix>
struct positive_random {
    Matrix Omega;  // [D,m]

    auto operator()(const tensor auto& x) const  // [...,D] -> [...,m]
    {
        const auto scaled = ops::scale(x, 1 / std::sqrt(std::sqrt(static_cast<double>(shape_of(x).back()))));
        return ops::positive_features(ops::linear(scaled, Omega), scaled);
    }

    static auto parameters(auto& self, auto&& visit) { return score::positive_random{visit("Omega", self.Omega)}; }
};
template <class Matrix>
positive_random(Matrix) -> positive_random<Matrix>;

}  // namespace heed::inline HEED_TARGET::score
