// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <heed/core/workspace.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/elementwise.hpp>

/// Scores and their history, L = log Σ exp(e) over earlier scores; -inf where there are none.
namespace heed::ops {

/// y = e − strength·L, and e itself where L = -inf: e and L [...] -> [...]. With strength 1 it is ops::discount.
///
///     ∂e += ∂y,  ∂L −= strength ∂y where there is a history
inline constexpr binary<functions::discount, double> discount_by{"discount_by", "the history",
                                                                 "the shape of the scores"};

/// y = log(exp(L − decay) + exp(e)): L and e [...] -> [...]. The history grown by a step, where everything before it
/// counts exp(−decay) times as much. With decay 0 it is ops::logaddexp.
///
///     ∂L += exp(L − decay − y) ∂y,  ∂e += exp(e − y) ∂y
inline constexpr binary<functions::logaddexp, double> fade{"fade", "what joins the history",
                                                           "the shape of the history"};

/// The sums over the last steps, L_k = log Σ exp(e) over the last k of them, k = 1 … n, advanced by one step:
///
///     L'_1 = e,  L'_k = log(exp(L_{k-1}) + exp(e))
///     ∂L_{k-1} += exp(L_{k-1} − L'_k) ∂L'_k,  ∂e += Σ_k exp(e − L'_k) ∂L'_k
///
/// Nothing is ever subtracted from a sum: to forget is to drop L_n, which therefore is no argument. Sums [B,T,(n−1)D]
/// hold L_1 … L_{n-1} of each position, one after another, and e is [B,T] (D = 1) or [B,T,D] -> {L'_n, of the shape of
/// e; the new sums}. They are -inf at the start. With n = 0 nothing is remembered: L' is -inf.
struct recent_sums_op : operation<recent_sums_op> {
    static auto shape(const auto& sums, const auto& e, std::size_t n)
    {
        const std::size_t D = detail::width_of(e.shape);
        require_shape("recent_sums", "the sums", sums.shape, {e.shape[0], e.shape[1], n == 0 ? 0 : (n - 1) * D},
                      "one for each score and each step that is remembered but the oldest; the scores are ", e.shape);
        return std::tuple{e.shape, sums.shape};
    }

    /// The shape of the sums before the first step.
    template <std::size_t R>
    static shape_of_rank<3> shape_of_sums(const shape_of_rank<R>& e, std::size_t n)
    {
        return {e[0], e[1], n == 0 ? 0 : (n - 1) * detail::width_of(e)};
    }

    static auto results(auto last, auto sums) { return std::pair{std::move(last), std::move(sums)}; }

