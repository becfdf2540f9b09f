// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <heed/core/random.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/ops/rows.hpp>
#include <heed/ops/softmax.hpp>

/// Randomness in attention: sampled positions, noise on scores, dropped weights.
///
/// Random numbers are a function of the stream, row, position and dimension: they are reproducible, and depend neither
/// on the number of threads nor on the padding of a batch. Rows are counted in the whole batch
/// (lengths_view::first_row): a part of a batch draws the same numbers as the whole.
///
/// Scores and weights are [B,T], or [B,T,D], where each dimension is drawn separately. Positions beyond a row's length
/// are not read and get 0; a position with a score of -inf is never drawn.
namespace heed::inline HEED_TARGET::ops {

/// The purpose of the random numbers: different purposes with the same seed get different numbers.
enum class chance : std::uint64_t { position = 1, noise, weights, normal_noise };

/// The stream of one step for one purpose.
constexpr std::uint64_t stream_of(std::uint64_t seed, std::size_t step, chance use)
{
    return mix(mix(mix(seed) + static_cast<std::uint64_t>(use)) + step);
}

namespace detail {

/// The rows of a batch of scores or weights.
struct row_plan {
    std::size_t batch, positions, width;
    lengths_view real;

    row_plan(const auto& shape, const lengths_view& lengths)
        : batch(shape[0]), positions(shape[1]), width(width_of(shape)), real(lengths)
    {}

    /// f(row, its number of real positions, the offset of its first element, memory that is released after the row).
    void each_row(const auto& f) const
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
    void each_element(std::size_t n, const auto& f) const
    {
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t d = 0; d < width; ++d) f(t * width + d, d);
        }
    }

    /// The stream of one of these rows.
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
    void clear_padding(std::size_t n, auto* row) const
    {
        kernels::detail::zero(row + n * width, row_size() - n * width);
    }

    void softmax(const auto* scores, auto* weights) const
    {
        detail::softmax({batch, positions, width}, width != 1, real.data(), scores, weights);
    }
};

/// The maximum of each column, and the first position where it occurs; n if all numbers are -inf.
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

/// 1 at one position of each column (none if the position is n), 0 elsewhere.
template <class T>
void one_hot(std::size_t n, std::size_t width, std::size_t size, const std::size_t* where, T* y)
{
    kernels::detail::zero(y, size);
    for (std::size_t d = 0; d < width; ++d) {
        if (where[d] < n) y[where[d] * width + d] = T(1);
    }
}

}  // namespace detail

/// y_j = 1 at the maximum score of each row, the first in case of a tie, 0 elsewhere: e [B,T] or [B,T,D]. No gradient.
struct argmax_op : row_operation<argmax_op> {
    static constexpr const char* name = "argmax";
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
inline constexpr argmax_op argmax{};

}  // namespace heed::inline HEED_TARGET::ops
