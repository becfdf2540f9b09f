// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <heed/core/random.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/rows.hpp>

/// Chance in attention: drawn positions, noise on scores, dropped weights.
///
/// Random numbers are a function of a stream, the row, the position and the dimension: they can be repeated, and depend
/// neither on the number of threads nor on the padding of a batch. Rows are counted in the whole batch
/// (lengths_view::first_row): a part of a batch draws the same as the whole.
///
/// Scores and weights are [B,T], or [B,T,D], where each dimension is drawn by itself. Positions beyond a row's length
/// are not read and get 0; a position with a score of -inf is never drawn.
namespace heed::ops {

/// The use of the drawn numbers: different uses with the same seed get different numbers.
enum class chance : std::uint64_t { position = 1, noise, weights, normal_noise };

/// The stream of one step of one use.
constexpr std::uint64_t stream_of(std::uint64_t seed, std::size_t step, chance use)
{
    return mix(mix(mix(seed) + static_cast<std::uint64_t>(use)) + step);
}

namespace detail {

/// The rows of a batch of scores or weights.
struct row_plan {
    std::size_t batch, positions, width;
    lengths_view real;

    template <std::size_t R>
    row_plan(const shape_of_rank<R>& shape, const lengths_view& lengths)
        : batch(shape[0]), positions(shape[1]), width(width_of(shape)), real(lengths)
    {}

    /// f(row, its real positions, the place of its first element, memory that is released after the row).
    template <class F>
    void each_row(F&& f) const
    {
        detail::each_row(
            batch, row_size(),
            [&](std::size_t b) {
                scratch memory;
                f(b, real[b], b * row_size(), memory);
            },
            std::size_t{1} << 13);
    }

    /// f(element of the row, its dimension) for the elements of the first n positions.
    template <class F>
    void each_element(std::size_t n, F&& f) const
    {
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t d = 0; d < width; ++d) f(t * width + d, d);
        }
    }

    /// The stream of a row of these.
    std::uint64_t stream_of(std::uint64_t stream, std::size_t row) const
    {
        return mix(stream ^ mix(real.first_row() + row + 1));
    }

    std::size_t row_size() const { return positions * width; }

    /// A zero per dimension.
    template <class T>
    T* zeros(scratch& memory) const
    {
        T* const x = memory.take<T>(width);
        std::fill_n(x, width, T(0));
        return x;
    }

    /// Zeros beyond the first n positions of a row.
    template <class T>
    void clear_padding(std::size_t n, T* row) const
    {
        kernels::detail::zero(row + n * width, row_size() - n * width);
    }

    template <class T>
    void softmax(const T* scores, T* weights) const
    {
        if (width == 1) {
            kernels::softmax(batch, positions, real.data(), scores, weights);
        } else {
            kernels::softmax_per_dimension(batch, positions, width, real.data(), scores, weights);
        }
    }
};

/// The greatest number of each column, and the first position where it is; n where there is nothing but -inf.
template <class T>
struct greatest_of {
    T* top;
    std::size_t* where;

    greatest_of(std::size_t n, std::size_t width, const T* x, scratch& memory)
        : top(memory.take<T>(width)), where(memory.take<std::size_t>(width))
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
};

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

/// y_j = 1 at the greatest score of each row, the first of them if there are several, 0 elsewhere: e [B,T] or [B,T,D]
/// -> the shape of e. No gradient.
struct greatest_op : row_operation<greatest_op> {
    static constexpr const char* name = "greatest";
    static constexpr bool differentiable = false;

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            const detail::greatest_of<T> most(n, plan.width, e.data + at, memory);
            detail::one_hot(n, plan.width, plan.row_size(), most.where, y.data + at);
        });
    }
};
inline constexpr greatest_op greatest{};

