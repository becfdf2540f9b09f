// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>

#include <heed/core/mask.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/rows.hpp>

/// The place in a sentence that a query looks at, and how weights decay around it.
namespace heed::ops {

/// p_b = S_b · sigmoid(v · z_b), a place within each row, S_b its length: z [B,P], v [P] -> [B].
///
///     ∂a_b = p_b (1 − p_b / S_b) ∂p_b with a_b = v · z_b,  ∂z_b += ∂a_b v,  ∂v += Σ_b ∂a_b z_b
///
/// A row of length 0 has no place to look at: no gradient comes back from it.
struct place_in_row_op : operation<place_in_row_op> {
    static shape_of_rank<1> shape(const auto& z, const auto& v, const lengths_view& real)
    {
        require_shape("place_in_row", "v", v.shape, {z.shape[1]}, "as long as the rows of z ", z.shape);
        if (z.shape[0] != real.batch()) {
            throw shape_error("place_in_row: z is " + shape_text(z.shape) + " but there are " +
                              std::to_string(real.batch()) + " sentences; give one row for each of them");
        }
        return {real.batch()};
    }

    template <class T>
    static void forward(in<T, 2> z, in<T, 1> v, const lengths_view& real, out<T, 1> p)
    {
        const std::size_t rows = p.size(), n = v.size();
        for (std::size_t b = 0; b < rows; ++b) p.data[b] = kernels::dot(n, z.data + b * n, v.data);
        simd::transform(
            rows, p.data, [](auto x) { return simd::sigmoid(x); }, static_cast<const T*>(p.data));
        for (std::size_t b = 0; b < rows; ++b) p.data[b] *= static_cast<T>(real[b]);
    }

    template <class T>
    static void backward(in<T, 2> z, in<T, 1> v, const lengths_view& real, in<T, 1> p, in<T, 1> d_p, adjoint<T, 2> d_z,
                         adjoint<T, 1> d_v)
    {
        const std::size_t n = v.size();
        for (std::size_t b = 0; b < p.size(); ++b) {
            if (real[b] == 0) continue;
            const T d_a = p.data[b] * (1 - p.data[b] / static_cast<T>(real[b])) * d_p.data[b];
            if (d_z) kernels::add_scaled(n, d_z.data + b * n, d_a, v.data);
            if (d_v) kernels::add_scaled(n, d_v.data, d_a, z.data + b * n);
        }
    }
};
inline constexpr place_in_row_op place_in_row{};

/// y[b,j] = x[b,j] f[b,j], f[b,j] = exp(−(s − p_b)² / 2σ²), where s = begin_b + j is the place of j in the sentence:
/// x [B,W], or [B,W,N] with one factor per position; p [B].
///
///     ∂x[b,j] += f[b,j] ∂y[b,j],  ∂p_b += Σ_j y[b,j] ∂y[b,j] (s − p_b) / σ²
struct gaussian_op : operation<gaussian_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, const auto& p, std::span<const std::size_t> begin, double)
    {
        require_shape("gaussian", "the centre", p.shape, {x.shape[0]}, "one for each row of the weights ", x.shape);
        require_shape<1>("gaussian", "the list of first positions", {begin.size()}, {x.shape[0]}, "one for each row");
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 1> p, std::span<const std::size_t> begin, double sigma, out<T, R> y)
    {
        scratch here;
        const T* const f = factors(x.shape, p, begin, static_cast<T>(sigma), here);
        const std::size_t width = detail::width_of(x.shape);
        for (std::size_t i = 0; i < x.shape[0] * x.shape[1]; ++i) {
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) y.data[k] = x.data[k] * f[i];
        }
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, 1> p, std::span<const std::size_t> begin, double by, in<T, R> y,
                         in<T, R> d_y, adjoint<T, R> d_x, adjoint<T, 1> d_p)
    {
        scratch here;
        const T sigma = static_cast<T>(by);
        const T* const f = d_x ? factors(x.shape, p, begin, sigma, here) : nullptr;
        const std::size_t positions = x.shape[1], width = detail::width_of(x.shape);
        for (std::size_t b = 0; b < x.shape[0]; ++b) {
            in_double<T> of_p = 0;
            for (std::size_t i = b * positions; i < (b + 1) * positions; ++i) {
                if (d_x) kernels::add_scaled(width, d_x.data + i * width, f[i], d_y.data + i * width);
                if (!d_p) continue;
                const T off = static_cast<T>(begin[b] + i % positions) - p.data[b];
                T sum = 0;
                for (std::size_t k = i * width; k < (i + 1) * width; ++k) sum += y.data[k] * d_y.data[k];
                of_p += static_cast<in_double<T>>(sum * off / (sigma * sigma));
            }
            if (d_p) d_p.data[b] += static_cast<T>(of_p);
        }
    }

private:
    /// exp(−(s − p)² / 2σ²) for each position: [B,W].
    template <class T, std::size_t R>
    static const T* factors(const shape_of_rank<R>& x, in<T, 1> p, std::span<const std::size_t> begin, T sigma,
                            scratch& here)
    {
        const std::size_t rows = x[0], positions = x[1];
        T* const f = here.take<T>(rows * positions);
        const T by = -1 / (2 * sigma * sigma);
        for (std::size_t b = 0; b < rows; ++b) {
            for (std::size_t j = 0; j < positions; ++j) {
                const T off = static_cast<T>(begin[b] + j) - p.data[b];
                f[b * positions + j] = by * off * off;
            }
        }
        simd::transform(
            rows * positions, f, [](auto e) { return simd::exp(e); }, static_cast<const T*>(f));
        return f;
    }
};
inline constexpr gaussian_op gaussian{};

