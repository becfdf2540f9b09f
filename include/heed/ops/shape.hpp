// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <heed/core/mask.hpp>
#include <heed/ops/operation.hpp>

/// Moving numbers without changing them, and sums.
namespace heed::ops {

/// [a; b] along the last axis: [...,N] and [...,M] -> [...,N+M].
struct concat_op : operation<concat_op> {
    template <std::size_t R>
    static shape_of_rank<R> result_shape(const shape_of_rank<R>& a, const shape_of_rank<R>& b)
    {
        shape_of_rank<R> must = a;
        must[R - 1] = b[R - 1];
        require_shape("concat", "the second argument", b, must, "all axes but the last as the first, ", a);
        must[R - 1] += a[R - 1];
        return must;
    }

    template <plain_tensor A, plain_tensor B>
    auto plain(const A& a, const B& b) const
    {
        using T = element_of<A>;
        constexpr std::size_t R = rank_of<A>;
        auto y = storage_for<T, R>(result_shape(shape_of(a), shape_of(b)));
        const std::size_t n = shape_of(a)[R - 1], m = shape_of(b)[R - 1];
        T* to = y.data();
        for (std::size_t row = 0; row * (n + m) < y.size(); ++row) {
            to = std::copy_n(view_of(a).data + row * n, n, to);
            to = std::copy_n(view_of(b).data + row * m, m, to);
        }
        return y;
    }
};
inline constexpr concat_op concat{};

/// The s-th step of every row: x [B,S,N] -> [B,N].
struct step_of_op : operation<step_of_op> {
    static shape_of_rank<2> result_shape(const shape_of_rank<3>& x, std::size_t s)
    {
        if (s >= x[1]) {
            throw shape_error("step_of: step " + std::to_string(s) + " of " + shape_text(x) + ", which has only " +
                              std::to_string(x[1]) + " steps");
        }
        return {x[0], x[2]};
    }

    template <plain_tensor X>
    auto plain(const X& x, std::size_t s) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, 2>(result_shape(shape_of(x), s));
        const auto [B, S, N] = shape_of(x);
        for (std::size_t b = 0; b < B; ++b) std::copy_n(view_of(x).data + (b * S + s) * N, N, y.data() + b * N);
        return y;
    }
};
inline constexpr step_of_op step_of{};

/// The reverse, in place: y [B,N] becomes the s-th step of x [B,S,N].
template <class T>
void put_step(array<T, 3>& x, std::size_t s, const plain_tensor auto& y)
{
    const auto [B, S, N] = shape_of(x);
    require_shape("put_step", "the step", shape_of(y), {B, N}, "a row for each row of ", shape_of(x));
    for (std::size_t b = 0; b < B; ++b) std::copy_n(view_of(y).data + b * N, N, x.data() + (b * S + s) * N);
}

/// The i-th block along the first axis: x [S,B,N] -> [B,N]. On the tape a view, not a copy.
struct block_op : operation<block_op> {
    template <std::size_t R>
    static shape_of_rank<R - 1> result_shape(const shape_of_rank<R>& x, std::size_t i)
    {
        if (i >= x[0]) {
            throw shape_error("block: block " + std::to_string(i) + " of " + shape_text(x) + ", which has only " +
                              std::to_string(x[0]));
        }
        shape_of_rank<R - 1> y;
        std::copy_n(x.begin() + 1, R - 1, y.begin());
        return y;
    }

    template <plain_tensor X>
    auto plain(const X& x, std::size_t i) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, rank_of<X> - 1>(result_shape(shape_of(x), i));
        std::copy_n(view_of(x).data + i * y.size(), y.size(), y.data());
        return y;
    }
};
inline constexpr block_op block{};

/// Equal blocks one behind the other: S times [B,N] -> [S,B,N].
struct stack_op {
    template <tensor X>
    static auto result_shape(const std::vector<X>& parts)
    {
        if (parts.empty()) throw shape_error("stack: nothing to stack; give at least one tensor");
        shape_of_rank<rank_of<X> + 1> y;
        y[0] = parts.size();
        const auto first = shape_of(parts.front());
        std::copy(first.begin(), first.end(), y.begin() + 1);
        for (const X& part : parts) require_shape("stack", "a part", shape_of(part), first, "as the first part");
        return y;
    }

    template <tensor X>
    auto operator()(const std::vector<X>& parts) const
    {
        if constexpr (plain_tensor<X>) {
            auto y = storage_for<element_of<X>, rank_of<X> + 1>(result_shape(parts));
            auto* to = y.data();
            for (const X& part : parts) to = std::copy_n(view_of(part).data, view_of(part).size(), to);
            return y;
        } else {
            return family_of<X>::call(*this, parts);
        }
    }
};
inline constexpr stack_op stack{};