/// y_j = 1 at one position of each row, drawn with the probabilities softmax(e), 0 elsewhere: e [B,T] or [B,T,D] -> the
/// shape of e. No gradient: see log_probability.
struct sample_op : row_operation<sample_op> {
    static constexpr const char* name = "sample";
    static constexpr bool differentiable = false;

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::uint64_t stream, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        const std::size_t width = plan.width;
        plan.softmax(e.data, y.data);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            double *const target = plan.zeros<double>(memory), *const before = plan.zeros<double>(memory);
            auto* const where = memory.take<std::size_t>(width);
            const T* const p = y.data + at;
            plan.each_element(n,
                              [=](std::size_t i, std::size_t d) { target[d] += static_cast<double>(value_of(p[i])); });
            for (std::size_t d = 0; d < width; ++d) target[d] *= uniform(plan.stream_of(stream, b), d);
            // The last position with no more than the target before it; never one of probability 0.
            std::fill_n(where, width, n);
            plan.each_element(n, [=](std::size_t i, std::size_t d) {
                const double chance_here = static_cast<double>(value_of(p[i]));
                if (chance_here > 0 && before[d] <= target[d]) where[d] = i / width;
                before[d] += chance_here;
            });
            detail::one_hot(n, width, plan.row_size(), where, y.data + at);
        });
    }
};
inline constexpr sample_op sample{};

/// y_j = log p_j with p = softmax(e) at the positions where `drawn` is not 0, and 0 elsewhere: e and drawn [B,T] or
/// [B,T,D] -> the shape of e.
///
///     ∂e_k += [k drawn] ∂y_k − p_k Σ_{j drawn} ∂y_j              nothing for `drawn`
struct log_probability_op : operation<log_probability_op> {
    static constexpr ranks takes{2, 3};

    static auto shape(const auto& e, const auto& drawn, const lengths_view& real)
    {
        require_shape("log_probability", "what was drawn", drawn.shape, e.shape, "the shape of the scores");
        real.require("log_probability", e.shape[0], e.shape[1]);
        return e.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> e, in<T, R> drawn, const lengths_view& real, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        const std::size_t width = plan.width;
        scratch here;
        T* const p = here.take<T>(e.size());
        plan.softmax(e.data, p);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            using std::log;
            T* const log_sum = plan.zeros<T>(memory);  // log Σ exp(e - max e) = -log of the greatest probability
            const detail::greatest_of<T> most(n, width, e.data + at, memory);
            for (std::size_t d = 0; d < width; ++d) {
                if (most.where[d] < n) log_sum[d] = -log(p[at + most.where[d] * width + d]);
            }
            kernels::detail::zero(y.data + at, plan.row_size());
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                if (drawn.data[at + i] != T(0)) y.data[at + i] = (e.data[at + i] - most.top[d]) - log_sum[d];
            });
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, in<T, R> drawn, const lengths_view& real, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e, adjoint<T, R>)
    {
        if (!d_e) return;
        const detail::row_plan plan(e.shape, real);
        scratch here;
        T* const p = here.take<T>(e.size());
        plan.softmax(e.data, p);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            auto* const sum = plan.zeros<in_double<T>>(memory);
            const auto at_drawn = [&](std::size_t i) { return drawn.data[i] != T(0) ? d_y.data[i] : T(0); };
            plan.each_element(
                n, [&](std::size_t i, std::size_t d) { sum[d] += static_cast<in_double<T>>(at_drawn(at + i)); });
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                d_e.data[at + i] += at_drawn(at + i) - p[at + i] * static_cast<T>(sum[d]);
            });
        });
    }
};
inline constexpr log_probability_op log_probability{};