/// y = κ + exp(x), elementwise: κ and x [...] -> [...]. Places that only move forward.
///
///     ∂κ += ∂y,  ∂x += exp(x) ∂y, and nothing where ∂y is 0: exp(x) may be infinite
struct move_places_op : operation<move_places_op> {
    static auto shape(const auto& places, const auto& steps)
    {
        require_shape("move_places", "the steps", steps.shape, places.shape, "one for each place");
        return places.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> places, in<T, R> steps, out<T, R> y)
    {
        simd::transform(
            y.size(), y.data, [](auto p, auto x) { return p + simd::exp(x); }, places.data, steps.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R>, in<T, R> steps, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_places,
                         adjoint<T, R> d_steps)
    {
        if (d_places) kernels::add(y.size(), d_places.data, d_y.data);
        if (!d_steps) return;
        simd::transform(
            y.size(), d_steps.data,
            [](auto sum, auto x, auto d) { return sum + simd::select(d == 0, d, simd::exp(x) * d); },
            static_cast<const T*>(d_steps.data), steps.data, d_y.data);
    }
};
inline constexpr move_places_op move_places{};

/// φ[b,t] = Σ_k exp(a_bk − exp(c_bk) (κ_bk − u_bt)²), bells of height exp(a) and width exp(−c/2) around κ: shapes
/// [B,2K], all a and then all c; κ [B,K]; places u [B,T,1] -> [B,T].
///
///     with the terms f_tk of the sum, g_tk = f_tk ∂φ_t and the distances δ_tk = κ_k − u_t:
///     ∂a_k += Σ_t g_tk,  ∂c_k −= exp(c_k) Σ_t g_tk δ_tk²,  ∂κ_k −= 2 exp(c_k) Σ_t g_tk δ_tk,  ∂u_t likewise, negated
///
/// a above 40 counts as 40, without a derivative: exp(a) would overflow.
struct gaussian_mixture_op : operation<gaussian_mixture_op> {
    static shape_of_rank<2> shape(const auto& shapes, const auto& centres, const auto& places)
    {
        const std::size_t B = places.shape[0], K = centres.shape[1];
        require_shape("gaussian_mixture", "the places", places.shape, {B, places.shape[1], 1},
                      "one number for each position");
        require_shape("gaussian_mixture", "the centres", centres.shape, {B, K}, "one row for each row of the places");
        require_shape("gaussian_mixture", "heights and widths", shapes.shape, {B, 2 * K},
                      "two numbers for each of the centres ", centres.shape);
        return {B, places.shape[1]};
    }

    template <class T>
    static void forward(in<T, 2> shapes, in<T, 2> centres, in<T, 3> places, out<T, 2> y)
    {
        const std::size_t positions = y.shape[1], K = centres.shape[1];
        detail::each_row(y.shape[0], 8 * positions * K, [=](std::size_t b) {
            T* const sum = y.data + b * positions;
            kernels::detail::zero(sum, positions);
            for (std::size_t k = 0; k < K; ++k) {
                const bell<T> one(shapes, centres, b, k);
                simd::transform(
                    positions, sum, [one](auto s, auto u) { return s + one.at(one.centre - u); },
                    static_cast<const T*>(sum), places.data + b * positions);
            }
        });
    }

    template <class T>
    static void backward(in<T, 2> shapes, in<T, 2> centres, in<T, 3> places, in<T, 2> y, in<T, 2> d_y,
                         adjoint<T, 2> d_shapes, adjoint<T, 2> d_centres, adjoint<T, 3> d_places)
    {
        using simd::vec;
        const std::size_t positions = y.shape[1], K = centres.shape[1];
        detail::each_row(y.shape[0], 16 * positions * K, [=](std::size_t b) {
            for (std::size_t k = 0; k < K; ++k) {
                const bell<T> one(shapes, centres, b, k);
                kernels::block_sum<T> heights, slopes, spreads;  // Σ g, Σ g δ, Σ g δ²
                simd::each_register<T>(positions, [&, one](std::size_t t, std::size_t count) {
                    const std::size_t i = b * positions + t;
                    const vec<T> off = one.centre - simd::load_first(places.data + i, count), f = one.at(off);
                    // What is 0 stays 0, however far it is and whatever came back.
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
                if (d_centres) d_centres.data[b * K + k] -= 2 * times(one.narrow, simd::sum(slopes.get()));
            }
        });
    }

private:
    /// Of a height's logarithm: sums of it and of its derivatives stay finite in float.
    template <class T>
    static constexpr T highest = 40;

    template <class T>
    struct bell {
        T height, narrow, centre;  // a, exp(c), κ

        bell(in<T, 2> shapes, in<T, 2> centres, std::size_t b, std::size_t k)
            : height(std::min(shapes.data[b * shapes.shape[1] + k], highest<T>)),
              narrow(std::max(narrowness(shapes.data[b * shapes.shape[1] + centres.shape[1] + k]),
                              std::numeric_limits<T>::min())),  // 0 · ∞ far away would be NaN
              centre(centres.data[b * centres.shape[1] + k])
        {}

        static T narrowness(const T& c)
        {
            using std::exp;
            return exp(c);
        }

        /// At the centre itself the height, even if the bell is infinitely narrow.
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

}  // namespace heed::ops
