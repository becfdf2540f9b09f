// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <heed/core/family.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/state.hpp>
#include <heed/score/location.hpp>

namespace heed::inline HEED_TARGET::ops {

namespace functions {

/// κ + exp(x): centers that only move forward. Where ∂y is 0, so is ∂x, even if exp(x) is infinite.
struct move_forward {
    static auto value(auto place, auto x) { return place + simd::exp(x); }
    static auto slope_a(auto, auto, auto, auto dy) { return dy; }
    static auto slope_b(auto, auto x, auto, auto dy) { return simd::select(dy == 0, dy, simd::exp(x) * dy); }
};

}  // namespace functions

/// y = κ + exp(x): κ and x [...] -> [...]               ∂κ += ∂y,  ∂x += exp(x) ∂y
inline constexpr binary<functions::move_forward> advance_means{"advance_means", "the steps", "one for each center"};

/// φ[b,t] = Σ_k exp(a_bk − exp(c_bk) (κ_bk − u_bt)²), bells of height exp(a) and width exp(−c/2) around κ: shapes
/// [B,2K], all a, then all c; κ [B,K]; positions u [B,T,1] -> [B,T].
///
///     with the terms f_tk of the sum, g_tk = f_tk ∂φ_t and the distances δ_tk = κ_k − u_t:
///     ∂a_k += Σ_t g_tk,  ∂c_k −= exp(c_k) Σ_t g_tk δ_tk²,  ∂κ_k −= 2 exp(c_k) Σ_t g_tk δ_tk,  ∂u_t likewise, negated
///
/// a above 40 counts as 40, with derivative 0: exp(a) would overflow.
struct gaussian_mixture_op : operation<gaussian_mixture_op> {
    static shape_of_rank<2> shape(const auto& shapes, const auto& centers, const auto& places)
    {
        const std::size_t B = places.shape[0], K = centers.shape[1];
        require_shape("gaussian_mixture", "the positions", places.shape, {B, places.shape[1], 1},
                      "one number for each position");
        require_shape("gaussian_mixture", "the centers", centers.shape, {B, K},
                      "one row for each row of the positions");
        require_shape("gaussian_mixture", "heights and widths", shapes.shape, {B, 2 * K},
                      "two numbers for each center, ", centers.shape);
        return {B, places.shape[1]};
    }

    template <class T>
    static void forward(in<T, 2> shapes, in<T, 2> centers, in<T, 3> places, out<T, 2> y)
    {
        const std::size_t positions = y.shape[1], K = centers.shape[1];
        detail::each_row(y.shape[0], 8 * positions * K, [=](std::size_t b) {
            T* const sum = y.data + b * positions;
            kernels::detail::zero(sum, positions);
            for (std::size_t k = 0; k < K; ++k) {
                const bell<T> one(shapes, centers, b, k);
                simd::transform(
                    positions, sum, [one](auto s, auto u) { return s + one.at(one.center - u); },
                    static_cast<const T*>(sum), places.data + b * positions);
            }
        });
    }

    template <class T>
    static void backward(in<T, 2> shapes, in<T, 2> centers, in<T, 3> places, in<T, 2> y, in<T, 2> d_y,
                         adjoint<T, 2> d_shapes, adjoint<T, 2> d_centers, adjoint<T, 3> d_places)
    {
        using simd::vec;
        const std::size_t positions = y.shape[1], K = centers.shape[1];
        detail::each_row(y.shape[0], 16 * positions * K, [=](std::size_t b) {
            for (std::size_t k = 0; k < K; ++k) {
                const bell<T> one(shapes, centers, b, k);
                kernels::block_sum<T> heights, slopes, spreads;  // Σ g, Σ g δ, Σ g δ²
                simd::each_register<T>(positions, [&, one](std::size_t t, std::size_t count) {
                    const std::size_t i = b * positions + t;
                    const vec<T> off = one.center - simd::load_first(places.data + i, count), f = one.at(off);
                    // Terms that are 0 stay 0, at any distance and for any ∂y.
                    const vec<T> d = simd::fill_behind<T>(simd::load_first(d_y.data + i, count), count, T(0));
                    const vec<T> g = simd::select(f == 0, vec<T>{}, f * d), away = simd::select(f == 0, vec<T>{}, off);
                    heights.add(g);
                    slopes.add(g * away);
                    spreads.add(g * away * away);
                    if (d_places) {
                        T* const to = d_places.data + i;
                        const vec<T> moved = simd::select(g * away == 0, vec<T>{}, 2 * one.narrow * g * away);
                        simd::store_first(to, simd::load_first(to, count) + moved, count);
                    }
                });
                if (d_shapes) {
                    if (!(shapes.data[b * 2 * K + k] > highest<T>))
                        d_shapes.data[b * 2 * K + k] += simd::sum(heights.get());
                    d_shapes.data[b * 2 * K + K + k] -= times(one.narrow, simd::sum(spreads.get()));
                }
                if (d_centers) d_centers.data[b * K + k] -= 2 * times(one.narrow, simd::sum(slopes.get()));
            }
        });
    }

private:
    /// The maximum log height: sums of heights and of their derivatives stay finite in float.
    template <class T>
    static constexpr T highest = 40;

