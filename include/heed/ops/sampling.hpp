// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <heed/core/arena.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/operation.hpp>

/// Chance in attention: drawn positions, noise on scores, dropped weights.
///
/// All of it is a function of a stream, the row, the position and the dimension: it can be repeated, and does not
/// depend on the number of threads, nor on how much padding a batch has.
///
/// Scores and weights are [B,T], or [B,T,D], where every dimension is drawn by itself. What lies behind a row's length
/// is not looked at and gets 0; nor is a position with a score of -inf ever drawn.
namespace heed::ops {

/// What the drawn numbers are for: uses with the same seed do not get the same numbers.
enum class chance : std::uint64_t { position = 1, noise, weights };

/// The stream of one step of one use.
constexpr std::uint64_t stream_of(std::uint64_t seed, std::size_t step, chance use)
{
    return mix(mix(mix(seed) + static_cast<std::uint64_t>(use)) + step);
}

namespace detail {

constexpr std::uint64_t stream_of_row(std::uint64_t stream, std::size_t row) { return mix(stream ^ mix(row + 1)); }

/// What is computed row by row: batch, positions, numbers for each of these, and the lengths.
struct row_plan {
    std::size_t batch, positions, width;
    const std::size_t* real;

    template <std::size_t R>
    row_plan(const shape_of_rank<R>& shape, const std::size_t* counts)
        : batch(shape[0]), positions(shape[1]), width(R == 3 ? shape[R - 1] : 1), real(counts)
    {
        static_assert(R == 2 || R == 3, "heed: scores and weights are [B,T] or [B,T,D]");
    }

    /// f(row, its real positions, the place of its first element, memory that is given back after the row).
    template <class F>
    void each_row(F&& f) const
    {
        const std::size_t grain = kernels::detail::rows_a_shard(positions * width, std::size_t{1} << 13);
        parallel_for(batch, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t b = begin; b < end; ++b) {
                scratch memory;
                f(b, real[b], b * positions * width, memory);
            }
        });
    }

    std::size_t row_size() const { return positions * width; }

    template <class T>
    void softmax(const T* scores, T* weights) const
    {
        if (width == 1) {
            kernels::softmax(batch, positions, real, scores, weights);
        } else {
            kernels::softmax_per_dimension(batch, positions, width, real, scores, weights);
        }
    }
};

/// The greatest number of each column, and the first position where it is; `n` where there is nothing but -inf.
template <class T>
void greatest_of(std::size_t n, std::size_t width, const T* x, T* top, std::size_t* where)
{
    std::fill_n(top, width, -std::numeric_limits<T>::infinity());
    std::fill_n(where, width, n);
    for (std::size_t t = 0; t < n; ++t) {
        for (std::size_t d = 0; d < width; ++d) {
            if (x[t * width + d] > top[d]) {
                top[d] = x[t * width + d];
                where[d] = t;
            }
        }
    }
}

/// 1 at a position of each column (none if it is n), 0 elsewhere.
template <class T>
void one_hot(std::size_t n, std::size_t width, std::size_t size, const std::size_t* where, T* y)
{
    kernels::detail::zero(y, size);
    for (std::size_t d = 0; d < width; ++d) {
        if (where[d] < n) y[where[d] * width + d] = T(1);
    }
}

}  // namespace detail

/// 1 at the greatest score of each row, at the first of them if there are several; 0 elsewhere. No gradient.
struct greatest_op : operation<greatest_op> {
    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, const T* e, T* y)
    {
        const detail::row_plan plan(shape, real);
        plan.each_row([&, e, y](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            T* top = memory.take<T>(plan.width);
            auto* where = memory.take<std::size_t>(plan.width);
            detail::greatest_of(n, plan.width, e + at, top, where);
            detail::one_hot(n, plan.width, plan.row_size(), where, y + at);
        });
    }

    template <plain_tensor E>
    auto plain(const E& e, const lengths& real) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(e);
        real.require("greatest", shape[0], shape[1]);
        auto y = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), view_of(e).data, y.data());
        return y;
    }
};
inline constexpr greatest_op greatest{};