    template <class T, std::size_t R>
    static void forward(in<T, 3> sums, in<T, R> e, std::size_t n, out<T, R> last, out<T, 3> next)
    {
        if (n == 0) {
            std::fill_n(last.data, last.size(), -std::numeric_limits<T>::infinity());
            return;
        }
        each_row(e.shape, n, [&](const row& at, scratch& memory) {
            T *const before = memory.take<T>(at.size), *const now = memory.take<T>(at.size);
            gather_before(at, sums.data, before);
            repeat(at, e.data, now);
            simd::transform(
                at.size, now, [](auto L, auto score) { return functions::logaddexp::value(L, score); },
                static_cast<const T*>(before), static_cast<const T*>(now));
            at.each_position([=](std::size_t i, std::size_t sums_at, std::size_t last_at) {
                std::copy_n(now + i, at.kept, next.data + sums_at);
                std::copy_n(now + i + at.kept, at.width, last.data + last_at);
            });
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, 3> sums, in<T, R> e, std::size_t n, const std::tuple<in<T, R>, in<T, 3>>& made,
                         const std::tuple<in<T, R>, in<T, 3>>& derivatives, adjoint<T, 3> d_sums, adjoint<T, R> d_e)
    {
        if (n == 0) return;
        each_row(e.shape, n, [&](const row& at, scratch& memory) {
            T *const before = memory.take<T>(at.size), *const score = memory.take<T>(at.size),
                     *const now = memory.take<T>(at.size), *const d_now = memory.take<T>(at.size);
            gather_before(at, sums.data, before);
            repeat(at, e.data, score);
            gather(at, std::get<1>(made).data, std::get<0>(made).data, now);
            gather(at, std::get<1>(derivatives).data, std::get<0>(derivatives).data, d_now);
            for (T* const part : {before, score}) {
                simd::transform(
                    at.size, part, [](auto x, auto y, auto d) { return functions::logaddexp::share(x, y, d); },
                    static_cast<const T*>(part), static_cast<const T*>(now), static_cast<const T*>(d_now));
            }
            at.each_position([&](std::size_t i, std::size_t sums_at, std::size_t last_at) {
                if (d_sums) kernels::add(at.kept, d_sums.data + sums_at, static_cast<const T*>(before + i + at.width));
                if (d_e) kernels::add_columns(n, at.width, d_e.data + last_at, static_cast<const T*>(score + i));
            });
        });
    }

private:
    /// The positions of a sentence: each has n sums of `width` numbers, and keeps all but the last.
    struct row {
        std::size_t first, positions, width, kept, size;

        /// f(begin of a position among all n sums of the row, in the tensor of sums, in the scores).
        template <class F>
        void each_position(F&& f) const
        {
            for (std::size_t t = 0; t < positions; ++t) f(t * (kept + width), (first + t) * kept, (first + t) * width);
        }
    };

    /// f(row, memory that is released after the row).
    template <std::size_t R, class F>
    static void each_row(const shape_of_rank<R>& e, std::size_t n, F&& f)
    {
        const std::size_t positions = e[1], width = detail::width_of(e), size = positions * n * width;
        detail::each_row(
            e[0], size,
            [&](std::size_t b) {
                scratch memory;
                f(row{b * positions, positions, width, (n - 1) * width, size}, memory);
            },
            std::size_t{1} << 13);
    }

    /// -inf, L_1, …, L_{n-1} of each position: what e joins.
    template <class T>
    static void gather_before(const row& at, const T* sums, T* to)
    {
        at.each_position([=](std::size_t i, std::size_t sums_at, std::size_t) {
            std::fill_n(to + i, at.width, -std::numeric_limits<T>::infinity());
            std::copy_n(sums + sums_at, at.kept, to + i + at.width);
        });
    }

    /// L_1, …, L_n of each position; zeros if a pointer is null.
    template <class T>
    static void gather(const row& at, const T* sums, const T* last, T* to)
    {
        std::fill_n(to, at.size, T(0));
        at.each_position([=](std::size_t i, std::size_t sums_at, std::size_t last_at) {
            if (sums != nullptr) std::copy_n(sums + sums_at, at.kept, to + i);
            if (last != nullptr) std::copy_n(last + last_at, at.width, to + i + at.kept);
        });
    }

    /// e, n times for each position.
    template <class T>
    static void repeat(const row& at, const T* e, T* to)
    {
        at.each_position([=](std::size_t i, std::size_t, std::size_t last_at) {
            T* const end = to + i + at.kept + at.width;
            for (T* each = to + i; each < end;) each = std::copy_n(e + last_at, at.width, each);
        });
    }
};
inline constexpr recent_sums_op recent_sums{};

/// y = e + w·x with one learned number w: e and x [...], w [1] -> [...].
///
///     ∂e += ∂y,  ∂w += Σ x ∂y,  ∂x += w ∂y
struct add_weighted_op : operation<add_weighted_op> {
    static auto shape(const auto& e, const auto& w, const auto& x)
    {
        static_assert(rank_of<decltype(e)> == rank_of<decltype(x)>, "heed: add_weighted adds tensors of the same rank");
        require_shape("add_weighted", "the weight", w.shape, {1}, "one number for all");
        require_shape("add_weighted", "what is added", x.shape, e.shape, "the shape of the first argument");
        return e.shape;
    }

    template <class T, std::size_t N>
    static void forward(in<T, N> e, in<T, 1> w, in<T, N> x, out<T, N> y)
    {
        simd::parallel_transform(
            y.size(), y.data, [by = *w.data](auto u, auto v) { return u + by * v; }, e.data, x.data);
    }

    template <class T, std::size_t N>
    static void backward(in<T, N>, in<T, 1> w, in<T, N> x, in<T, N> y, in<T, N> d_y, adjoint<T, N> d_e,
                         adjoint<T, 1> d_w, adjoint<T, N> d_x)
    {
        if (d_e) kernels::add(y.size(), d_e.data, d_y.data);
        if (d_w) *d_w.data += kernels::dot(y.size(), x.data, d_y.data);
        if (d_x) kernels::add_scaled(y.size(), d_x.data, *w.data, d_y.data);
    }
};
inline constexpr add_weighted_op add_weighted{};

/// y = C + α / Φ: C, α and Φ [B,T] -> [B,T]. Coverage C grows by weight α over fertility Φ. Φ counts as at least
/// `least`, so that nothing is divided by 0.
///
///     ∂C += ∂y,  ∂α += ∂y / Φ,  ∂Φ −= ∂y α / Φ²; where Φ counts as `least`, ∂Φ += 0
struct add_share_op : operation<add_share_op> {
    static constexpr double least = 1e-6;

    static shape_of_rank<2> shape(const auto& coverage, const auto& weights, const auto& fertility)
    {
        require_shape("add_share", "the weights", weights.shape, coverage.shape, "one for each number of the coverage");
        require_shape("add_share", "the fertility", fertility.shape, coverage.shape,
                      "one for each number of the coverage");
        return coverage.shape;
    }

    template <class T>
    static void forward(in<T, 2> coverage, in<T, 2> weights, in<T, 2> fertility, out<T, 2> y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) {
            y.data[i] = coverage.data[i] + weights.data[i] / std::max(fertility.data[i], T(least));
        }
    }

    template <class T>
    static void backward(in<T, 2>, in<T, 2> weights, in<T, 2> fertility, in<T, 2> y, in<T, 2> d_y,
                         adjoint<T, 2> d_coverage, adjoint<T, 2> d_weights, adjoint<T, 2> d_fertility)
    {
        if (d_coverage) kernels::add(y.size(), d_coverage.data, d_y.data);
        for (std::size_t i = 0; i < y.size(); ++i) {
            const T f = fertility.data[i], by = std::max(f, T(least));
            if (d_weights) d_weights.data[i] += d_y.data[i] / by;
            if (d_fertility && f > T(least)) d_fertility.data[i] -= d_y.data[i] * weights.data[i] / (by * by);
        }
    }
};
inline constexpr add_share_op add_share{};

}  // namespace heed::ops