/// The first two axes change places: [S,B,N] -> [B,S,N] and back.
struct swap_axes_op : operation<swap_axes_op> {
    template <class T, class Write>
    static void each_row(const shape_of_rank<3>& from, Write write)
    {
        const auto [S, B, N] = from;
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t s = 0; s < S; ++s) write((s * B + b) * N, (b * S + s) * N);
        }
    }

    template <plain_tensor X>
    auto plain(const X& x) const
    {
        using T = element_of<X>;
        const shape_of_rank<3> from = shape_of(x);
        auto y = storage_for<T, 3>(shape_of_rank<3>{from[1], from[0], from[2]});
        each_row<T>(
            from, [&](std::size_t in, std::size_t out) { std::copy_n(view_of(x).data + in, from[2], y.data() + out); });
        return y;
    }
};
inline constexpr swap_axes_op swap_axes{};

/// x with zeros behind the length of each row: [B,T] or [B,T,D]. Selected, never multiplied: a NaN in the padding is
/// gone, and no gradient comes back from there.
struct clear_padding_op : operation<clear_padding_op> {
    /// row(begin, kept, all) for each row: where its elements begin, how many are real, how many there are.
    template <std::size_t R, class Row>
    static void each_row(const shape_of_rank<R>& x, const lengths& real, Row&& row)
    {
        static_assert(R == 2 || R == 3, "heed: clear_padding takes [B,T] or [B,T,D]");
        real.require("clear_padding", x[0], x[1]);
        const std::size_t width = R == 3 ? x[R - 1] : 1;
        for (std::size_t b = 0; b < x[0]; ++b) row(b * x[1] * width, real[b] * width, x[1] * width);
    }

    template <class T, std::size_t R>
    static void compute(const shape_of_rank<R>& shape, const lengths& real, const T* x, T* y)
    {
        each_row(shape, real, [x, y](std::size_t begin, std::size_t kept, std::size_t all) {
            std::copy_n(x + begin, kept, y + begin);
            std::fill_n(y + begin + kept, all - kept, T(0));
        });
    }

    template <plain_tensor X>
    auto plain(const X& x, const lengths& real) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, rank_of<X>>(shape_of(x));
        compute(shape_of(x), real, view_of(x).data, y.data());
        return y;
    }
};
inline constexpr clear_padding_op clear_padding{};

/// The same for words in the order of steps, x [T,B,N]: zeros at step t of a row that has at most t words.
struct clear_ended_op : operation<clear_ended_op> {
    template <class T>
    static void compute(const shape_of_rank<3>& shape, const std::size_t* real, const T* x, T* y)
    {
        const auto [steps, B, N] = shape;
        for (std::size_t row = 0; row < steps * B; ++row) {
            if (row / B < real[row % B]) {
                std::copy_n(x + row * N, N, y + row * N);
            } else {
                std::fill_n(y + row * N, N, T(0));
            }
        }
    }

    template <plain_tensor X>
    auto plain(const X& x, const lengths& real) const
    {
        using T = element_of<X>;
        const shape_of_rank<3> shape = shape_of(x);
        real.require("clear_ended", shape[1], shape[0]);
        auto y = storage_for<T, 3>(shape);
        compute<T>(shape, real.data(), view_of(x).data, y.data());
        return y;
    }
};
inline constexpr clear_ended_op clear_ended{};

/// Σ over the last axis: [...,N] -> [...].
struct sum_last_op : operation<sum_last_op> {
    template <std::size_t R>
    static shape_of_rank<R - 1> result_shape(const shape_of_rank<R>& x)
    {
        shape_of_rank<R - 1> y;
        std::copy_n(x.begin(), R - 1, y.begin());
        return y;
    }

    template <plain_tensor X>
    auto plain(const X& x) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, rank_of<X> - 1>(result_shape(shape_of(x)));
        const std::size_t n = shape_of(x)[rank_of<X> - 1];
        for (std::size_t i = 0; i < y.size(); ++i) {
            T sum = 0;
            for (std::size_t k = 0; k < n; ++k) sum += view_of(x).data[i * n + k];
            y.data()[i] = sum;
        }
        return y;
    }
};
inline constexpr sum_last_op sum_last{};

/// Σ_i x_i c_i with constants c of the same shape: a loss whose every entry has a gradient of its own.
struct inner_op : operation<inner_op> {
    template <plain_tensor X, plain_tensor C>
    auto plain(const X& x, const C& c) const
    {
        using T = element_of<X>;
        require_shape("inner", "the constants", shape_of(c), shape_of(x), "one for each element");
        T sum = 0;
        for (std::size_t i = 0, n = view_of(x).size(); i < n; ++i) sum += view_of(x).data[i] * view_of(c).data[i];
        array<T, 0> y(shape_of_rank<0>{});
        y.data()[0] = sum;
        return y;
    }
};
inline constexpr inner_op inner{};

}  // namespace heed::ops
