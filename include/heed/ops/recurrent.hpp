// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include <heed/core/blas.hpp>
#include <heed/core/mask.hpp>
#include <heed/kernels/gru.hpp>
#include <heed/ops/operation.hpp>

namespace heed::ops {

/// y = base + x W: x [...,K], W [K,N], base [...,N] -> [...,N].
struct linear_onto_op : operation<linear_onto_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& base, const shape_of_rank<R>& x, const shape_of_rank<2>& W)
    {
        shape_of_rank<R> must = x;
        must[R - 1] = W[1];
        require_shape("linear_onto", "the base", base, must, "the shape of x W, with x ", x);
        require_shape("linear_onto", "W", W, {x[R - 1], W[1]}, "one row for each column of x ", x);
    }

    template <plain_tensor Y, plain_tensor X, plain_tensor M>
    auto plain(const Y& base, const X& x, const M& W) const
    {
        using T = element_of<X>;
        check(shape_of(base), shape_of(x), shape_of(W));
        auto y = storage_for<T, rank_of<X>>(shape_of(base));
        std::copy_n(view_of(base).data, y.size(), y.data());
        const std::size_t K = shape_of(W)[0], N = shape_of(W)[1];
        blas::gemm(blas::op::plain, blas::op::plain, N == 0 ? 0 : y.size() / N, N, K, view_of(x).data, view_of(W).data,
                   T(1), y.data());
        return y;
    }
};
inline constexpr linear_onto_op linear_onto{};

/// The same row for every sentence: x [N] -> [B,N].
struct repeat_op : operation<repeat_op> {
    template <plain_tensor X>
    auto plain(const X& x, std::size_t batch) const
    {
        const std::size_t n = shape_of(x)[0];
        auto y = storage_for<element_of<X>, 2>(shape_of_rank<2>{batch, n});
        for (std::size_t b = 0; b < batch; ++b) std::copy_n(view_of(x).data, n, y.data() + b * n);
        return y;
    }
};
inline constexpr repeat_op repeat{};

/// Which sentences are over at a step of a recurrent layer; without lengths none is.
struct sentence_ends {
    const lengths* real = nullptr;
    std::size_t step = 0;

    const std::size_t* data() const { return real == nullptr ? nullptr : real->data(); }
};

/// One step of a gated recurrent unit, see kernels/gru.hpp:
/// inputs [...,3H] (x_z|x_r|x_h with their bias), hidden [...,H], U [H,2H] (for z|r), U_h [H,H] -> the new state
/// [...,H]. All leading axes go through the same products. A sentence that is over keeps its state.
struct gru_op : operation<gru_op> {
    template <std::size_t R>
    static void check(const shape_of_rank<R>& inputs, const shape_of_rank<R>& hidden, const shape_of_rank<2>& U,
                      const shape_of_rank<2>& U_h, const sentence_ends& ends)
    {
        const std::size_t B = rows_of(hidden), H = hidden[R - 1];
        shape_of_rank<R> gates = hidden;
        gates[R - 1] = 3 * H;
        require_shape("gru", "the input", inputs, gates, "three gates for the state ", hidden);
        require_shape("gru", "U", U, {H, 2 * H}, "from the state to two gates");
        require_shape("gru", "U_h", U_h, {H, H}, "from the state to the state");
        if (ends.real != nullptr && ends.real->batch() != B) {
            throw shape_error("gru: " + std::to_string(ends.real->batch()) + " lengths for " + std::to_string(B) +
                              " sentences; give one length a sentence");
        }
    }

    /// The states in a tensor of them.
    template <std::size_t R>
    static std::size_t rows_of(const shape_of_rank<R>& hidden)
    {
        std::size_t rows = 1;
        for (std::size_t axis = 0; axis + 1 < R; ++axis) rows *= hidden[axis];
        return rows;
    }

    /// recurrent [B,2H] and reset_hidden [B,H] are scratch; saved [B,3H] is what the backward needs, with reset_hidden.
    template <class T>
    static void compute(const kernels::gru_step<T>& step, const T* U, const T* U_h, T* recurrent, T* saved,
                        T* reset_hidden, T* next)
    {
        const std::size_t B = step.batch, H = step.width;
        blas::gemm(blas::op::plain, blas::op::plain, B, 2 * H, H, step.hidden, U, T(0), recurrent);
        kernels::gru_gates(step, recurrent, saved, reset_hidden);
        blas::gemm(blas::op::plain, blas::op::plain, B, H, H, static_cast<const T*>(reset_hidden), U_h, T(0),
                   recurrent);
        kernels::gru_blend(step, recurrent, saved, next);
    }

    template <plain_tensor X, plain_tensor S, plain_tensor M>
    auto plain(const X& inputs, const S& hidden, const M& U, const M& U_h, const sentence_ends& ends) const
    {
        using T = element_of<X>;
        const auto shape = shape_of(hidden);
        check(shape_of(inputs), shape, shape_of(U), shape_of(U_h), ends);
        const std::size_t B = rows_of(shape), H = shape.back();
        auto next = storage_for<T, rank_of<S>>(shape);
        array<T, 1> scratch(shape_of_rank<1>{6 * B * H});
        T* const recurrent = scratch.data();
        compute<T>({B, H, view_of(inputs).data, 3 * H, view_of(hidden).data, ends.data(), ends.step}, view_of(U).data,
                   view_of(U_h).data, recurrent, recurrent + 2 * B * H, recurrent + 5 * B * H, next.data());
        return next;
    }
};
inline constexpr gru_op gru{};

/// The greater of each pair of neighbours: x [...,2N] -> [...,N]. Goodfellow et al. 2013; Bahdanau et al. 2015, A.2.2.
struct maxout_op : operation<maxout_op> {
    template <std::size_t R>
    static shape_of_rank<R> result_shape(const shape_of_rank<R>& x)
    {
        if (x[R - 1] % 2 != 0) {
            throw shape_error("maxout: x is " + shape_text(x) +
                              ", but its last axis must be even: pairs of neighbours");
        }
        shape_of_rank<R> y = x;
        y[R - 1] /= 2;
        return y;
    }

    template <plain_tensor X>
    auto plain(const X& x) const
    {
        using T = element_of<X>;
        auto y = storage_for<T, rank_of<X>>(result_shape(shape_of(x)));
        const T* from = view_of(x).data;
        for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = std::max(from[2 * i], from[2 * i + 1]);
        return y;
    }
};
inline constexpr maxout_op maxout{};

}  // namespace heed::ops
