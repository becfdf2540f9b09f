// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include <heed/core/blas.hpp>
#include <heed/core/mask.hpp>
#include <heed/kernels/coverage.hpp>
#include <heed/kernels/gru.hpp>
#include <heed/ops/operation.hpp>
#include <heed/ops/products.hpp>

/// Steps of recurrent layers, and maxout.
namespace heed::ops {

/// Which sentences have ended at a step of a recurrent layer; without lengths none has.
struct sentence_ends {
    const lengths* real = nullptr;
    std::size_t step = 0;

    const std::size_t* data() const { return real == nullptr ? nullptr : real->data(); }
};

/// One step of a gated recurrent unit, see kernels/gru.hpp:
/// inputs [...,3H] (x_z|x_r|x_h with their bias), hidden [...,H], U [H,2H] (for z|r), U_h [H,H] -> the new state
/// [...,H]. All leading axes go through the same products. A sentence that has ended keeps its state.
///
///     ∂a of the three gates: see kernels/gru.hpp,  ∂inputs += ∂a,  ∂U += hᵀ ∂a_z|∂a_r,  ∂U_h += (r ⊙ h)ᵀ ∂a_h
///
/// On the tape: ad/recurrent.hpp.
struct gru_op : operation<gru_op> {
    static auto shape(const auto& inputs, const auto& hidden, const auto& U, const auto& U_h, const sentence_ends& ends)
    {
        const std::size_t B = detail::rows_of(hidden.shape), H = hidden.shape.back();
        auto gates = hidden.shape;
        gates.back() = 3 * H;
        require_shape("gru", "the input", inputs.shape, gates, "three gates for the state ", hidden.shape);
        require_shape("gru", "U", U.shape, {H, 2 * H}, "from the state to two gates");
        require_shape("gru", "U_h", U_h.shape, {H, H}, "from the state to the state");
        if (ends.real != nullptr && ends.real->batch() != B) {
            throw shape_error("gru: " + std::to_string(ends.real->batch()) + " lengths for " + std::to_string(B) +
                              " sentences; give one length per sentence");
        }
        return hidden.shape;
    }

    /// z|r|h̃ [B,3H], and r ⊙ h [B,H] behind them.
    static std::size_t saved(const auto&, const auto& hidden, const auto&, const auto&, const sentence_ends&)
    {
        return 4 * hidden.size();
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> inputs, in<T, R> hidden, in<T, 2> U, in<T, 2> U_h, const sentence_ends& ends,
                        out<T, R> next, T* gates)
    {
        const std::size_t B = detail::rows_of(hidden.shape), H = hidden.shape[R - 1];
        const kernels::gru_step<T> step{B, H, inputs.data, 3 * H, hidden.data, ends.data(), ends.step};
        T* const reset_hidden = gates + 3 * B * H;
        scratch here;
        T* const recurrent = here.take<T>(2 * B * H);
        blas::gemm(blas::op::plain, blas::op::plain, B, 2 * H, H, hidden.data, U.data, T(0), recurrent);
        kernels::gru_gates(step, recurrent, gates, reset_hidden);
        blas::gemm(blas::op::plain, blas::op::plain, B, H, H, static_cast<const T*>(reset_hidden), U_h.data, T(0),
                   recurrent);
        kernels::gru_blend(step, recurrent, gates, next.data);
    }
};
inline constexpr gru_op gru{};

/// One step of coverage embeddings, see kernels/coverage.hpp: word [B,3N], weights α [B,T], by_weight [3N],
/// products c U [B,T,3N], coverage c [B,T,N] -> the new coverage [B,T,N].
///
///     ∂ of each argument: see kernels::coverage_update_backward
struct coverage_gru_op : operation<coverage_gru_op> {
    static shape_of_rank<3> shape(const auto& word, const auto& weights, const auto& by_weight, const auto& products,
                                  const auto& coverage)
    {
        const auto [B, T, N] = coverage.shape;
        require_shape("coverage_gru", "the word", word.shape, {B, 3 * N}, "three gates for each row of the coverage ",
                      coverage.shape);
        require_shape("coverage_gru", "the weights", weights.shape, {B, T}, "one for each position of the coverage");
        require_shape("coverage_gru", "the vector for the weights", by_weight.shape, {3 * N},
                      "one number for each gate");
        require_shape("coverage_gru", "the product", products.shape, {B, T, 3 * N}, "three gates for each position");
        return coverage.shape;
    }

    template <class T>
    static void forward(in<T, 2> word, in<T, 2> weights, in<T, 1> by_weight, in<T, 3> products, in<T, 3> coverage,
                        out<T, 3> next)
    {
        scratch here;
        const auto step = step_of(word, weights, by_weight, products, coverage);
        kernels::coverage_update(step, here.take<T>(3 * step.batch * step.width), next.data);
    }

    template <class T>
    static void backward(in<T, 2> word, in<T, 2> weights, in<T, 1> by_weight, in<T, 3> products, in<T, 3> coverage,
                         in<T, 3>, in<T, 3> d_next, adjoint<T, 2> d_word, adjoint<T, 2> d_weights,
                         adjoint<T, 1> d_by_weight, adjoint<T, 3> d_products, adjoint<T, 3> d_coverage)
    {
        scratch here;
        const auto step = step_of(word, weights, by_weight, products, coverage);
        const kernels::coverage_adjoints<T> into{d_word.data, d_weights.data, d_by_weight.data, d_products.data,
                                                 d_coverage.data};
        kernels::coverage_update_backward(step, d_next.data, into, here.take<T>(9 * step.batch * step.width));
    }

private:
    template <class T>
    static kernels::coverage_step<T> step_of(in<T, 2> word, in<T, 2> weights, in<T, 1> by_weight, in<T, 3> products,
                                             in<T, 3> coverage)
    {
        const auto [B, positions, N] = coverage.shape;
        return {B, positions, N, word.data, weights.data, by_weight.data, products.data, coverage.data};
    }
};
inline constexpr coverage_gru_op coverage_gru{};

/// y_i = max(x_2i, x_2i+1), the greater of each pair of neighbours: x [...,2N] -> [...,N]. Goodfellow et al. 2013;
/// Bahdanau et al. 2015, A.2.2.
///
///     ∂x of the greater one += ∂y_i; of the first one if they are equal
struct maxout_op : operation<maxout_op> {
    static auto shape(const auto& x)
    {
        if (x.shape.back() % 2 != 0) {
            throw shape_error("maxout: x is " + shape_text(x.shape) +
                              ", but its last axis must be even: pairs of neighbours");
        }
        auto y = x.shape;
        y.back() /= 2;
        return y;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, out<T, R> y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) y.data[i] = std::max(x.data[2 * i], x.data[2 * i + 1]);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, R> y, in<T, R> d_y, adjoint<T, R> d_x)
    {
        for (std::size_t i = 0; i < y.size(); ++i) {
            const bool second = x.data[2 * i + 1] > x.data[2 * i];
            d_x.data[2 * i] += second ? T(0) : d_y.data[i];
            d_x.data[2 * i + 1] += second ? d_y.data[i] : T(0);
        }
    }
};
inline constexpr maxout_op maxout{};

}  // namespace heed::ops