/// y_j = e_j − e_m + strength · g_j, e_m the greatest score of the row: e [B,T] or [B,T,D] -> the shape of e. The noise
/// is g_j = −log(−log u_j), u_j uniform in (0,1), the standard Gumbel distribution, by which argmax_j (e_j + g_j) is
/// distributed as softmax(e). The greatest score is subtracted first, so that the noise of great scores is not rounded
/// away. A score of -inf stays.
///
///     ∂e_j += ∂y_j − [j = m] Σ_k ∂y_k, and nothing where e_j is -inf
struct perturb_op : row_operation<perturb_op> {
    static constexpr const char* name = "perturb";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::uint64_t stream, double strength, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        const std::size_t width = plan.width;
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            const detail::greatest_of<T> most(n, width, e.data + at, memory);
            auto* const noise = memory.take<double>(n * width);
            gumbel(n * width, plan.stream_of(stream, b), strength, noise);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                const T score = e.data[at + i];
                const bool none = score == -std::numeric_limits<T>::infinity();  // -inf - -inf is NaN
                y.data[at + i] = none ? score : (score - most.top[d]) + static_cast<T>(noise[i]);
            });
            plan.clear_padding(n, y.data + at);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, std::uint64_t, double, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e)
    {
        const detail::row_plan plan(e.shape, real);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch& memory) {
            auto* const sum = plan.zeros<in_double<T>>(memory);
            const detail::greatest_of<T> most(n, plan.width, e.data + at, memory);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                if (e.data[at + i] == -std::numeric_limits<T>::infinity()) return;
                d_e.data[at + i] += d_y.data[at + i];
                sum[d] += static_cast<in_double<T>>(d_y.data[at + i]);
            });
            for (std::size_t d = 0; d < plan.width; ++d) {
                if (most.where[d] < n) d_e.data[at + most.where[d] * plan.width + d] -= static_cast<T>(sum[d]);
            }
        });
    }

private:
    static void gumbel(std::size_t n, std::uint64_t row, double strength, double* noise)
    {
        if (strength == 0) return kernels::detail::zero(noise, n);
        for (std::size_t i = 0; i < n; ++i) {
            noise[i] = std::min(1 - uniform(row, i), 1 - 0x1p-53);  // 1 would be infinite noise
        }
        simd::transform(
            n, noise, [strength](simd::vec<double> u) { return strength * -simd::log(-simd::log(u)); },
            static_cast<const double*>(noise));
    }
};
inline constexpr perturb_op perturb{};

/// y_j = e_j + sigma · g_j, g_j standard normal: e [B,T] or [B,T,D] -> the shape of e. A score of -inf stays.
///
///     ∂e_j += ∂y_j
struct add_normal_op : row_operation<add_normal_op> {
    static constexpr const char* name = "add_normal";

    template <class T, std::size_t R>
    static void forward(in<T, R> e, const lengths_view& real, std::uint64_t stream, double sigma, out<T, R> y)
    {
        const detail::row_plan plan(e.shape, real);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch&) {
            const std::uint64_t row = plan.stream_of(stream, b);
            for (std::size_t i = 0; i < n * plan.width; ++i) {
                y.data[at + i] = e.data[at + i] + static_cast<T>(sigma * normal(row, i));
            }
            plan.clear_padding(n, y.data + at);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> e, const lengths_view& real, std::uint64_t, double, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_e)
    {
        const detail::row_plan plan(e.shape, real);
        plan.each_row([&](std::size_t, std::size_t n, std::size_t at, scratch&) {
            kernels::add(n * plan.width, d_e.data + at, d_y.data + at);
        });
    }
};
inline constexpr add_normal_op add_normal{};

/// y = value in the forward pass, y = soft in the backward pass: value and soft [...] -> [...]. Bengio, Léonard and
/// Courville 2013.
///
///     ∂soft += ∂y                                                nothing for the value
struct straight_through_op : operation<straight_through_op> {
    static auto shape(const auto& value, const auto& soft)
    {
        require_shape("straight_through", "the second argument", soft.shape, value.shape, "the shape of the first");
        return value.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> value, in<T, R>, out<T, R> y)
    {
        std::copy_n(value.data, y.size(), y.data);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R>, in<T, R>, in<T, R> y, in<T, R> d_y, adjoint<T, R>, adjoint<T, R> d_soft)
    {
        if (d_soft) kernels::add(y.size(), d_soft.data, d_y.data);
    }
};
inline constexpr straight_through_op straight_through{};