    template <class T>
    struct bell {
        T height, narrow, center;  // a, exp(c), κ

        bell(in<T, 2> shapes, in<T, 2> centers, std::size_t b, std::size_t k)
            : height(std::min(shapes.data[b * shapes.shape[1] + k], highest<T>)),
              narrow(std::max(narrowness(shapes.data[b * shapes.shape[1] + centers.shape[1] + k]),
                              std::numeric_limits<T>::min())),  // 0 · ∞ far away would be NaN
              center(centers.data[b * centers.shape[1] + k])
        {}

        static T narrowness(const T& c)
        {
            using std::exp;
            return exp(c);
        }

        /// At the center, the height, even if the bell is infinitely narrow.
        auto at(auto off) const
        {
            const auto away = off * off;
            return simd::exp(simd::select(away == 0, off * 0 + height, height - narrow * away));
        }
    };

    template <class T>
    static T times(T narrow, T x)
    {
        return x == 0 ? T(0) : narrow * x;  // narrow may be infinite
    }
};
inline constexpr gaussian_mixture_op gaussian_mixture{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::score {

/// The state of a mixture of Gaussians.
template <class Centers>
struct mixture_state {
    Centers centers;  // [B,K] κ

    auto map(auto&& f, const auto&... others) const
    {
        if constexpr (spares_rows<decltype(f)>) {
            return *this;  // a window cuts positions, not this state
        } else {
            return score::mixture_state{f(centers, others.centers...)};
        }
    }
};
template <class Centers>
mixture_state(Centers) -> mixture_state<Centers>;

/// Soft windows that move along the sentence at a speed set by the query; the annotations are not read.
///
///     φ(t,u) = Σ_k α_k exp(−β_k (κ_k − u)²)                       Graves 2013, §5.1
///     (α̂, β̂, κ̂) = W h_t + b,  α = exp(α̂),  β = exp(β̂),  κ_t = κ_{t−1} + exp(κ̂)
///
///     score::gaussian_mixture{W, b, W_kappa, b_kappa}             W [Q,2K]: α̂, then β̂; W_kappa [Q,K]: κ̂
///
/// Positions u count from 1, and κ_0 = 0. Graves takes φ as the weights, without normalizing it:
/// `normalize::retention{}`, whose decay of 1 leaves scores unchanged; `normalize::ratio{}` divides them by their sum.
/// After a step κ_t is `next.score.centers` [B,K]: once all centers are beyond the last position, the whole sentence
/// has been read.
///
/// The paper's single linear map is split in two, as windows move before any comparison. With b_kappa below 0 they move
/// by less than a position at each step. α̂ above 40 counts as 40, to prevent overflow. Throws shape_error if W and
/// W_kappa do not match, or if there is no component.
template <class Matrix, class Vector>
struct gaussian_mixture {
    Matrix W;        // [Q,2K]
    Vector b;        // [2K]
    Matrix W_kappa;  // [Q,K]
    Vector b_kappa;  // [K]

    static constexpr score_traits traits{.weights = weight_kind::per_position, .nonnegative = true};

    auto prepare(const tensor auto& annotations, std::size_t first = 0) const  // [B,T,D] -> [B,T,1]
    {
        return score::position_numbers(W, annotations, first + 1);
    }

    auto start(const auto& memory) const
    {
        const std::size_t K = shape_of(W_kappa)[1];
        if (K == 0 || shape_of(W)[1] != 2 * K) {
            throw shape_error("score::gaussian_mixture: W is " + shape_text(shape_of(W)) + " and W_kappa is " +
                              shape_text(shape_of(W_kappa)) +
                              "; W needs two columns for each column of W_kappa, and W_kappa at least one");
        }
        const shape_of_rank<2> shape{memory.batch(), K};
        return score::mixture_state{constant_like(detail::taped_among(memory.keys, W_kappa), shape, 0.0)};
    }

    auto observe_memory(const auto& state, const auto& at) const
    {
        return score::mixture_state{
            ops::advance_means(state.centers, ops::linear(detail::state_of(at.query()), W_kappa, b_kappa))};
    }

    auto project(const tensor auto& query) const  // [B,Q] -> [B,2K]
    {
        return ops::linear(query, W, b);
    }

    auto match(const tensor auto& projected, const tensor auto& keys, const auto& state) const  // [B,T]
    {
        return ops::gaussian_mixture(projected, state.centers, keys);
    }

    auto operator()(const tensor auto& query, const tensor auto& keys,
                    const auto& state) const  // state: after observe_memory
    {
        return match(project(query), keys, state);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return score::gaussian_mixture{visit("W", self.W), visit("b", self.b), visit("W_kappa", self.W_kappa),
                                       visit("b_kappa", self.b_kappa)};
    }
};

template <class Matrix, class Vector, class Matrix2, class Vector2>
gaussian_mixture(Matrix, Vector, Matrix2, Vector2)
    -> gaussian_mixture<joint_tensor<Matrix, Matrix2>, joint_tensor<Vector, Vector2>>;

}  // namespace heed::inline HEED_TARGET::score