/// 1 at one position of each row, drawn with the probabilities softmax(e); 0 elsewhere. No gradient: see
/// log_probability.
struct sample_op : operation<sample_op> {
    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, std::uint64_t stream, const T* e, T* y)
    {
        const detail::row_plan plan(shape, real);
        const std::size_t width = plan.width;
        plan.softmax(e, y);
        plan.each_row([&, stream, y](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            auto* target = memory.take<double>(width);
            auto* before = memory.take<double>(width);
            auto* where = memory.take<std::size_t>(width);
            const T* p = y + at;
            std::fill_n(target, width, 0.0);
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t d = 0; d < width; ++d) target[d] += static_cast<double>(p[t * width + d]);
            }
            for (std::size_t d = 0; d < width; ++d) target[d] *= uniform(detail::stream_of_row(stream, b), d);
            // The last position before which no more than the target lies. One that cannot be is never taken.
            std::fill_n(before, width, 0.0);
            std::fill_n(where, width, n);
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t d = 0; d < width; ++d) {
                    const double chance_here = static_cast<double>(p[t * width + d]);
                    if (chance_here > 0 && before[d] <= target[d]) where[d] = t;
                    before[d] += chance_here;
                }
            }
            detail::one_hot(n, width, plan.row_size(), where, y + at);
        });
    }

    template <plain_tensor E>
    auto plain(const E& e, const lengths& real, std::uint64_t stream) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(e);
        real.require("sample", shape[0], shape[1]);
        auto y = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), stream, view_of(e).data, y.data());
        return y;
    }
};
inline constexpr sample_op sample{};

/// log softmax(e)_j at the positions where `drawn` is not 0, and 0 elsewhere: of the same shape.
struct log_probability_op : operation<log_probability_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& e, const shape_of_rank<R>& drawn, const lengths& real)
    {
        require_shape("log_probability", "what was drawn", drawn, e, "the shape of the scores");
        real.require("log_probability", e[0], e[1]);
    }

    /// p is softmax(e), which the way back needs.
    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, const T* e, const T* drawn, T* p, T* y)
    {
        const detail::row_plan plan(shape, real);
        const std::size_t width = plan.width;
        plan.softmax(e, p);
        plan.each_row([&, e, drawn, p, y](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            T* log_sum = memory.take<T>(width);  // log Σ exp(e - max e) = -log of the greatest probability
            T* top = memory.take<T>(width);
            auto* where = memory.take<std::size_t>(width);
            detail::greatest_of(n, width, e + at, top, where);
            for (std::size_t d = 0; d < width; ++d) {
                log_sum[d] = where[d] < n ? -std::log(p[at + where[d] * width + d]) : T(0);
            }
            kernels::detail::zero(y + at, plan.row_size());
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t d = 0; d < width; ++d) {
                    const std::size_t i = at + t * width + d;
                    if (drawn[i] != T(0)) y[i] = (e[i] - top[d]) - log_sum[d];
                }
            }
        });
    }

    template <plain_tensor E, plain_tensor D>
    auto plain(const E& e, const D& drawn, const lengths& real) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(e);
        check(shape, shape_of(drawn), real);
        auto y = storage_for<T, rank_of<E>>(shape);
        auto p = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), view_of(e).data, view_of(drawn).data, p.data(), y.data());
        return y;
    }
};
inline constexpr log_probability_op log_probability{};

/// e_j − max_k e_k + strength · g_j with noise g_j = −log(−log u_j), u_j uniform in (0,1): the standard Gumbel
/// distribution, by which argmax_j (e_j + g_j) is distributed as softmax(e). The greatest score is taken off first, so
/// that the noise of great scores is not rounded away.
struct perturb_op : operation<perturb_op> {
    /// `where` [B,D], if given: the positions of the greatest scores.
    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, std::uint64_t stream, double strength,
                        const T* e, T* y, std::size_t* where_all = nullptr)
    {
        const detail::row_plan plan(shape, real);
        const std::size_t width = plan.width;
        plan.each_row([&, e, y](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            T* top = memory.take<T>(width);
            auto* where = where_all == nullptr ? memory.take<std::size_t>(width) : where_all + b * width;
            detail::greatest_of(n, width, e + at, top, where);
            auto* noise = memory.take<double>(n * width);
            gumbel(n * width, detail::stream_of_row(stream, b), strength, noise);
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t d = 0; d < width; ++d) {
                    const std::size_t i = t * width + d;
                    // -inf stays: -inf - -inf is NaN
                    y[at + i] = e[at + i] == -std::numeric_limits<T>::infinity()
                                    ? e[at + i]
                                    : (e[at + i] - top[d]) + static_cast<T>(noise[i]);
                }
            }
            kernels::detail::zero(y + at + n * width, plan.row_size() - n * width);
        });
    }

    static void gumbel(std::size_t n, std::uint64_t row, double strength, double* noise)
    {
        if (strength == 0) return kernels::detail::zero(noise, n);
        for (std::size_t i = 0; i < n; ++i) {
            noise[i] = std::min(1 - uniform(row, i), 1 - 0x1p-53);  // 1 would be noise without bound
        }
        simd::transform(
            n, noise, [strength](simd::vec<double> u) { return strength * -simd::log(-simd::log(u)); },
            static_cast<const double*>(noise));
    }

    template <plain_tensor E>
    auto plain(const E& e, const lengths& real, std::uint64_t stream, double strength) const
    {
        using T = element_of<E>;
        const auto shape = shape_of(e);
        real.require("perturb", shape[0], shape[1]);
        auto y = storage_for<T, rank_of<E>>(shape);
        compute<T>(shape, real.data(), stream, strength, view_of(e).data, y.data());
        return y;
    }
};
inline constexpr perturb_op perturb{};