/// y_j = r k_j α_j, where k_j is 0 with probability p, else 1, and r = 1 / (1 − p): α [B,T] or [B,T,D] -> the shape of
/// α. With `renormalise` r = Σ α / Σ k α, which preserves the sum of a row (0 if all of its weights are dropped).
///
///     ∂α_j += r k_j ∂y_j; with `renormalise` and m = Σ_i k_i α_i ∂y_i / Σ_i k_i α_i:
///     ∂α_j += m + r k_j (∂y_j − m)
struct thin_op : row_operation<thin_op> {
    static constexpr const char* name = "thin";

    template <class T, std::size_t R>
    static void forward(in<T, R> weights, const lengths_view& real, double p, std::uint64_t stream, bool renormalise,
                        out<T, R> y)
    {
        const detail::row_plan plan(weights.shape, real);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            const drawn<T> row(plan, b, n, p, stream, renormalise, weights.data + at, memory);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                y.data[at + i] = row.keep[i] != 0 ? weights.data[at + i] * row.r[d] : T(0);
            });
            plan.clear_padding(n, y.data + at);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> weights, const lengths_view& real, double p, std::uint64_t stream, bool renormalise,
                         in<T, R>, in<T, R> d_y, adjoint<T, R> d_weights)
    {
        const detail::row_plan plan(weights.shape, real);
        plan.each_row([&](std::size_t b, std::size_t n, std::size_t at, scratch& memory) {
            const T *const a = weights.data + at, *const d = d_y.data + at;
            T* const d_a = d_weights.data + at;
            const drawn<T> row(plan, b, n, p, stream, renormalise, a, memory);
            if (!renormalise) {
                plan.each_element(
                    n, [&](std::size_t i, std::size_t k) { d_a[i] += row.keep[i] != 0 ? row.r[k] * d[i] : T(0); });
                return;
            }
            auto* const pulled = plan.zeros<in_double<T>>(memory);
            plan.each_element(n, [&](std::size_t i, std::size_t k) {
                if (row.keep[i] != 0) pulled[k] += static_cast<in_double<T>>(a[i] * d[i]);
            });
            plan.each_element(n, [&](std::size_t i, std::size_t k) {
                if (!(row.kept[k] > T(0))) return;  // all dropped: 0 whatever the weights are
                const T mean = static_cast<T>(pulled[k]) / row.kept[k];
                d_a[i] += row.keep[i] != 0 ? mean + row.r[k] * (d[i] - mean) : mean;
            });
        });
    }

private:
    /// The draws for a row and what follows from them, the same forward and backward.
    template <class T>
    struct drawn {
        std::uint8_t* keep;  // [n,D] k
        T* r;                // [D]
        T* kept;             // [D] Σ k α, where it is wanted

        drawn(const detail::row_plan& plan, std::size_t b, std::size_t n, double p, std::uint64_t stream,
              bool renormalise, const T* weights, scratch& memory)
            : keep(memory.take<std::uint8_t>(n * plan.width)), r(plan.zeros<T>(memory)), kept(plan.zeros<T>(memory))
        {
            const std::size_t width = plan.width;
            const std::uint64_t row = plan.stream_of(stream, b);
            for (std::size_t i = 0; i < n * width; ++i) keep[i] = uniform(row, i) < p ? 0 : 1;
            if (!renormalise) {
                std::fill_n(r, width, static_cast<T>(1 / (1 - p)));
                return;
            }
            auto *const all = plan.zeros<in_double<T>>(memory), *const some = plan.zeros<in_double<T>>(memory);
            plan.each_element(n, [&](std::size_t i, std::size_t d) {
                all[d] += static_cast<in_double<T>>(weights[i]);
                some[d] += static_cast<in_double<T>>(keep[i] != 0 ? weights[i] : T(0));
            });
            for (std::size_t d = 0; d < width; ++d) r[d] = static_cast<T>(all[d]), kept[d] = static_cast<T>(some[d]);
            for (std::size_t d = 0; d < width; ++d) r[d] = kept[d] > T(0) ? r[d] / kept[d] : T(0);
        }
    };
};
inline constexpr thin_op thin{};

}  // namespace heed::ops
