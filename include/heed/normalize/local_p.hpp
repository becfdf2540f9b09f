// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <heed/core/mask.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/within.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/weights_by_sum.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/hooks.hpp>
#include <heed/policy/query.hpp>
#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::ops {

/// p_b = S_b · sigmoid(v · z_b), a position within each row, where S_b is its length: z [B,P], v [P] -> [B].
///
///     ∂a_b = p_b (1 − p_b / S_b) ∂p_b with a_b = v · z_b,  ∂z_b += ∂a_b v,  ∂v += Σ_b ∂a_b z_b
///
/// A row of length 0 has no position: its gradient is 0.
struct place_in_row_op : operation<place_in_row_op> {
    static shape_of_rank<1> shape(const auto& z, const auto& v, const lengths_view& real)
    {
        require_shape("place_in_row", "v", v.shape, {z.shape[1]}, "the width of z ", z.shape);
        if (z.shape[0] != real.batch()) {
            throw shape_error("place_in_row: z is " + shape_text(z.shape) + " but there are " +
                              counted(real.batch(), "sentence") + "; give one row for each sentence");
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

/// y[b,j] = x[b,j] f[b,j], f[b,j] = exp(−(s − p_b)² / 2σ²), where s = begin_b + j is the position of j in the sentence:
/// x [B,W], or [B,W,N] with one factor per position; p [B].
///
///     ∂x[b,j] += f[b,j] ∂y[b,j],  ∂p_b += Σ_j y[b,j] ∂y[b,j] (s − p_b) / σ²
struct gaussian_op : operation<gaussian_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& x, const auto& p, std::span<const std::size_t> begin, double)
    {
        require_shape("gaussian", "the center", p.shape, {x.shape[0]}, "one for each row of the weights ", x.shape);
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

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Options of `local_p`, by name: `{.renormalize = true}`.
struct local_p_options {
    bool renormalize = false;  // weights are divided by their sum
};

}  // namespace heed::inline HEED_TARGET::normalize

namespace heed::inline HEED_TARGET::detail {

/// Weights times the Gaussian around p_t, divided by their sum if `renormalize` is set. `begin` [B]: the position in
/// its sentence of each row's first weight.
auto fall_off(const tensor auto& weights, const tensor auto& p, std::span<const std::size_t> begin,
              const lengths_view& real, std::size_t reach, normalize::local_p_options options)
{
    auto around_p = ops::gaussian(weights, p, begin, static_cast<double>(reach) / 2);
    return options.renormalize ? ops::weights_by_sum(around_p, real, ops::rule_of_sums{}) : around_p;
}

/// local_p inside its window: the inner normalizer, and the Gaussian.
template <class Inner, class Center>
struct around_center {
    using wraps = Inner;
    const Inner& inner;
    const Center& center;
    window_view where;
    std::size_t reach;
    normalize::local_p_options options;

    auto operator()(const tensor auto& scores, const auto& state, const auto& at) const
    {
        return fall_off(weigh(inner, scores, state, at), center, {where.begin, where.count.batch()}, where.count, reach,
                        options);
    }
};

}  // namespace heed::inline HEED_TARGET::detail

namespace heed::inline HEED_TARGET::normalize {

/// Predictive local attention: the query predicts the center of the window.
///
///     p_t = S sigmoid(v_pᵀ tanh(W_p h_t))                     Luong et al. 2015, eq. 9
///     α_{t,s} = inner(e_{t,s}) exp(-(s - p_t)² / 2σ²),  σ = D/2,  s within [p_t - D, p_t + D]     eq. 10
///
/// h_t is the query, or its `state` if it has several parts. S is the number of visible positions of the row; s counts
/// from 0, p_t is a real number.
///
/// Only the window is computed, as in `local_m`, which also documents the history of an inner normalizer. As in the
/// paper, weights sum to less than 1; with `{.renormalize = true}`, the last member, they are divided by their sum. An
/// inner normalizer with state is updated with the resulting weights, Gaussian included. The gradient reaches W_p and
/// v_p through the Gaussian alone; where p_t ± D passes a position the weights jump (docs/explanation/decisions.md).
/// Throws heed::error if D is 0.
template <class Matrix, class Vector, class Inner = softmax, class History = history::everywhere>
struct local_p {
    Matrix W_p;              // [Q,P]
    Vector v_p;              // [P]
    std::size_t reach = 10;  // D
    HEED_NO_UNIQUE_ADDRESS Inner inner{};
    HEED_NO_UNIQUE_ADDRESS History state{};
    local_p_options options{};

    using wraps = Inner;
    static constexpr normalizer_traits traits = traits_around_normalizer<Inner>([](normalizer_traits& own) {
        own.reads_length = own.needs_all_positions = true;
        own.has_window = detail::may_cut<Inner, History>;
    });

    /// p_t of each row: [B].
    auto center(const auto& query, const lengths_view& real) const
    {
        return ops::place_in_row(ops::tanh(ops::linear(detail::state_of(query), W_p)), v_p, real);
    }

    auto window(const auto& at, std::size_t positions) const
    {
        auto p = center(at.query(), at.real);
        const auto where = around(p, at.real, positions);
        return detail::found_window<decltype(p)>{where, std::move(p)};
    }

    auto inner_in_window(const auto& found) const
    {
        return detail::around_center<Inner, decltype(found.center)>{inner, found.center, found.where, reach, options};
    }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        const auto p = center(at.query(), at.real);
        const auto where = around(p, at.real, shape_of(scores)[1]);
        const std::size_t B = at.real.batch();
        auto* const begin = workspace_family::take<std::size_t>(B);  // zeros: each row starts at its first position
        std::fill_n(begin, B, std::size_t{0});
        return detail::fall_off(detail::weigh_within<History>(where, inner, scores, memory, at), p, {begin, B}, at.real,
                                reach, options);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        const auto where = around(center(at.query(), at.real), at.real, shape_of(scores)[1]);
        return detail::advance_within<History>(where, inner, scores, weights, memory, at);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto W = visit("W_p", self.W_p);
        auto v = visit("v_p", self.v_p);
        auto inner = visit("inner", self.inner);
        return normalize::local_p{std::move(W), std::move(v), self.reach, std::move(inner), self.state, self.options};
    }

private:
    window_view around(const tensor auto& p, const lengths_view& real, std::size_t positions) const
    {
        if (reach == 0) throw error("local_p: the reach D is 0 but must be at least 1: the Gaussian's width is D/2");
        const double D = static_cast<double>(reach);
        const std::size_t width = reach < positions ? std::min(2 * reach + 1, positions) : positions;
        return detail::window_of_rows(real, width, [&](std::size_t b) -> position_range {
            const double place = static_cast<double>(value_of(view_of(p).data[b])), end = static_cast<double>(real[b]);
            const double at = place >= 0 ? place : 0;  // NaN: the weights become NaN
            const double first = std::ceil(std::max(0.0, at - D)), last = std::min(end - 1, std::floor(at + D));
            if (!(first <= last)) return {};
            return {static_cast<std::size_t>(first), static_cast<std::size_t>(last - first) + 1};
        });
    }
};

template <class Matrix, class Vector, class Inner = softmax, class History = history::everywhere>
local_p(Matrix, Vector, std::size_t = 10, Inner = {}, History = {}, local_p_options = {})
    -> local_p<Matrix, Vector, Inner, History>;

}  // namespace heed::inline HEED_TARGET::normalize