/// The first argument on the way forward, the second one on the way back (Bengio, Léonard & Courville 2013).
struct straight_through_op : operation<straight_through_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& value, const shape_of_rank<R>& soft)
    {
        require_shape("straight_through", "the second argument", soft, value, "the shape of the first");
    }

    template <plain_tensor X, plain_tensor Y>
    auto plain(const X& value, const Y& soft) const
    {
        check(shape_of(value), shape_of(soft));
        auto y = storage_for<element_of<X>, rank_of<X>>(shape_of(value));
        std::copy_n(view_of(value).data, y.size(), y.data());
        return y;
    }
};
inline constexpr straight_through_op straight_through{};

/// Weights of which each is 0 with probability p: y_j = r k_j α_j, where k_j is 0 or 1 and r = 1 / (1 − p); with
/// `renormalise` r = Σ α / Σ k α, so that a row's sum stays what it was (0 if all of its weights are dropped).
struct thin_op : operation<thin_op> {
    /// keep [the weights' shape] and, to renormalise, factor [B,D] (r) are for the way back.
    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const std::size_t* real, double p, std::uint64_t stream,
                        bool renormalise, const T* weights, T* y, std::uint8_t* keep, T* factor)
    {
        const detail::row_plan plan(shape, real);
        const std::size_t width = plan.width;
        plan.each_row([&, weights, y](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            T *all = memory.take<T>(width), *kept = memory.take<T>(width), *r = factor + b * width;
            std::fill_n(all, width, T(0));
            std::fill_n(kept, width, T(0));
            const std::uint64_t row = detail::stream_of_row(stream, b);
            for (std::size_t i = 0; i < n * width; ++i) keep[at + i] = uniform(row, i) < p ? 0 : 1;
            if (renormalise) {
                for (std::size_t t = 0; t < n; ++t) {
                    for (std::size_t d = 0; d < width; ++d) {
                        const std::size_t i = at + t * width + d;
                        all[d] += weights[i];
                        kept[d] += keep[i] != 0 ? weights[i] : T(0);
                    }
                }
                for (std::size_t d = 0; d < width; ++d) r[d] = kept[d] > T(0) ? all[d] / kept[d] : T(0);
            } else {
                std::fill_n(r, width, static_cast<T>(1 / (1 - p)));
            }
            for (std::size_t t = 0; t < n; ++t) {
                for (std::size_t d = 0; d < width; ++d) {
                    const std::size_t i = at + t * width + d;
                    y[i] = keep[i] != 0 ? weights[i] * r[d] : T(0);
                }
            }
            kernels::detail::zero(y + at + n * width, plan.row_size() - n * width);
        });
    }

    template <plain_tensor W>
    auto plain(const W& weights, const lengths& real, double p, std::uint64_t stream, bool renormalise) const
    {
        using T = element_of<W>;
        const auto shape = shape_of(weights);
        real.require("thin", shape[0], shape[1]);
        auto y = storage_for<T, rank_of<W>>(shape);
        scratch memory;
        auto* keep = memory.take<std::uint8_t>(y.size());
        T* factor = memory.take<T>(shape[0] * detail::row_plan(shape, nullptr).width);
        compute<T>(shape, real.data(), p, stream, renormalise, view_of(weights).data, y.data(), keep, factor);
        return y;
    }
};
inline constexpr thin_op thin{};

}  // namespace heed::ops
